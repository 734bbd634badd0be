package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnsupported = 3 // this machine or this user cannot do it
)

// flags are the command line.
type flags struct {
	only       *regexp.Regexp
	list       bool
	json       bool
	keep       string
	updateDocs bool
	exec       string
	xroce      string
	limit      time.Duration
}

func parseFlags(args []string) (flags, error) {
	var f flags
	var only string
	fs := flag.NewFlagSet("interop", flag.ContinueOnError)
	fs.StringVar(&only, "only", "", "run the cases whose name `regexp` matches")
	fs.BoolVar(&f.list, "list", false, "list the cases and stop")
	fs.BoolVar(&f.json, "json", false, "print the outcomes as JSON, progress on stderr")
	fs.StringVar(&f.keep, "keep", "", "keep the capture, and the output of failed cases, in `dir`")
	fs.BoolVar(&f.updateDocs, "update-docs", false, "write the tables of docs/interop.md anew")
	fs.StringVar(&f.exec, "exec", "", "run a shell `command` in the VM instead of the cases")
	fs.StringVar(&f.xroce, "xroce", "", "run this `program` (default: that of this source)")
	fs.DurationVar(&f.limit, "limit", 20*time.Minute, "give up after this `time`")
	if err := fs.Parse(args); err != nil {
		return flags{}, err
	}
	if fs.NArg() > 0 {
		return flags{}, fmt.Errorf("unexpected arguments %q", fs.Args())
	}
	if f.updateDocs && only != "" {
		return flags{}, errors.New("--update-docs writes what came of all cases, without --only")
	}
	var err error
	f.only, err = regexp.Compile(only)
	return f, err
}

func main() {
	f, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exitOK)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(exitUsage)
	}
	// Whoever reads the output may leave before the end, which has to be orderly.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	status, err := run(ctx, f)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
	}
	os.Exit(status)
}

// run does what the flags ask for and returns the exit status.
func run(ctx context.Context, f flags) (status int, err error) {
	var cases []Case
	for _, c := range plan() {
		if f.only.MatchString(c.Name()) {
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return exitUsage, errors.New("no case has such a name; --list names them")
	}
	if f.list {
		for _, c := range cases {
			fmt.Println(c.Name())
		}
		return exitOK, nil
	}
	if err := prepare(ctx); err != nil {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) {
			return exitUnsupported, err
		}
		return exitFailed, err
	}
	lab, err := openLab(ctx, f.xroce)
	if err != nil {
		return exitFailed, err
	}
	defer func() {
		if closeErr := lab.close(); closeErr != nil {
			status, err = exitFailed, errors.Join(err, closeErr)
		}
	}()
	if f.exec != "" {
		out, code, err := lab.vm.Run(ctx, f.exec)
		fmt.Print(out)
		return code, err
	}
	return runCases(ctx, lab, cases, f)
}

// runCases runs the cases, prints what came of each, and the verdict at last.
func runCases(ctx context.Context, lab *lab, cases []Case, f flags) (int, error) {
	start := time.Now()
	out := os.Stdout
	if f.json {
		out = os.Stderr
	}
	var outcomes []Outcome
	tell := func(o Outcome) {
		outcomes = append(outcomes, o)
		fmt.Fprintf(out, "[%d/%d] %s\n", len(outcomes), len(cases), o.line())
	}
	var traces []Case
	for _, c := range cases {
		if c.Trace {
			traces = append(traces, c)
			continue
		}
		o := lab.try(ctx, c)
		if o.Verdict == failed && !o.Damaged && ctx.Err() == nil {
			fmt.Fprintln(out, o.line())
			o = lab.try(ctx, c).after(o)
		}
		tell(o)
		if ctx.Err() != nil {
			return exitFailed, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
	}
	if err := lab.trace(ctx, traces, tell); err != nil {
		return exitFailed, err
	}
	judged := lab.judge(ctx)
	fmt.Fprintln(out, judged.line())
	outcomes = append(outcomes, judged)
	if f.keep != "" {
		if err := lab.keep(f.keep, outcomes); err != nil {
			return exitFailed, err
		}
	}
	if f.updateDocs {
		if err := updateDocs(outcomes); err != nil {
			return exitFailed, err
		}
	}
	t := count(outcomes)
	if f.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(outcomes); err != nil {
			return exitFailed, err
		}
	}
	for _, o := range outcomes {
		if o.Verdict == failed {
			fmt.Fprintln(out, "failed:", o.Case.Name())
		}
	}
	fmt.Fprintf(out, "interop: %.0f s, %s\n", time.Since(start).Seconds(), lab.image.Name)
	compared, bytes := comparisons(outcomes)
	fmt.Fprintf(out, "interop: %d bytes compared in %d cases of perftest\n", bytes, compared)
	fmt.Fprintf(out, "interop: %d passed, %d failed, %d skipped\n", t[passed], t[failed],
		t[skipped])
	if t[failed] > 0 {
		return exitFailed, nil
	}
	return exitOK, nil
}
