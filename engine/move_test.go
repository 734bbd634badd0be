package engine_test

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// TestQPMoves: a QP whose packets all come to the queue of another driver moves there in the middle
// of its traffic, in both directions at once, unless that is turned off. Nothing is lost or
// overtaken.
func TestQPMoves(t *testing.T) {
	for _, stays := range []bool{false, true} {
		dev, peer, _ := twoQueues(t, engine.Options{NoRebalance: stays, CountQPs: true})
		here := onQueues(t, dev)
		for i, a := range here {
			b := newSide(t, peer)
			connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
			// Who moves it is another goroutine, which may be late.
			late := time.Now().Add(timeout.Scaled(20 * time.Second))
			stray := func() bool { return !stays && engine.QueueOf(a.qp) != 0 }
			for n := 0; n < 3 || stray() && time.Now().Before(late); n++ {
				writeBothWays(t, a, b)
			}
			if got := engine.QueueOf(a.qp); got != 0 && !stays || stays && got != i {
				t.Errorf("QP %d is on queue %d", i, got)
			}
		}
		moves := uint64(1)
		if stays {
			moves = 0
		}
		if n := counterOf(t, dev, "qp_moves"); n != moves {
			t.Errorf("%d moves", n)
		}
		sent := uint64(0) // each QP takes along what it has counted
		for _, qp := range dev.Resources(len(here)).QPs {
			sent += qp.Counters["sent_pkts"]
		}
		if all := counterOf(t, dev, "sent_pkts"); sent != all || sent == 0 {
			t.Errorf("the QPs have sent %d packets of %d", sent, all)
		}
		here[1].qp.Close()
		if n := dev.Resources(0).Total.QP; n != 1 {
			t.Errorf("%d QPs", n)
		}
		for _, d := range []*engine.Device{dev, peer} {
			expectNoLoss(t, d)
		}
	}
}

// TestQPsMoveOnACard is that with four drivers on each side of a wire that scatters connections.
func TestQPsMoveOnACard(t *testing.T) {
	xsktest.NeedRoot(t)
	before := xsktest.Overruns(t)
	_, devs := vethPair(t, vethpair.Options{
		MTU: 4200, Queues: 4, Scatter: vethpair.ScatterFlows,
	}, [2]engine.Options{{Drivers: 4}, {Drivers: 2}})
	for range 6 {
		a, b := newSide(t, devs[0]), newSide(t, devs[1])
		connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
		writeBothWays(t, a, b)
		writeBothWays(t, a, b)
		exchange(t, a, b, 4097)
		if s := a.qp.State(); s != roce.StateRTS {
			t.Errorf("state %s", s)
		}
	}
	moved := uint64(0)
	expectNoLossSince(t, before, devs[:]...)
	for _, d := range devs {
		moved += counterOf(t, d, "qp_moves")
	}
	if moved == 0 {
		t.Error("none of 12 QPs has moved")
	}
}

// writeBothWays has each side write to the other at once, and compares every byte.
func writeBothWays(t *testing.T, a, b *side) {
	t.Helper()
	const half = regionSize / 2
	const times = 4
	_, _ = rand.Read(a.mr.Bytes()[:half])
	_, _ = rand.Read(b.mr.Bytes()[half:])
	a.see()
	b.see()
	for range times {
		for _, c := range []struct {
			from, to *side
			offset   int
		}{{a, b, 0}, {b, a, half}} {
			err := c.from.qp.PostSend(&roce.SendWR{
				Opcode: roce.OpWrite, Flags: roce.SendSignaled,
				SGList:     []roce.SGE{c.from.mr.SGE(c.offset, half)},
				RemoteAddr: c.to.mr.Addr() + uint64(c.offset), RKey: c.to.mr.RKey(),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	a.wait(t, times)
	b.wait(t, times)
	a.see()
	b.see()
	if !bytes.Equal(a.mr.Bytes(), b.mr.Bytes()) {
		t.Fatal("data differs")
	}
}
