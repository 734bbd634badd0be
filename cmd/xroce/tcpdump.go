package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/dump"
	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture/filter"
	"xroce/engine/control"
)

// maxSnap is the longest packet that is taken, in bytes.
const maxSnap = 262144

// tcpdumpFlags are what `xroce tcpdump` was asked.
type tcpdumpFlags struct {
	from  string // -i
	file  string // -w
	count uint64
	snap  int
	files dump.Files
	every int // seconds
	size  int64
	list  bool
}

func (a *app) tcpdumpCommand() *cobra.Command {
	var f tcpdumpFlags
	c := &cobra.Command{
		Use:   "tcpdump [-i IFACE|PID[:IFACE]] [-w FILE] [FILTER]",
		Short: "Show or keep the packets of a running xroce program, or of an interface",
		Long: `Show the packets of a running xroce program, which tcpdump cannot see: AF_XDP takes
them before the kernel. A program shows its packets on its control socket (see
'xroce res'), with what came of each: queue pair, work request, verdict and reason. It
is never held up: what there is no time for is missing, and counted. Where no program
has the interface, the kernel makes copies of its packets, as for tcpdump. Where a
program has several devices on one, the second is eth0#2 (-D lists them).

Packets are printed, a line each, which with --json is an object, or written with -w as
pcapng, with nanoseconds, direction, queue and what came of them as comment. Only those
that FILTER wants are taken, which is in the language of tcpdump and knows fields of
RoCE; "and" and "or" bind alike, from left to right:

  host 192.0.2.1 and udp port 4791        ether[12:2] == 0x8915      vlan 7
  qpn == 0x11 and opcode == READ_REQUEST  verdict == dropped

Fields are, with == != < <= > >=:

  ` + strings.Join(filter.Fields(), "\n  ") + `

It ends after -c packets, with the program, or when it is interrupted, which is no failure.
What the output does not take within 5 s of that is given up, which is one: exit code 1.`,
		Example: `  xroce tcpdump                             # of the one xroce program that runs
  xroce tcpdump -i eth0 -c 10 'qpn == 0x11 and opcode == READ_REQUEST'
  xroce tcpdump -i 4711 'verdict == dropped'  # of process 4711
  xroce tcpdump -i eth0 -w - | wireshark -k -i -
  xroce tcpdump -i eth0 -w ring.pcapng -C 100 -W 5 # the last 500 MB`,
	}
	flags := c.Flags()
	flags.StringVarP(&f.from, "interface", "i", "",
		"an interface, or a process with an optional one: eth0, 4711, 4711:eth0")
	flags.StringVarP(&f.file, "write", "w", "", "write pcapng to this file, - for the output")
	flags.Uint64VarP(&f.count, "count", "c", 0, "end after so many packets")
	flags.IntVarP(&f.snap, "snapshot-length", "s", maxSnap,
		"bytes of each packet that are taken, 0 for the default")
	flags.Int64VarP(&f.size, "file-size", "C", 0,
		"begin the next file after so many million bytes")
	flags.IntVarP(&f.every, "rotate", "G", 0,
		"begin the next file after so many seconds; FILE may have the time as in strftime(3), "+
			"and gets a number behind it where it has none")
	flags.IntVarP(&f.files.Count, "file-count", "W", 0,
		"with -C write over the oldest of so many files, with -G end after so many")
	flags.BoolVarP(&f.list, "list-interfaces", "D", false, "list what there is to watch, and end")
	return a.command(c, func(ctx context.Context, args []string) error {
		if f.list {
			return a.listInterfaces(ctx)
		}
		if err := f.check(flags.Changed("count")); err != nil {
			return err
		}
		return a.tcpdump(ctx, f, strings.Join(args, " "))
	})
}

// check tells what is wrong with the flags; counted says that -c is one of them.
func (f *tcpdumpFlags) check(counted bool) error {
	const maxSize, maxEvery, maxCount = 1 << 30, 1 << 30, 1 << 20
	f.files.Name, f.files.Size = f.file, f.size*1_000_000
	f.files.Every = time.Duration(f.every) * time.Second
	if f.snap == 0 { // as with tcpdump
		f.snap = maxSnap
	}
	switch {
	case f.snap < 0 || f.snap > maxSnap:
		return usagef("-s %d is not in 0..%d", f.snap, maxSnap)
	case f.size < 0 || f.size > maxSize:
		return usagef("-C %d is not in 0..%d", f.size, maxSize)
	case f.every < 0 || f.every > maxEvery:
		return usagef("-G %d is not in 0..%d", f.every, maxEvery)
	case f.files.Count < 0 || f.files.Count > maxCount:
		return usagef("-W %d is not in 0..%d", f.files.Count, maxCount)
	case f.count == 0 && counted:
		return usagef("-c 0: no packet is wanted")
	case f.files.Count > 0 && f.size == 0 && f.every == 0:
		return usagef("-W is for -C or -G")
	case (f.size > 0 || f.every > 0) && (f.file == "" || f.file == "-"):
		return usagef("-C and -G need -w with a file")
	}
	if f.every > 0 {
		if err := dump.CheckName(f.file); err != nil {
			return usagef("-w %w", err)
		}
	}
	return nil
}

// tcpdump shows or keeps packets.
func (a *app) tcpdump(ctx context.Context, f tcpdumpFlags, expression string) error {
	wanted, err := filter.Compile(expression)
	if err != nil {
		return usageError{err}
	}
	from, whose, err := a.openSource(ctx, f, expression, wanted)
	if err != nil {
		return err
	}
	defer from.Close()
	var to dump.Sink
	switch f.file {
	case "":
		to = dump.NewLines(a.stdout, from.Interface(), a.json)
	case "-":
		to, err = dump.NewWriter(a.stdout, from.Interface(), f.snap)
	default:
		to, err = dump.NewFiles(f.files, from.Interface(), f.snap)
	}
	if err != nil {
		return err
	}
	a.waiting.Store(true) // to be interrupted is how it ends
	fmt.Fprintf(a.stderr, "xroce: watching %s, %s\n", plain.Brief(from.Interface()), whose)
	if a.ready != nil {
		a.ready()
	}
	return a.runDump(ctx, from, to, f.count)
}

// defaultDumpPatience is how long the output may take what is left, after an interruption.
const defaultDumpPatience = 5 * time.Second

// errGivenUp is how it ends when nobody takes what was captured: a failure of its own, which an
// interruption is not.
var errGivenUp = exitError{
	exitFailure, errors.New("nobody takes what was captured: it is given up"),
}

// runDump takes packets until the end, or until the command is to end. Who does not take what was
// captured cannot keep it from that: the write that waits for him is left behind.
func (a *app) runDump(
	ctx context.Context, from dump.Source, to dump.Sink, count uint64,
) error {
	defer context.AfterFunc(ctx, func() { _ = from.Stop() })()
	type result struct {
		taken, written uint64
		err            error
	}
	done := make(chan result, 1)
	go func() {
		taken, err := dump.Run(from, to, count)
		done <- result{taken, to.Written(), err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		select {
		case r = <-done:
		case <-time.After(cmp.Or(a.dumpPatience, defaultDumpPatience)):
			return errGivenUp
		}
	}
	fmt.Fprintf(a.stderr, "%d packets captured", r.taken)
	if r.written != r.taken {
		fmt.Fprintf(a.stderr, ", %d of them written", r.written)
	}
	fmt.Fprintln(a.stderr)
	if s, known := from.Statistics(); known {
		fmt.Fprintf(a.stderr, "%d packets passed, %d of them wanted\n%d packets dropped\n",
			s.Received, s.Accepted, s.Dropped)
	} else if r.err == nil {
		a.logger.Warn("the program did not say what it counted")
	}
	if r.err != nil { // a failure of its own as well
		return exitError{exitFailure, r.err}
	}
	return nil
}

// openSource finds whose packets are meant.
func (a *app) openSource(
	ctx context.Context, f tcpdumpFlags, expression string, wanted *filter.Filter,
) (from dump.Source, whose string, err error) {
	q := control.Query{Snap: f.snap, Filter: expression}
	if q.PID, q.Device, err = a.target(ctx, f.from); err != nil {
		return nil, "", err
	}
	p, err := control.Watch(ctx, a.runtime, q)
	var refused *control.RefusedError
	whose = "which no xroce process has: copies of what the kernel sees"
	switch {
	case err == nil:
		return p, fmt.Sprintf("of process %d", p.PID), nil
	case q.PID != 0 && errors.Is(err, control.ErrNoDevice):
		return nil, "", fmt.Errorf("no xroce process %d has a control socket in %s", q.PID,
			a.runtime)
	case q.PID != 0, errors.As(err, &refused), ctx.Err() != nil:
		return nil, "", err
	case !errors.Is(err, control.ErrNoDevice):
		// Some process did not answer as it should: whether the device is its own is not known.
		a.logger.Warn("not all processes answered", "error", err.Error())
		whose = "which no xroce process that answers has: copies of what the kernel sees"
	}
	w, err := dump.OpenWire(q.Device, wanted, f.snap)
	if err != nil {
		return nil, "", err
	}
	return w, whose, nil
}

// maxNamed is how many devices an error names to choose from.
const maxNamed = 8

// target reads what -i says. Without it, it is the one device that there is.
func (a *app) target(
	ctx context.Context, from string,
) (pid int, device string, err error) {
	if from != "" {
		id, rest, both := strings.Cut(from, ":")
		if pid, err := strconv.Atoi(id); err == nil {
			switch {
			case pid <= 0:
				return 0, "", usagef("-i %s: no process has this number", from)
			case both && rest == "":
				return 0, "", usagef("-i %s: the interface is missing", from)
			}
			return pid, rest, nil
		}
		return 0, from, nil
	}
	answers, err := control.Ask(ctx, a.runtime, 0, 0, false)
	if err = a.heard(ctx, len(answers) > 0, err); err != nil {
		return 0, "", err
	}
	var names []string
	for _, answer := range answers {
		for i := range answer.Devices {
			pid, device = answer.PID, answer.Devices[i].Device
			names = append(names, fmt.Sprintf("%d:%s", pid, plain.Text(device)))
		}
	}
	switch len(names) {
	case 1:
		return pid, device, nil
	case 0:
		return 0, "", usagef("no xroce program runs: name an interface with -i")
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d others (-D lists them)", more))
	}
	return 0, "", usagef("name one with -i: %s", words(names))
}

// A watchable is something that -i can name.
type watchable struct {
	Name string `json:"name"`
	PID  int    `json:"pid,omitempty"` // 0 for an interface of the kernel
	Comm string `json:"comm,omitempty"`
}

// watchables lists what -i can name: devices of programs, and interfaces.
func (a *app) watchables(ctx context.Context) ([]watchable, error) {
	answers, err := control.Ask(ctx, a.runtime, 0, 0, false)
	if err = a.heard(ctx, true, err); err != nil {
		return nil, err
	}
	list := []watchable{}
	for _, answer := range answers {
		for i := range answer.Devices {
			list = append(list, watchable{
				fmt.Sprintf("%d:%s", answer.PID, answer.Devices[i].Device), answer.PID,
				answer.Comm,
			})
		}
	}
	interfaces, err := net.Interfaces()
	for i := range interfaces {
		list = append(list, watchable{Name: interfaces[i].Name})
	}
	return list, err
}

// listInterfaces prints what -i can name.
func (a *app) listInterfaces(ctx context.Context) error {
	list, err := a.watchables(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	for i, w := range list {
		if w.PID != 0 {
			a.printf("%d. %s (%s)\n", i+1, plain.Text(w.Name), plain.Text(w.Comm))
			continue
		}
		a.printf("%d. %s\n", i+1, w.Name)
	}
	return nil
}

var _ dump.Source = (*control.Packets)(nil)
