package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xroce/bench/result"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitSkipped = 77 // as automake's tests
)

// The lengths of a run when no flag says otherwise.
const (
	usualPairs, quickPairs   = 7, 2
	usualWindow, quickWindow = time.Second, 200 * time.Millisecond
)

// flags are the command line.
type flags struct {
	only     string
	pairs    int
	duration time.Duration
	quick    bool
	full     bool
	list     bool
	json     bool
	out      string
	from     string
	runs     int           // whole runs, 0 for one of any kind
	every    time.Duration // from the begin of one to that of the next
	page     string        // a file for the medians
	peers    peers         // in C, where they are compiled already: a test makes many short runs
}

func parseFlags(args []string) (flags, error) {
	var f flags
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&f.only, "only", "", "measure cases whose `name` begins so; commas separate")
	fs.IntVar(&f.pairs, "pairs", 0, "rounds in which each variant runs once (default 7, quick 2)")
	fs.DurationVar(&f.duration, "duration", 0, "window that is measured (default 1s, quick 200ms)")
	fs.BoolVar(&f.quick, "quick", false, "few and short rounds: shows that it works, not how fast")
	fs.BoolVar(&f.full, "full", false, "every case, the whole grid of sizes and path MTUs too")
	fs.BoolVar(&f.list, "list", false, "list the cases and stop")
	fs.BoolVar(&f.json, "json", false, "print the raw rows as JSON instead of tables")
	fs.StringVar(&f.out, "out", "", "`directory` for raw rows (default bench/results, quick none)")
	fs.StringVar(&f.from, "from", "",
		"print the tables of a stored `file` and stop; of several, with commas, the medians")
	fs.IntVar(&f.runs, "runs", 0, "make so many whole runs and print their medians, 5 at least")
	fs.DurationVar(&f.every, "every", 0, "begin one of several runs so long after the last")
	fs.StringVar(&f.page, "page", "", "write the medians to a `file` as a page, too")
	if err := fs.Parse(args); err != nil {
		return flags{}, err
	}
	if fs.NArg() > 0 {
		return flags{}, fmt.Errorf("unexpected arguments %q", fs.Args())
	}
	if f.pairs < 0 || f.duration < 0 || f.runs < 0 || f.every < 0 {
		return flags{}, errors.New("pairs, duration, runs and every must not be negative")
	}
	if f.runs > 0 && (f.only != "" || f.quick || f.runs < result.RunsWanted) {
		return flags{}, errRuns
	}
	pairs, window, out := usualPairs, usualWindow, "bench/results"
	if f.quick {
		pairs, window, out = quickPairs, quickWindow, ""
	}
	if f.pairs == 0 {
		f.pairs = pairs
	}
	if f.duration == 0 {
		f.duration = window
	}
	if f.out == "" {
		f.out = out
	}
	return f, nil
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(runWorker(os.Args[2:]))
	}
	f, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exitOK)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status, err := run(ctx, f)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	os.Exit(status)
}

// run does what the flags ask for and returns the exit status.
func run(ctx context.Context, f flags) (int, error) {
	if f.from != "" {
		if err := showStored(f); err != nil {
			return exitFailed, err
		}
		return exitOK, nil
	}
	cases := choose(allCases(), f.only, f.full || f.list)
	if len(cases) == 0 {
		return exitUsage, fmt.Errorf("no case is called %q; --list names them", f.only)
	}
	if f.list {
		for i := range cases {
			list(&cases[i])
		}
		return exitOK, nil
	}
	if err := checkMachine(); err != nil {
		return exitSkipped, err
	}
	if f.runs > 0 {
		return measureRuns(ctx, f, cases)
	}
	_, status, err := measureOnce(ctx, f, cases)
	return status, err
}

// checkMachine says why this machine cannot measure anything.
func checkMachine() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root: namespaces, AF_XDP and XDP programs")
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		return fmt.Errorf("needs AF_XDP: %w", err)
	}
	return unix.Close(fd)
}

// finish stores and shows what was measured, also after a failure.
func finish(d *result.Document, f flags, failures []error) (int, error) {
	rows := 0
	for _, c := range d.Cases {
		rows += len(c.Rows)
	}
	if rows > 0 && f.out != "" {
		name, err := d.Save(f.out)
		if err != nil {
			failures = append(failures, err)
		} else {
			fmt.Fprintln(os.Stderr, "stored in", name)
		}
	}
	if err := show(d, f.json); err != nil {
		failures = append(failures, err)
	}
	err := errors.Join(failures...)
	switch {
	case rows == 0 && errors.Is(err, fs.ErrPermission):
		return exitSkipped, err // root, but confined: no namespaces for us
	case err != nil:
		return exitFailed, err
	case rows == 0:
		return exitSkipped, errors.New("nothing could be measured here")
	}
	return exitOK, nil
}

// show prints a document on standard output.
func show(d *result.Document, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	if err := d.WriteText(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	return d.WriteMarkdown(os.Stdout)
}

// list prints what a case is.
func list(c *benchCase) {
	when := ""
	if c.full {
		when = " (with --full, or when named)"
	}
	fmt.Printf("%-20s %s%s\n", c.name, c.title, when)
}

// choose keeps the cases whose name begins with one of the comma-separated names.
// No name keeps all of the usual run, or of the full one.
func choose(cases []benchCase, only string, full bool) []benchCase {
	var kept []benchCase
	for _, c := range cases {
		if only == "" {
			if full || !c.full {
				kept = append(kept, c)
			}
			continue
		}
		for name := range strings.SplitSeq(only, ",") {
			if name != "" && strings.HasPrefix(c.name, name) {
				kept = append(kept, c)
				break
			}
		}
	}
	return kept
}
