package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// shrunk is a pair whose MTU was 4200 when its devices were opened, and whose sockets were made
// anew with an MTU of 1500, after what before does.
func shrunk(
	t *testing.T, before func([2]*engine.Device),
) (*vethpair.Pair, [2]*engine.Device) {
	t.Helper()
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{MTU: 4200, Queues: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	setQueues(t, pair, 2)
	var devs [2]*engine.Device
	for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		devs[i] = openIn(t, pair, side, engine.Options{})
	}
	before(devs)
	setMTU(t, pair, 1500)
	for _, d := range devs {
		awaitCount(t, d, "mtu_changes", 1)
	}
	setQueues(t, pair, 4)
	for _, d := range devs {
		awaitCount(t, d, "link_error_recovery", 1)
	}
	return pair, devs
}

// TestFramesShrink: packets of a connection that are longer than the frames of a socket which was
// made anew are lost, as they would be on the way; short ones are not, and it goes on when the MTU
// is raised.
func TestFramesShrink(t *testing.T) {
	t.Parallel() // it waits most of the time
	var a, b *side
	pair, devs := shrunk(t, func(devs [2]*engine.Device) {
		a, b = newSide(t, devs[0]), newSide(t, devs[1])
		// Seven retries of 4.3 s each.
		connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
		exchange(t, a, b, regionSize)
	})
	exchange(t, a, b, 1000)
	lost := counterOf(t, devs[0], "port_xmit_discards")
	postWrites(t, a, b, 1, 8192)
	eventually(t, "packets that are lost", func() bool {
		return counterOf(t, devs[0], "port_xmit_discards") > lost
	})
	setMTU(t, pair, 4200)
	a.wait(t, 1)
	exchange(t, a, b, regionSize)
	exchange(t, b, a, regionSize)
}

// TestDatagramsFollowTheMTU: how long datagrams may be is a matter of the port as it is, not as it
// was when the QP was made.
func TestDatagramsFollowTheMTU(t *testing.T) {
	t.Parallel() // it waits most of the time
	var a, b *seat
	pair, devs := shrunk(t, func(devs [2]*engine.Device) {
		a = datagramSeat(t, devs[0], engine.QPInit{})
		b = datagramSeat(t, devs[1], engine.QPInit{})
	})
	ah := a.handle(t, devs[1].GIDs()[1], 1)
	send := func(n int) {
		t.Helper()
		wr := a.datagram(ah, b.qp.QPN(), n)
		must(t, b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, grhLen+n)}}))
		must(t, a.qp.PostSend(&wr))
		for _, s := range []*seat{a, b} {
			var wc [1]roce.Completion
			eventually(t, "completion", func() bool {
				got, err := s.cq.Poll(wc[:])
				must(t, err)
				return got == 1
			})
			must(t, wc[0].Err())
		}
	}
	send(1024)
	wr := a.datagram(ah, b.qp.QPN(), 4096)
	must(t, a.qp.PostSend(&wr))
	eventually(t, "a datagram that is too long", func() bool {
		return counterOf(t, devs[0], "datagram_too_long") == 1
	})
	var wc [1]roce.Completion
	if n, err := a.cq.Poll(wc[:]); n != 1 || err != nil {
		t.Fatalf("%d completions, %v", n, err)
	}
	setMTU(t, pair, 4200)
	for _, d := range devs {
		awaitCount(t, d, "link_error_recovery", 2)
	}
	send(4096)
}
