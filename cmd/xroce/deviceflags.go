package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"xroce/bpf"
	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine"
	"xroce/roce/cc"
	"xroce/roce/clock"
	"xroce/xsk"
)

// deviceFlags say how to open a device; commands that open one share them.
type deviceFlags struct {
	backend string
	queues  queueFlags
	steer   bool
	xdpMode string
	mode    string
	busy    bool
	// busyPoll, memory and hugePages are what the sockets are to be like.
	busyPoll  time.Duration
	memory    string
	hugePages bool
	capture   string
	// reattach has the XDP program attached again when somebody detached it.
	reattach bool
	// congestion is the congestion control of the device.
	congestion string
	metrics    string
}

// register declares the flags.
func (f *deviceFlags) register(flags *pflag.FlagSet) {
	f.registerOpen(flags)
	flags.StringVar(&f.metrics, "metrics", "", metricsUsage)
	flags.StringVar(&f.capture, "capture", "",
		"keep the packets, with what came of them, in this pcapng file")
}

// registerOpen declares the flags but --capture.
func (f *deviceFlags) registerOpen(flags *pflag.FlagSet) {
	flags.StringVar(&f.backend, "backend", engine.BackendXSK,
		"AF_XDP implementation: xsk (our own rings) or asavie (for comparison)")
	f.queues.register(flags)
	flags.BoolVar(&f.steer, "steer", false, "have the card bring RoCE packets to the first of the "+
		"queues by flow rules, while the command runs")
	flags.StringVar(&f.xdpMode, "xdp-mode", "auto",
		"where the XDP program runs: auto, native, generic")
	flags.StringVar(&f.mode, "xsk-mode", "auto", "how frames travel: auto, copy, zero-copy")
	flags.BoolVar(&f.busy, "busy", false, "never sleep: lowest latency, one CPU always busy")
	flags.BoolVar(&f.reattach, "reattach", false,
		"attach the XDP program again when somebody has detached it")
	flags.DurationVar(&f.busyPoll, "busy-poll", 0, "prefer busy polling, for so long at a time: "+
		"the card's driver works in our calls, as with 50us; 'xroce check' tells what it needs")
	flags.StringVar(&f.memory, "memory", "", "most that frames and rings of the device may take: "+
		"8M for one of many (default: 56M for one queue)")
	flags.BoolVar(&f.hugePages, "huge-pages", false,
		"take frames from the huge pages that the system has reserved")
	flags.StringVar(&f.congestion, "congestion", "off", "congestion control: off, notify "+
		"(only answer marks of switches), dcqcn or swift")
}

// options turns the flags into engine.Options, or tells what is wrong with them.
func (f *deviceFlags) options(a *app) (engine.Options, error) {
	o := engine.Options{
		Backend: f.backend, Busy: f.busy, Logger: a.logger, Steer: f.steer, BusyPoll: f.busyPoll,
		HugePages: f.hugePages, Reattach: f.reattach,
	}
	var err error
	if o.Memory, err = parseMemory(f.memory); err != nil {
		return o, err
	}
	var ok [2]bool
	congestion, known := congestionNames[f.congestion]
	o.Congestion = congestion
	o.Attach, ok[0] = lookup(f.xdpMode, bpf.Auto, bpf.Native, bpf.Generic)
	o.Mode, ok[1] = lookup(f.mode, xsk.ModeAuto, xsk.ModeCopy, xsk.ModeZeroCopy)
	a.captureFile = f.capture
	if err = a.setMetrics(f.metrics); err != nil {
		return o, err
	}
	switch {
	case f.capture == "-":
		return o, errCaptureOutput
	case f.backend != engine.BackendXSK && f.backend != engine.BackendAsavie:
		return o, usagef("no backend %q: there are %s and %s", f.backend, engine.BackendXSK,
			engine.BackendAsavie)
	case !ok[0]:
		return o, usagef("no XDP mode %q: there are auto, native and generic", f.xdpMode)
	case !ok[1]:
		return o, usagef("no XSK mode %q: there are auto, copy and zero-copy", f.mode)
	case f.busyPoll < 0 || f.busyPoll > 0 && f.busyPoll < time.Microsecond ||
		f.busyPoll > time.Second:
		return o, usagef("--busy-poll %v: it is 1us to 1s, or 0 for none", f.busyPoll)
	case f.backend == engine.BackendAsavie && (f.busyPoll > 0 || o.Memory > 0 || f.hugePages):
		return o, usagef("backend %s has neither --busy-poll nor --memory nor --huge-pages",
			f.backend)
	case !known:
		return o, usagef("no congestion control %q: there are off, notify, dcqcn and swift",
			f.congestion)
	}
	return o, f.queues.set(&o)
}

// congestionNames are what --congestion takes. The round trip of hosts like ours has the time in
// it that the peer's scheduler takes, which no window makes shorter: Swift is to keep to a
// millisecond, and not to stop at what it cannot change.
var congestionNames = map[string]*cc.Config{
	"off": nil, "notify": {}, "dcqcn": {Algorithm: cc.AlgorithmDCQCN},
	"swift": {
		Algorithm: cc.AlgorithmSwift,
		Swift:     cc.SwiftParams{Target: clock.Millisecond, MinWindow: 1},
	},
}

// parseMemory reads a number of bytes, or of KiB, MiB or GiB with the letter K, M or G; "" is 0.
func parseMemory(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	digits, unit := text, int64(1)
	if i := strings.IndexByte("KMG", text[len(text)-1]&^0x20); i >= 0 {
		digits, unit = text[:len(text)-1], 1<<(10*(i+1))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, usagef("--memory %q: want a number of bytes, or one with K, M or G, such as 8M",
			text)
	}
	return n * unit, nil
}

// lookup finds the value that prints as name.
func lookup[T fmt.Stringer](name string, values ...T) (T, bool) {
	for _, v := range values {
		if v.String() == name {
			return v, true
		}
	}
	return values[0], false
}

// openDevice opens a device, and says what to do when it cannot.
func (a *app) openDevice(iface string, o engine.Options) (*engine.Device, error) {
	open := a.open
	if a.captureFile != "" {
		open = a.openCapture
	}
	d, err := open(iface, o)
	if err != nil {
		return nil, advise(err, iface)
	}
	a.watch(d)
	a.show(d)
	if err := a.showMetrics(d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// advise adds to an error of opening a device what the user can do about it.
func advise(err error, iface string) error {
	var ofFile userfile.Failure
	switch {
	case errors.As(err, &ofFile), errors.Is(err, bpf.ErrForeignProgram),
		errors.Is(err, xsk.ErrNotSupported), errors.Is(err, xsk.ErrHugePages):
		return err // it says so itself
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w\nopening a device needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: "+
			"%s\n'xroce check %s' lists what is missing", err, host.Grant(executable()), iface)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w\na queue of %s is taken by another AF_XDP socket: end the program "+
			"that holds it ('ss --xdp -p' lists them), or take others with --queue "+
			"('ethtool -l %s' tells how many there are)", err, iface, iface)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%w\nfree memory, or raise the limit of the cgroup (memory.max): "+
			"'xroce check' shows what is left", err)
	case errors.Is(err, unix.ENOBUFS):
		return fmt.Errorf("%w\nthe limit of locked memory may be too small: "+
			"'ulimit -l unlimited', or give CAP_IPC_LOCK", err)
	}
	return err
}

// executable is the path of this program, for commands that the user may copy.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
