package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
)

// A floodedLink is one that a switch sends frames of other hosts to: those that come have the
// MAC address to, unless that is zero. The simulated network sends nobody what is for others.
type floodedLink struct {
	*simPort
	to [6]byte
}

func (l *floodedLink) Receive(dst []xsk.RxFrame) int {
	n := l.simPort.Receive(dst)
	for i := range dst[:n] {
		if l.to != [6]byte{} {
			copy(dst[i].Head, l.to[:])
		}
	}
	return n
}

// newFlood is a siege in which the link of b may get frames of other hosts.
func newFlood(t *testing.T) (*siege, *floodedLink) {
	t.Helper()
	g := &siege{t: t, clock: &sim.VirtualClock{}, tap: &recorder{}}
	g.network = newNetwork(t, 1, g.clock, sim.Faults{})
	o := engine.Options{Clock: g.clock, Direct: true, Tap: g.tap}
	devA := openPort(t, g.network, 0, o)
	link := &floodedLink{simPort: newPort(t, g.network, 1)}
	devB, err := engine.OpenLink(link, link, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := devB.Close(); err != nil {
			t.Error(err)
		}
	})
	g.attacker = newPort(t, g.network, 2)
	g.a, g.b = newSide(t, devA), newSide(t, devB)
	connect(t, g.a, g.b)
	g.talk()
	return g, link
}

// TestFramesOfOtherHosts: what a switch floods or mirrors may be for our IP address and right in
// all, but was sent to another MAC address. It is dropped and counted, moves nothing and is not
// answered, also where its QP does not exist. Groups are everybody's, such as all.
func TestFramesOfOtherHosts(t *testing.T) {
	g, link := newFlood(t)
	own := link.Port().MAC
	if err := g.b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{g.b.mr.SGE(0, 100)}}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(mac *[6]byte){
		"last bit":  func(m *[6]byte) { m[5] ^= 0x40 },
		"local bit": func(m *[6]byte) { m[0] ^= 2 },
	} {
		for _, qp := range []byte{0, 1} {
			frame := g.next()
			frame[offBTH+7] += qp
			reseal(frame)
			link.to = own
			change(&link.to)
			before, all := counterOf(t, g.b.dev, "drop_not_local"), g.dropped()
			for g.b.dev.Progress() {
				continue // what it has to say of what it was sent before
			}
			g.tap.frames = g.tap.frames[:1]
			g.unmoved(func() { g.attack(frame) })
			if n := counterOf(t, g.b.dev, "drop_not_local") - before; n != 1 ||
				g.dropped() != all+1 {
				t.Errorf("%s, QP +%d: counted %d times, %d drops", name, qp, n, g.dropped()-all)
			}
			if n := len(g.tap.frames) - 1; n > 0 {
				t.Errorf("%s, QP +%d: %d answers", name, qp, n)
			}
		}
	}
	link.to = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	before, psn := g.dropped(), g.b.qp.Snapshot().ExpectedPSN
	g.attack(g.next())
	if g.dropped() != before || g.b.qp.Snapshot().ExpectedPSN != psn.Add(1) {
		t.Errorf("to all: %d drops, %v", g.dropped()-before, g.b.qp.Snapshot())
	}
}
