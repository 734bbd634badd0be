package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/stat"
	"xroce/engine/control"
)

// statRows is how many queue pairs of a device are asked for.
const statRows = 1000

// statFlags are what `xroce stat` and `xroce top` were asked.
type statFlags struct {
	device string
	pid    int
	every  float64 // seconds, 0 for once
	count  int     // of intervals, 0 for no limit
	all    bool
	perQP  bool // queue pairs are to count, each by itself
	noQP   bool // and no longer
}

func (a *app) statCommand() *cobra.Command {
	var f statFlags
	c := &cobra.Command{
		Use:   "stat",
		Short: "Show the counters of running xroce programs",
		Long: `Show the counters of the devices of running xroce programs: traffic, what was sent
again and why, drops by reason, page faults of registered memory, the rings of AF_XDP, the
verdicts of the XDP program; and their queue pairs. Counters that are 0 are left out, but
with --all.

With --qp the queue pairs count as well, each by itself: from the first time that somebody
asks a program so, for as long as they live or until --no-qp, at no cost but half a KiB of
memory each.

With -w it shows every so many seconds what has moved, per second, until it is
interrupted or -c intervals are over; of queue pairs it is how fast their PSNs move.
With --json too it prints an object a line.`,
		Example: `  xroce stat
  xroce stat -i eth0 -w 1
  xroce stat --qp -w 1     # which queue pair sends again, which has no receives?
  xroce stat --json`,
		Args: cobra.NoArgs,
	}
	f.register(c)
	flags := c.Flags()
	flags.Float64VarP(&f.every, "wait", "w", 0, "show rates every so many seconds")
	flags.BoolVarP(&f.all, "all", "a", false, "counters that are 0, too")
	flags.BoolVarP(&f.perQP, "qp", "q", false, "counters of each queue pair, too")
	flags.BoolVar(&f.noQP, "no-qp", false, "end what --qp began: queue pairs count together again")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := f.check(c.Flags().Changed("wait")); err != nil {
			return err
		}
		if f.every == 0 {
			return a.statOnce(ctx, f)
		}
		return a.watchStat(ctx, f, a.printChanges)
	})
}

func (a *app) topCommand() *cobra.Command {
	f := statFlags{every: 1}
	c := &cobra.Command{
		Use:   "top",
		Short: "Show what running xroce programs do, as top does",
		Long: `Show what the devices of running xroce programs do, each second: packets and bits,
what was sent again, drops with their reasons, and the busiest queue pairs, whose PSNs
move fastest. Ctrl-C ends it. Where the output is no terminal, screens follow each other.`,
		Example: `  xroce top
  xroce top -w 5 -c 3 > three-times.txt`,
		Args: cobra.NoArgs,
	}
	f.register(c)
	c.Flags().Float64VarP(&f.every, "wait", "w", 1, "seconds from one screen to the next")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := f.check(true); err != nil {
			return err
		}
		return a.watchStat(ctx, f, a.printScreen)
	})
}

// register declares the flags that both have.
func (f *statFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.device, "interface", "i", "", "only this interface")
	flags.IntVar(&f.pid, "pid", 0, "only this process")
	flags.IntVarP(&f.count, "count", "c", 0, "end after so many intervals")
}

// check tells what is wrong with the flags.
func (f *statFlags) check(rates bool) error {
	switch {
	case rates && (!(f.every >= 0.1) || f.every > 86400):
		return usagef("-w %g is not in 0.1..86400", f.every)
	case f.perQP && f.noQP:
		return usagef("--qp and --no-qp: one of them")
	case f.pid < 0:
		return usagef("--pid %d is negative", f.pid)
	case f.count < 0:
		return usagef("-c %d is negative", f.count)
	case f.count > 0 && !rates:
		return usagef("-c is for -w")
	}
	return nil
}

// counting is what programs are to do about counters of queue pairs.
func (f *statFlags) counting() control.Counting {
	switch {
	case f.perQP:
		return control.CountEach
	case f.noQP:
		return control.CountTogether
	}
	return control.CountAsBefore
}

// heard takes why programs did not answer. Where others did, or that is enough, it is told, and
// nothing fails; but the end of the command is no fault of theirs.
func (a *app) heard(ctx context.Context, enough bool, err error) error {
	if err == nil || !enough || ctx.Err() != nil {
		return err
	}
	a.logger.Warn("not all processes answered", "error", err.Error())
	return nil
}

// sample asks the programs. In one that is not the first a program may be about to end.
func (a *app) sample(ctx context.Context, f statFlags, first bool) (stat.Sample, error) {
	answers, err := control.AskStatistics(ctx, a.runtime, f.pid, statRows, f.counting())
	if err = a.heard(ctx, len(answers) > 0, err); err != nil {
		if first || ctx.Err() != nil {
			return stat.Sample{}, err
		}
		a.logger.Warn("no process answered", "error", err.Error())
	}
	s := stat.NewSample(answers, f.device)
	switch {
	case len(s.Devices) > 0:
	case f.pid != 0 && len(answers) == 0:
		return s, fmt.Errorf("no xroce process %d has a control socket in %s", f.pid, a.runtime)
	case f.device != "":
		return s, fmt.Errorf("no xroce process has device %s", f.device)
	}
	return s, nil
}

// statOnce shows counters.
func (a *app) statOnce(ctx context.Context, f statFlags) error {
	s, err := a.sample(ctx, f, true)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s.Devices)
	}
	var b strings.Builder
	for i := range s.Devices {
		s.Devices[i].AppendTable(&b, f.all)
	}
	a.printf("%s", b.String())
	return nil
}

// watchStat shows what moves, until the command is to end.
func (a *app) watchStat(
	ctx context.Context, f statFlags, show func([]stat.Change) error,
) error {
	before, err := a.sample(ctx, f, true)
	if err != nil {
		return err
	}
	a.waiting.Store(true) // to be interrupted is how it ends
	ticks := time.NewTicker(time.Duration(f.every * float64(time.Second)))
	defer ticks.Stop()
	for n := 0; f.count == 0 || n < f.count; n++ {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := a.sample(ctx, f, false)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.waiting.Store(false)
			return err
		}
		if err := show(now.Since(&before)); err != nil {
			return err
		}
		before = now
	}
	return nil
}

// printChanges prints what moved.
func (a *app) printChanges(changes []stat.Change) error {
	if a.json {
		var errs []error
		for i := range changes {
			line, err := json.Marshal(&changes[i])
			if err == nil {
				_, err = a.stdout.Write(append(plain.JSON(line), '\n'))
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	var b strings.Builder
	for i := range changes {
		changes[i].AppendTable(&b)
	}
	a.printf("%s\n", b.String())
	return nil
}

// printScreen prints a screen of top.
func (a *app) printScreen(changes []stat.Change) error {
	if a.json {
		return a.printChanges(changes)
	}
	lines, begin := 1<<10, ""
	if rows := a.terminalRows(); rows > 0 {
		lines, begin = rows-1, "\x1b[H\x1b[2J" // home, and nothing else there
	}
	// The screen is text of other processes, and is made plain; what clears it is ours.
	_, err := fmt.Fprint(a.stdout, begin, plain.Lines(stat.Screen(changes, lines)), "\n")
	return err
}

// terminalRows is how many lines the terminal has that results go to, 0 for no terminal.
func (a *app) terminalRows() int {
	out, ok := a.stdout.(*output)
	if !ok || !isTerminal(out.w) {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(out.w.(*os.File).Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}
