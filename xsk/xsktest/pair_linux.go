package xsktest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
)

// Options say what pair Pair makes.
type Options = vethpair.Options

// The ends of a pair.
const (
	A = vethpair.A
	B = vethpair.B
)

// rootError says what is missing for tests that need root.
func rootError() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("effective user id is %d, want 0", uid)
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no AF_XDP socket: %w", err)
	}
	return unix.Close(fd)
}

// NewPair makes two fresh network namespaces joined by a veth pair and removes
// them at the end of the test. It needs root, see NeedRoot.
func NewPair(t testing.TB, o Options) *Pair {
	t.Helper()
	NeedRoot(t)
	if _, err := vethpair.Sweep(); err != nil {
		t.Logf("sweep of stale namespaces: %v", err)
	}
	p, err := vethpair.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close veth pair: %v", err)
		}
	})
	return &Pair{Pair: p, t: t}
}

// Pair is a vethpair.Pair that fails its test by itself.
type Pair struct {
	*vethpair.Pair
	t testing.TB
}

// Do runs f with the goroutine's thread inside the namespace of one end. f may
// end the test.
func (p *Pair) Do(s vethpair.Side, f func()) {
	p.t.Helper()
	if err := p.Pair.Do(s, func() error { f(); return nil }); err != nil {
		p.t.Fatal(err)
	}
}

// Attach attaches an XDP program to one end that gives every frame of queue i to
// the socket fds[i], also frames of several buffers, and passes frames of other
// queues on. It detaches at the end of the test.
func (p *Pair) Attach(s vethpair.Side, fds ...int) *Program {
	p.t.Helper()
	prog := &Program{t: p.t}
	p.Do(s, func() { prog.attach(p.End(s).Ifindex, max(len(fds), 1)) })
	for queue, fd := range fds {
		prog.Register(queue, fd)
	}
	return prog
}

// Program is an attached XDP program that takes every frame of its sockets.
type Program struct {
	t      testing.TB
	xsks   *ebpf.Map
	detach func()
}

// Detach takes the program off its interface before the end of the test.
func (p *Program) Detach() { p.detach() }

// Register makes the program give the frames of a queue to a socket.
func (p *Program) Register(queue, fd int) {
	p.t.Helper()
	if err := p.xsks.Put(uint32(queue), uint32(fd)); err != nil {
		p.t.Fatalf("put socket of queue %d into the XSKMAP: %v", queue, err)
	}
}

// attach loads and attaches the program.
func (p *Program) attach(ifindex, queues int) {
	p.t.Helper()
	var err error
	p.xsks, err = ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues),
	})
	if err != nil {
		p.t.Fatalf("make XSKMAP: %v", err)
	}
	const (
		xdpPass       = 2
		rxQueueIndex  = 16     // offset in struct xdp_md
		hasFragsFlags = 1 << 5 // BPF_F_XDP_HAS_FRAGS
	)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP,
		Instructions: asm.Instructions{
			// return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS)
			asm.LoadMem(asm.R2, asm.R1, rxQueueIndex, asm.Word),
			asm.LoadMapPtr(asm.R1, p.xsks.FD()),
			asm.Mov.Imm(asm.R3, xdpPass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
		License: "Dual MIT/GPL",
		Flags:   hasFragsFlags,
	})
	if err != nil {
		p.t.Fatalf("load XDP program: %v", err)
	}
	l, err := link.AttachXDP(link.XDPOptions{
		Program: prog, Interface: ifindex, Flags: link.XDPDriverMode,
	})
	if err != nil {
		p.t.Fatalf("attach XDP program: %v", err)
	}
	p.detach = sync.OnceFunc(func() {
		// The order does not matter; a device that was deleted is fine. Others may look at all
		// links just now, and hold what is only closed.
		_ = l.Detach()
		_ = l.Close()
		_ = prog.Close()
		_ = p.xsks.Close()
	})
	p.t.Cleanup(p.detach)
}
