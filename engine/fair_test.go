package engine_test

import (
	"encoding/binary"
	"math"
	"testing"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest"
)

// jain is the fairness index of Jain: 1 when all are equal, 1/n when one has
// everything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// A meter is a tap that counts the bytes sent to each QP, until the first packet
// to one of them.
type meter struct {
	bytes map[uint32]int
	until uint32
}

func (m *meter) Frame(dir capture.Direction, head, tail []byte) {
	if dir == capture.Outbound && m.bytes[m.until] == 0 {
		m.bytes[binary.BigEndian.Uint32(head[offBTH+4:])&0xffffff] += len(head) + len(tail)
	}
}

// fairPair joins two devices in direct mode, the first with a meter, on a wire
// without delay.
func fairPair(t *testing.T) (devA, devB *engine.Device, m *meter) {
	t.Helper()
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{})
	m = &meter{bytes: map[uint32]int{}}
	var devs [2]*engine.Device
	for i := range devs {
		o := engine.Options{Clock: clock, Direct: true}
		if i == 0 {
			o.Tap = m
		}
		devs[i] = openPort(t, network, i, o)
	}
	return devs[0], devs[1], m
}

// A load keeps the send queue of one end of a connection full.
type load struct {
	from, to *side
	opcode   roce.Opcode
	size     int
}

// fill posts until the queue is full and takes the completions.
func (l *load) fill(t *testing.T) {
	t.Helper()
	var wcs [64]roce.Completion
	for n := len(wcs); n == len(wcs); {
		var err error
		if n, err = l.from.cq.Poll(wcs[:]); err != nil {
			t.Fatal(err)
		}
		for _, wc := range wcs[:n] {
			if wc.Status != roce.StatusSuccess {
				t.Fatalf("%s of %d bytes: %s", l.opcode, l.size, wc.Status)
			}
		}
	}
	for {
		err := l.from.qp.PostSend(&roce.SendWR{
			Opcode: l.opcode, Flags: roce.SendSignaled,
			SGList: []roce.SGE{l.from.mr.SGE(0, l.size)}, RemoteAddr: l.to.mr.Addr(),
			RKey: l.to.mr.RKey(),
		})
		if err != nil {
			return
		}
	}
}

// TestFairShares has QPs of one device send as much as they can, messages of
// different sizes and the answers to READs, and compares the bytes of each.
func TestFairShares(t *testing.T) {
	rounds := 1000
	if xsktest.RaceDetector {
		rounds = 40
	}
	for _, tt := range []struct {
		name   string
		writes []int // sizes of the messages of each QP that writes
		reads  []int // and of each that is read from
	}{
		{"two", []int{64, 65536}, nil},
		{"sizes", []int{64, 256, 1024, 4096, 65536, 1 << 20}, nil},
		{"reads", nil, []int{16384, 65536, 1 << 20}},
		{"both", []int{512, 65536}, []int{16384, 65536}},
		{"one is read from", []int{4096, 4096, 4096, 4096}, []int{1 << 20}},
	} {
		devA, devB, m := fairPair(t)
		var loads []load
		var peers []uint32
		join := func(op roce.Opcode, size int) {
			init := engine.QPInit{MaxSendWR: 1024, Window: 1024}
			a, b := newSideOf(t, devA, init), newSideOf(t, devB, init)
			connect(t, a, b)
			peers = append(peers, b.qp.QPN())
			if op == roce.OpRead {
				a, b = b, a
			}
			loads = append(loads, load{a, b, op, size})
		}
		for _, size := range tt.writes {
			join(roce.OpWrite, size)
		}
		for _, size := range tt.reads {
			join(roce.OpRead, size)
		}
		keepBusy(t, devA, devB, loads, rounds/5) // until all are at it
		clear(m.bytes)
		keepBusy(t, devA, devB, loads, rounds)
		var shares []float64
		for _, qpn := range peers {
			shares = append(shares, float64(m.bytes[qpn]))
		}
		index := jain(shares)
		t.Logf("%s: Jain index %.5f of %.0f", tt.name, index, shares)
		if math.IsNaN(index) || index < 0.99 {
			t.Errorf("%s: Jain index %.5f of %.0f", tt.name, index, shares)
		}
	}
}

// keepBusy lets all send for so many rounds of the first device.
func keepBusy(t *testing.T, devA, devB *engine.Device, loads []load, rounds int) {
	t.Helper()
	for range rounds {
		for i := range loads {
			loads[i].fill(t)
		}
		// The peer keeps up, so that sending is what is short.
		devA.Progress()
		for devB.Progress() {
			continue
		}
	}
}

// TestFlood has one QP say little while others send all they can: what it says
// waits for one turn of each of them.
func TestFlood(t *testing.T) {
	const flooding = 4
	words := 100
	if xsktest.RaceDetector {
		words = 5
	}
	devA, devB, m := fairPair(t)
	var loads []load
	for range flooding {
		a, b := newSide(t, devA), newSide(t, devB)
		connect(t, a, b)
		loads = append(loads, load{a, b, roce.OpWrite, 1 << 20})
	}
	quiet, peer := newSide(t, devA), newSide(t, devB)
	connect(t, quiet, peer)
	m.until = peer.qp.QPN()
	keepBusy(t, devA, devB, loads, 100)
	for range words {
		keepBusy(t, devA, devB, loads, 7)
		clear(m.bytes)
		postWrites(t, quiet, peer, 1, 64)
		for m.bytes[peer.qp.QPN()] == 0 {
			keepBusy(t, devA, devB, loads, 1)
		}
		for _, l := range loads {
			if n := m.bytes[l.to.qp.QPN()]; n > 16<<10+4200 {
				t.Fatalf("%d bytes of another meanwhile", n)
			}
		}
		for n := 0; n == 0; {
			var wcs [1]roce.Completion
			var err error
			if n, err = quiet.cq.Poll(wcs[:]); err != nil || wcs[0].Status != roce.StatusSuccess {
				t.Fatal(err, wcs[0].Status)
			}
			keepBusy(t, devA, devB, loads, 1)
		}
	}
}
