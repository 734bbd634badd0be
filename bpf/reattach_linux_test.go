package bpf

import (
	"errors"
	"io"
	"testing"

	"github.com/cilium/ebpf/link"
)

// linkOfProgram opens the link of a program as somebody else does.
func linkOfProgram(t *testing.T, p *Program) link.Link {
	t.Helper()
	return openLink(t, p.at.link)
}

// openLink opens a link once more, by its number.
func openLink(t *testing.T, of link.Link) link.Link {
	t.Helper()
	info, err := of.Info()
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.NewFromID(info.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// wantAttached asks the program and, for a second opinion, netlink.
func (n *network) wantAttached(t *testing.T, p *Program, want bool) {
	t.Helper()
	if got, err := p.Attached(); got != want || err != nil {
		t.Errorf("attached: %v (%v), want %v", got, err, want)
	}
	if got := n.xdpOf(t).ProgId == uint32(p.id); got != want {
		t.Errorf("netlink: the program is attached: %v, want %v", got, want)
	}
}

// TestCloseDetaches: a program that was closed is gone, and another one can be attached, while
// somebody has another descriptor of its link, as a process has that is being started.
func TestCloseDetaches(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	closed := func(of link.Link, p io.Closer) {
		t.Helper()
		openLink(t, of)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if x := n.xdpOf(t); x.Attached {
			t.Errorf("still attached: %+v", x)
		}
	}
	for range 2 {
		p := n.attach(t, Options{})
		closed(p.at.link, p)
		c, err := Collect(n.dev.Index, Filter{UDPPorts: []uint16{9}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		closed(c.at.link, c)
	}
}

// TestLooksDoNotAllocate: a device asks all the time.
func TestLooksDoNotAllocate(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	p := n.attach(t, Options{})
	allocated := testing.AllocsPerRun(100, func() {
		if attached, err := p.Attached(); !attached || err != nil {
			t.Errorf("attached: %v (%v)", attached, err)
		}
		if _, err := p.Count(PassNoSocket); err != nil {
			t.Error(err)
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestReattach: a program that somebody detached, or whose place somebody took, comes back
// with what it owns, in the mode that it had.
func TestReattach(t *testing.T) {
	for _, c := range []struct {
		name string
		mode Mode
		take func(*testing.T, *network, *Program)
	}{
		{"detached, native", Native, detach},
		{"detached, generic", Generic, detach},
		{"replaced", Native, func(t *testing.T, _ *network, p *Program) {
			if err := linkOfProgram(t, p).Update(foreign(t)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, 1500, nil)
			p := n.attach(t, Options{Mode: c.mode})
			key, err := AddrKey(ownIPv4)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Own(key); err != nil {
				t.Fatal(err)
			}
			n.wantAttached(t, p, true)
			if err := p.Reattach(); err != nil {
				t.Errorf("of a program that is attached: %v", err)
			}
			for range 2 {
				c.take(t, n, p)
				n.wantAttached(t, p, false)
				if err := p.Reattach(); err != nil {
					t.Fatal(err)
				}
				n.wantAttached(t, p, true)
			}
			if x := n.xdpOf(t); x.AttachMode != uint32(c.mode) {
				t.Errorf("attach mode %d, want that of %v", x.AttachMode, c.mode)
			}
			n.echo(t, ourAddr4, 4791, 100)
			counts, err := p.Counters()
			if err != nil || counts[PassNoSocket].Packets != 1 {
				t.Errorf("%d packets of its own (%v), want 1", counts[PassNoSocket].Packets, err)
			}
		})
	}
}

// detach takes the program off the interface as bpftool link detach does.
func detach(t *testing.T, _ *network, p *Program) {
	t.Helper()
	if err := linkOfProgram(t, p).Detach(); err != nil {
		t.Fatal(err)
	}
}

// TestReattachLeavesStrangers: what somebody put in the place of the program stays there, and
// is named. When that has gone, the program comes back.
func TestReattachLeavesStrangers(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	p := n.attach(t, Options{})
	detach(t, n, p)
	l, err := link.AttachXDP(link.XDPOptions{Program: foreign(t), Interface: n.dev.Index})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Reattach(); !errors.Is(err, ErrForeignProgram) {
		t.Errorf("%v, want ErrForeignProgram", err)
	}
	n.wantAttached(t, p, false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Reattach(); err != nil {
		t.Error(err)
	}
	n.wantAttached(t, p, true)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Attached(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := p.Reattach(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
