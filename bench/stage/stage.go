package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"xroce/bench/worker"
	"xroce/xsk/vethpair"
)

// A Side is one end of the pair.
type Side = vethpair.Side

// The two ends. A sends or asks, B receives or answers.
const (
	A = vethpair.A
	B = vethpair.B
)

// qdisc is what each end has: a queueing discipline with an enqueue function
// makes veth stop the sender instead of dropping (kernel drivers/net/veth.c,
// veth_xmit).
const (
	qdisc      = "pfifo"
	qdiscLimit = 1000 // packets
)

// serial tells the stages of one process apart.
var serial atomic.Int64

// Options say what stage to build.
type Options struct {
	MTU      int  // of both ends, in bytes without the Ethernet header
	Threaded bool // threaded NAPI at B, on B's processor
	// Untuned leaves the ends as veth makes them: without a qdisc, and with NAPI in the
	// sender's softirq. A full ring then drops.
	Untuned bool

	// Even gives that thread the priority of its reader. Beside programs that only compute
	// it would otherwise hardly ever run, and nothing would arrive.
	Even bool
}

// threaded reports whether B receives in a thread.
func (o Options) threaded() bool { return o.Threaded && !o.Untuned }

// Settings are the facts of a stage that belong beside a number.
type Settings struct {
	Driver string `json:"driver"`
	MTU    int    `json:"mtu"`
	Qdisc  string `json:"qdisc"`
	NAPI   string `json:"napi"`
	CPUs   [2]int `json:"cpus"` // of A and B
}

// A Stage is a built pair. One goroutine drives it.
type Stage struct {
	options Options
	pair    *vethpair.Pair
	prefix  string
	cpus    [2]int
}

// Open builds a stage. It needs root and iproute2 and taskset. What stages of
// processes that were killed left behind is removed.
func Open(ctx context.Context, o Options) (*Stage, error) {
	cpus, err := processors()
	if err != nil {
		return nil, err
	}
	if _, err := vethpair.Sweep(); err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	pair, err := vethpair.New(vethpair.Options{
		MTU: o.MTU, PfifoLimit: qdiscLimit, NoQdisc: o.Untuned, NoAddrs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	s := &Stage{
		options: o,
		pair:    pair,
		prefix:  fmt.Sprintf("xb%d-%d", os.Getpid(), serial.Add(1)),
		cpus:    cpus,
	}
	if err := s.build(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// build gives the ends names and IPv4 addresses. The pair has no addresses of its
// own, because with them come those of IPv6 and frames that nobody sent.
func (s *Stage) build(ctx context.Context) error {
	for _, side := range []Side{A, B} {
		end, dev, other := s.pair.End(side), s.Interface(side), B-side
		for _, line := range []string{
			"ip link set " + end.Name + " down",
			"ip link set " + end.Name + " name " + dev,
			"ip link set " + dev + " up",
			"ip addr add " + s.Address(side).String() + "/24 dev " + dev,
			// ARP does not get past a program that redirects everything.
			"ip neigh replace " + s.Address(other).String() + " lladdr " + s.MAC(other).String() +
				" dev " + dev + " nud permanent",
		} {
			if err := s.Inside(ctx, side, strings.Fields(line)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close removes the stage. It is idempotent.
func (s *Stage) Close() error {
	if err := s.pair.Close(); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return nil
}

// Start runs a worker on a side: in its namespace, on its processor.
func (s *Stage) Start(ctx context.Context, side Side, argv ...string) (*worker.Process, error) {
	return worker.Start(ctx, s.wrap(side, argv)...)
}

// Command is a program to run on a side that is not a worker.
func (s *Stage) Command(ctx context.Context, side Side, argv ...string) *exec.Cmd {
	argv = s.wrap(side, argv)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// wrap puts argv into the namespace and on the processor of a side. Both
// wrappers exec, so the process started is the worker itself.
func (s *Stage) wrap(side Side, argv []string) []string {
	return append([]string{
		"ip", "netns", "exec", s.namespace(side),
		"taskset", "-c", strconv.Itoa(s.cpus[side]),
	}, argv...)
}

// Interface is the name of a side's interface, unique on the machine so that its
// NAPI thread can be told from others.
func (s *Stage) Interface(side Side) string { return s.prefix + string("ab"[side]) }

// Address is a side's IPv4 address, from the block for documentation (RFC 5737).
func (s *Stage) Address(side Side) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(side) + 1})
}

// MAC is a side's Ethernet address.
func (s *Stage) MAC(side Side) net.HardwareAddr { return s.pair.End(side).MAC }

// Settings are the facts to store beside the numbers.
func (s *Stage) Settings() Settings {
	napi, queueing := "in the sender's softirq", fmt.Sprintf("%s limit %d", qdisc, qdiscLimit)
	if s.options.Untuned {
		queueing = "noqueue, untuned"
	}
	if s.options.threaded() {
		napi = fmt.Sprintf("threaded at B, on B's processor, nice %d; in the sender's softirq at A",
			s.options.niceness())
	}
	return Settings{
		Driver: "veth", MTU: s.options.MTU, Qdisc: queueing,
		NAPI: napi, CPUs: s.cpus,
	}
}

func (s *Stage) namespace(side Side) string { return s.pair.End(side).Namespace }

// Inside runs a tool in the namespace of a side, on any processor, and adds what it wrote to its
// error.
func (s *Stage) Inside(ctx context.Context, side Side, argv ...string) error {
	return run(ctx, "ip", append([]string{"netns", "exec", s.namespace(side)}, argv...)...)
}

// processors picks one for each side from those this process may use: the same
// one twice when there is no other.
func processors() ([2]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return [2]int{}, fmt.Errorf("stage: sched_getaffinity: %w", err)
	}
	var found []int
	for cpu := 0; len(found) < 2 && cpu < 8*len(set)*8; cpu++ {
		if set.IsSet(cpu) {
			found = append(found, cpu)
		}
	}
	return [2]int{found[0], found[len(found)-1]}, nil
}

// run runs a tool and adds what it wrote to its error.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stage: %s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(string(out)))
	}
	return nil
}
