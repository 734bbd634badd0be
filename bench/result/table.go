package result

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"xroce/bench/ratio"
)

// WriteText prints the ratios, with the medians they are made of, for a terminal.
func (d *Document) WriteText(out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "case\tagainst\tratio\tquartiles\tours\tpeer\tunit\tpairs\tvoid")
	for i := range d.Cases {
		c := &d.Cases[i]
		for _, cmp := range c.Compare() {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", c.Name, cmp.Peer,
				cmp.median(), cmp.quartiles(), typical(cmp.Ours), typical(cmp.Peers),
				c.unit(), cmp.Ratio.N, cmp.Void)
		}
		for _, s := range c.Skipped {
			fmt.Fprintf(tw, "%s\t%s\tskipped: %s\n", c.Name, s.Variant, s.Reason)
		}
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(d.notes(), "\n"))
	return err
}

// WriteMarkdown prints the ratios as a table for a page: no absolute numbers,
// since those are the machine's more than ours.
func (d *Document) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| case | what | against | ours / peer | quartiles | pairs |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for i := range d.Cases {
		c := &d.Cases[i]
		for _, cmp := range c.Compare() {
			pairs := fmt.Sprint(cmp.Ratio.N)
			if cmp.Void > 0 {
				pairs += fmt.Sprintf(" (%d void)", cmp.Void)
			}
			fmt.Fprintf(&b, "| %s | %s, %s | %s | %s | %s | %s |\n", c.Name, c.Title, c.unit(),
				cmp.Peer, cmp.median(), cmp.quartiles(), pairs)
		}
		for _, s := range c.Skipped {
			fmt.Fprintf(&b, "| %s | %s | %s | – | – | skipped: %s |\n", c.Name, c.Title,
				s.Variant, s.Reason)
		}
	}
	b.WriteString("\n" + strings.Join(d.notes(), "  \n") + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// notes are the facts without which the table must not be read.
func (d *Document) notes() []string {
	notes := []string{
		d.Machine.String() + ".",
		fmt.Sprintf("%s, windows of %.3g s, load average %.2f at the start.",
			d.Time.UTC().Format("2006-01-02 15:04 UTC"), d.Window, d.Load),
	}
	if len(d.Cases) > 0 {
		s := d.Cases[0].Settings
		notes = append(notes, fmt.Sprintf("%s, AF_XDP in copy mode, qdisc %s: "+
			"these are not the numbers of a network card.", s.Driver, s.Qdisc))
	}
	if d.Quick {
		notes = append(notes, "QUICK RUN: windows this short say nothing about speed.")
	}
	return notes
}

func (c *Case) unit() string {
	if c.LowerIsBetter {
		return c.Unit + ", lower is better"
	}
	return c.Unit
}

// typical is the median as an amount.
func typical(s ratio.Spread) string {
	if s.N == 0 {
		return "–"
	}
	return amount(s.Median)
}

func (c Comparison) median() string {
	if c.Ratio.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", c.Ratio.Median)
}

func (c Comparison) quartiles() string {
	if c.Ratio.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f … %.2f", c.Ratio.Q1, c.Ratio.Q3)
}

// amount prints three significant digits with a suffix for thousands.
func amount(v float64) string {
	for _, s := range []struct {
		size   float64
		suffix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= s.size {
			return fmt.Sprintf("%.3g%s", v/s.size, s.suffix)
		}
	}
	return fmt.Sprintf("%.3g", v)
}
