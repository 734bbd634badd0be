package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/heap"
)

// A siege is two connected devices and a third port on their network, whose owner
// sends what it likes.
type siege struct {
	t        *testing.T
	clock    *sim.VirtualClock
	network  *sim.Network
	tap      *recorder
	a, b     *side
	attacker xsk.Link
}

func newSiege(t *testing.T) *siege {
	t.Helper()
	return newSiegeOf(t, engine.Options{})
}

// newSiegeOf is the same with devices of these options.
func newSiegeOf(t *testing.T, o engine.Options) *siege {
	t.Helper()
	g := &siege{t: t, clock: &sim.VirtualClock{}, tap: &recorder{}}
	g.network = newNetwork(t, 1, g.clock, sim.Faults{})
	o.Clock, o.Direct, o.Tap = g.clock, true, g.tap
	devA, devB := simPair(t, g.network, o)
	port, err := g.network.NewPort(sim.PortConfig{MAC: [6]byte{2, 9}, MTU: 4200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Close() })
	g.attacker = port
	g.a, g.b = newSide(t, devA), newSide(t, devB)
	connect(t, g.a, g.b)
	g.talk()
	return g
}

// talk moves a message from a to b, which must work.
func (g *siege) talk() {
	g.t.Helper()
	g.tap.frames = nil
	virtualSend(g.t, g.network, g.clock, g.a, g.b)
}

// next is the request that a would send to b now, and b would execute.
func (g *siege) next() []byte {
	frame := bytes.Clone(g.tap.frames[0])
	psn := g.b.qp.Snapshot().ExpectedPSN
	wire.SetBTHPSN(frame[offBTH:], psn)
	reseal(frame)
	return frame
}

// attack sends a frame to b, and lets b take it.
func (g *siege) attack(frame []byte) {
	g.t.Helper()
	inject(g.t, g.attacker, frame)
	for g.b.dev.Progress() {
		continue
	}
}

// dropped is the sum of the counters of b that tell of an attack.
func (g *siege) dropped() (n uint64) {
	for name, v := range counters(g.t, g.b.dev) {
		if len(name) > 5 && name[:5] == "drop_" {
			n += v
		}
	}
	return n
}

// unmoved wants a step to leave the QP of b as it was.
func (g *siege) unmoved(step func()) {
	g.t.Helper()
	before := g.b.qp.Snapshot()
	step()
	after := g.b.qp.Snapshot()
	after.LastDrop = before.LastDrop
	if after != before {
		g.t.Fatalf("%+v became %+v", before, after)
	}
}

// fixIP makes the header checksum of a frame right.
func fixIP(frame []byte) []byte {
	binary.BigEndian.PutUint16(frame[offIP+10:], 0)
	binary.BigEndian.PutUint16(frame[offIP+10:], ipChecksum(frame[offIP:offUDP]))
	return frame
}

// foreign are frames that b would execute but for one field, with the counter that
// tells of it.
var foreign = []struct {
	counter string
	change  func(frame []byte)
}{
	{"drop_bad_source", func(f []byte) { f[offIP+15]++ }},
	{"drop_bad_source", func(f []byte) { f[offIP+12] ^= 0x40 }},
	{"drop_bad_source", func(f []byte) { f[offIP+19] ^= 0x40 }},
	{"drop_bad_pkey", func(f []byte) { f[offBTH+3] ^= 1 }},
	{"drop_bad_pkey", func(f []byte) { f[offBTH+2], f[offBTH+3] = 0, 0 }},
	{"drop_wrong_service", func(f []byte) { f[offBTH] |= byte(wire.UCSendOnly) }},
	{"drop_unknown_qpn", func(f []byte) { f[offBTH+7]++ }},
	{"drop_multicast", func(f []byte) { copy(f[offBTH+5:], []byte{0xff, 0xff, 0xff}) }},
	{"drop_unknown_opcode", func(f []byte) { f[offBTH] = 0x1f }},
	{"drop_bad_tver", func(f []byte) { f[offBTH+1] |= 1 }},
}

// TestHostileSpoofedPacketsToDevice: 10^5 packets with the right QPN and PSN
// from the wrong place, and as many of their like: the connection does not
// move, each is counted once under its own name, and memory does not grow.
func TestHostileSpoofedPacketsToDevice(t *testing.T) {
	rounds := 10_000
	if testing.Short() || xsktest.RaceDetector { // all of it is one goroutine
		rounds = 500
	}
	g := newSiege(t)
	var frames [][]byte
	for _, f := range foreign {
		frame := g.next()
		f.change(frame)
		fixIP(frame)
		reseal(frame)
		frames = append(frames, frame)
	}
	before, drops := counters(t, g.b.dev), g.dropped()
	g.unmoved(func() {
		held := heap.Live()
		for range rounds {
			for _, frame := range frames {
				g.attack(frame)
			}
		}
		if grown := heap.Grown(held, 4<<20); grown > 4<<20 {
			t.Errorf("%d bytes more after %d packets", grown, rounds*len(frames))
		}
	})
	want := map[string]uint64{}
	for _, f := range foreign {
		want[f.counter] += uint64(rounds)
	}
	after := counters(t, g.b.dev)
	for name, n := range want {
		if got := after[name] - before[name]; got != n {
			t.Errorf("%s moved by %d, want %d", name, got, n)
		}
	}
	if got := g.dropped() - drops; got != uint64(rounds*len(frames)) {
		t.Errorf("%d drops counted of %d packets", got, rounds*len(frames))
	}
	g.talk()
}

// TestHostileOpcodesForNoQP: all opcodes for QPs that there are not: 0, 1, the
// multicast number, numbers of nobody. No QP is needed to get this far, so nothing
// may go wrong here.
func TestHostileOpcodesForNoQP(t *testing.T) {
	g := newSiege(t)
	own := g.b.qp.QPN()
	for _, qpn := range []uint32{0, 1, 2, 15, 16, own ^ 1, own ^ 0x800000, 0xfffffe, 0xffffff} {
		for op := range 256 {
			frame := g.next()
			frame[offBTH] = byte(op)
			wire.SetBTHDestQP(frame[offBTH:], qpn)
			reseal(frame)
			before, drops := counters(t, g.b.dev), g.dropped()
			g.unmoved(func() { g.attack(frame) })
			after := counters(t, g.b.dev)
			if g.dropped() != drops+1 {
				t.Fatalf("opcode %#x for QP %#x: %d drops", op, qpn, g.dropped()-drops)
			}
			name := "drop_unknown_qpn"
			if qpn == wire.MulticastQP {
				name = "drop_multicast"
			}
			known := wire.Opcode(op).Spec().Known
			if known && after["drop_bad_payload_size"] == before["drop_bad_payload_size"] &&
				after["drop_bad_length"] == before["drop_bad_length"] &&
				after[name] != before[name]+1 {
				t.Fatalf("opcode %#x for QP %#x is not counted as %s", op, qpn, name)
			}
			if !known && after["drop_unknown_opcode"] != before["drop_unknown_opcode"]+1 {
				t.Fatalf("opcode %#x is not counted as unknown", op)
			}
		}
	}
	g.talk()
}

// TestHostileLengthsToDevice: every length of a frame, with and without honest
// lengths in its headers. The connection does not notice.
func TestHostileLengthsToDevice(t *testing.T) {
	g := newSiege(t)
	whole := g.next()
	for n := offIP; n < len(whole); n++ { // no link brings less than an Ethernet header
		for _, honest := range []bool{false, true} {
			frame := bytes.Clone(whole[:n])
			if honest && n >= offBTH {
				binary.BigEndian.PutUint16(frame[offIP+2:], uint16(n-offIP))
				binary.BigEndian.PutUint16(frame[offUDP+4:], uint16(n-offUDP))
				fixIP(frame)
			}
			drops := g.dropped()
			g.unmoved(func() { g.attack(frame) })
			if g.dropped() != drops+1 {
				t.Fatalf("%d bytes, honest %t: counted %d times", n, honest, g.dropped()-drops)
			}
		}
	}
	g.talk()
}

// TestHostileGarbageToDevice: for each valid message a hundred frames of garbage:
// all messages arrive, and nothing is allocated for the garbage.
func TestHostileGarbageToDevice(t *testing.T) {
	g := newSiege(t)
	noise := uint64(88172645463325252)
	garbage := func(n int) []byte {
		f := make([]byte, n)
		for i := range f {
			noise ^= noise << 13
			noise ^= noise >> 7
			noise ^= noise << 17
			f[i] = byte(noise)
		}
		return f
	}
	var frames [][]byte
	for n := range 100 {
		f := garbage(60 + 7*n)
		switch right := g.next(); n % 4 {
		case 0: // noise in the place of the RoCE packet
			copy(f, right[:offBTH])
			binary.BigEndian.PutUint16(f[offIP+2:], uint16(len(f)-offIP)&^3+2)
			fixIP(f)
		case 1: // noise behind a right BTH
			copy(f, right[:min(len(f), offBTH+wire.BTHLen)])
			fixIP(f)
		case 2:
			copy(f, right[:6]) // only the address is right
		}
		frames = append(frames, f)
	}
	held := heap.Live()
	for range 20 {
		g.unmoved(func() {
			for _, f := range frames {
				g.attack(f)
			}
		})
		g.talk()
	}
	if grown := heap.Grown(held, 4<<20); grown > 4<<20 {
		t.Errorf("%d bytes more in use", grown)
	}
	if err := g.b.dev.Err(); err != nil {
		t.Error(err)
	}
}

// TestHostileNumbersOfDevice: the first PSNs and the QP numbers of a device are
// even and independent, also those of QPs that live at once.
func TestHostileNumbersOfDevice(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 50_000
	}
	dev := openPort(t, newNetwork(t, 1, &sim.VirtualClock{}, sim.Faults{}), 0,
		engine.Options{Clock: &sim.VirtualClock{}, Direct: true})
	if err := even(n, func() uint32 { return uint32(dev.RandomPSN()) }); err != nil {
		t.Errorf("PSNs: %v", err)
	}
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(16)
	if err != nil {
		t.Fatal(err)
	}
	init := engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1,
	}
	var live []*engine.QP
	err = even(n/50, func() uint32 {
		qp, err := dev.CreateQP(pd, init)
		if err != nil {
			t.Fatal(err)
		}
		if live = append(live, qp); len(live) == 1000 {
			for _, qp := range live {
				qp.Close()
			}
			live = live[:0]
		}
		if qp.QPN() < 16 || qp.QPN() >= wire.MulticastQP {
			t.Fatalf("QP number %#x", qp.QPN())
		}
		return qp.QPN()
	})
	if err != nil {
		t.Errorf("QP numbers: %v", err)
	}
}

// even says what is not random about n numbers of 24 bits. The limits are those
// that a right source breaks once in 10^9 runs.
func even(n int, draw func() uint32) error {
	var hist [3][256]float64
	var squares, lag, last float64
	for range n {
		num := draw()
		for i := range hist {
			hist[i][num>>(8*i)&0xff]++
		}
		x := float64(num)/(1<<24) - 0.5
		squares, lag, last = squares+x*x, lag+x*last, x
	}
	each := float64(n) / 256
	for i := range hist {
		chi := 0.0
		for _, got := range hist[i] {
			chi += (got - each) * (got - each) / each
		}
		if math.Abs(chi-255) > 7*22.6 {
			return fmt.Errorf("chi square of byte %d is %.0f", i, chi)
		}
	}
	if corr := math.Abs(lag / squares); corr > max(0.01, 7/math.Sqrt(float64(n))) {
		return fmt.Errorf("serial correlation %.4f", corr)
	}
	return nil
}

// TestHostileOpcodesInEveryState: every known opcode reaches the QP of a device
// in each state that it can be put into, from the right peer. The device goes
// on.
func TestHostileOpcodesInEveryState(t *testing.T) {
	for _, state := range []roce.State{
		roce.StateReset, roce.StateInit, roce.StateRTS, roce.StateSQD, roce.StateErr,
	} {
		g := newSiege(t)
		frame := g.next()
		switch state {
		case roce.StateInit:
			g.modify(roce.StateReset, roce.AttrState)
			g.modify(roce.StateInit,
				roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
		case roce.StateRTS:
		default:
			g.modify(state, roce.AttrState)
		}
		for op := range 256 {
			f := bytes.Clone(frame)
			f[offBTH] = byte(op)
			reseal(f)
			g.attack(f)
		}
		if state == roce.StateReset || state == roce.StateInit || state == roce.StateErr {
			if got := g.b.qp.State(); got != state {
				t.Errorf("%s became %s", state, got)
			}
		}
		if err := g.b.dev.Err(); err != nil {
			t.Errorf("in %s: %v", state, err)
		}
	}
}

func (g *siege) modify(state roce.State, mask roce.AttrMask) {
	g.t.Helper()
	a := roce.Attr{State: state, Port: 1, Access: allAccess}
	if err := g.b.qp.Modify(&a, mask); err != nil {
		g.t.Fatal(err)
	}
}
