package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"xroce/bench/result"
)

// A figure is one plot: a row of panels.
type figure struct {
	name string // of its files
	draw func(*result.Document) ([]*panel, error)
}

// figures are all plots, in the order in which docs/messages.md shows them, and where the time of
// a packet goes, which docs/perf.md is about.
var figures = []figure{
	{"first", firstPanels},
	{"protocols", protocolPanels},
	{"crossover", crossoverPanels},
	{"registered", registeredPanels},
	{"overlap", overlapPanels},
	{"guard", guardPanels},
	{"rails", railPanels},
	{"where", wherePanels},
}

// errMissing says that a result file does not have what a plot needs.
var errMissing = errors.New("not measured")

func main() {
	from := flag.String("from", "", "result `file` of the bench")
	out := flag.String("out", "docs/plots", "`directory` for the plots")
	only := flag.String("only", "", "draw the plot of this `name` alone")
	flag.Parse()
	if *from == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*from, *out, *only, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// run draws all figures that the file has something for, or one of them.
func run(from, out, only string, said io.Writer) error {
	d, err := result.Load(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, f := range figures {
		if only != "" && f.name != only {
			continue
		}
		panels, err := f.draw(d)
		if errors.Is(err, errMissing) {
			fmt.Fprintf(said, "%s: left out: %v\n", f.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		for _, format := range []string{"svg", "png"} {
			name := filepath.Join(out, f.name+"."+format)
			if err := save(name, format, panels); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintln(said, name)
		}
	}
	return nil
}

// need is a case of the document that has been measured.
func need(d *result.Document, name string) (*result.Case, error) {
	c := d.Case(name)
	if c == nil {
		return nil, fmt.Errorf("%w: %s", errMissing, name)
	}
	return c, nil
}

// median is that of a variant of a case.
func median(d *result.Document, name, variant string) (float64, error) {
	c, err := need(d, name)
	if err != nil {
		return 0, err
	}
	s := c.Values(variant)
	if s.N == 0 {
		return 0, fmt.Errorf("%w: %s of %s", errMissing, variant, name)
	}
	return s.Median, nil
}
