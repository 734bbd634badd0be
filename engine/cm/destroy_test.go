package cm_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/heap"
)

// TestDestroyedLeaveNumbers: of connections that were destroyed, and whose peers do not confirm
// that, no queue pair is left and not much memory.
func TestDestroyedLeaveNumbers(t *testing.T) {
	const many, each = 500, 4 << 10
	patient := cm.Options{Linger: -1} // asks for a minute
	network, hosts := newWorld(t, patient, engine.Options{})
	a, b := hosts[0], hosts[1]
	at := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, at)
	var active, passive []*cm.Conn
	held := heap.Live()
	before := b.dev.Resources(0).Total
	for range many {
		setup := a.setup()
		setup.Init.MaxSendWR, setup.Init.MaxRecvWR = 64, 256
		c, err := a.manager.Dial(within(t, testTimeout), at, setup)
		must(t, err)
		active, passive = append(active, c), append(passive, s.conn(t))
	}
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	for i := range active {
		active[i].Destroy()
		passive[i].Destroy()
		passive[i].Destroy() // which is nothing more
		if err := passive[i].Err(); !errors.Is(err, cm.ErrClosed) {
			t.Fatal(err)
		}
		err := passive[i].QP().PostSend(&roce.SendWR{Opcode: roce.OpSend})
		if !errors.Is(err, roce.ErrState) && !errors.Is(err, engine.ErrClosed) {
			t.Fatal("posted to a queue pair that is closed:", err)
		}
	}
	if left := b.dev.Resources(0).Total; left != before {
		t.Errorf("before %+v, after %+v", before, left)
	}
	if n := b.manager.Usage().Connections; n != many {
		t.Errorf("%d of %d wait for their peers", n, many)
	}
	last := passive[many-1]
	active, passive = nil, nil
	if n := heap.Grown(held, 2*many*each) / (2 * many); n > each {
		t.Errorf("%d bytes are held of each connection, want at most %d", n, each)
	}
	select {
	case <-last.Released():
		t.Error("the time-wait is over before the peer has confirmed")
	default:
	}
	must(t, b.manager.Close())
	over(t, last.Released())
}

// TestFailedAcceptsLeaveNumbers: of an Accept on a queue pair of the caller's that no peer has
// confirmed, neither that nor its completion queue is left when he has closed both, whatever time
// the peer asked for.
func TestFailedAcceptsLeaveNumbers(t *testing.T) {
	const many, depth, each = 30, 512, 8 << 10
	network, hosts := newWorld(t, cm.Options{Linger: -1}, engine.Options{})
	a, b := hosts[0], hosts[1]
	at := netip.AddrPortFrom(b.v4, 1)
	l, err := b.manager.Listen(at)
	must(t, err)
	var dials sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer dials.Wait()
	defer cancel()
	for range many {
		dials.Go(func() {
			setup := a.setup()
			setup.AckTimeout = 31
			_, _ = a.manager.Dial(ctx, at, setup)
		})
	}
	for l.Waiting() < many {
		runtime.Gosched()
	}
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	held := heap.Live()
	far, patience := 0, time.Millisecond
	for range many {
		r, err := l.Accept(ctx)
		must(t, err)
		cq, err := b.dev.CreateCQ(2 * depth)
		must(t, err)
		setup := b.setup()
		setup.Prepare = nil
		setup.Init.SendCQ, setup.Init.RecvCQ = cq, cq
		setup.Init.MaxSendWR, setup.Init.MaxRecvWR = depth, depth
		setup.QP, err = b.dev.CreateQP(b.pd, setup.Init)
		must(t, err)
		brief, end := context.WithTimeout(ctx, patience)
		_, err = r.Accept(brief, setup)
		end()
		if err == nil {
			t.Fatal("nobody has confirmed")
		}
		if setup.QP.Snapshot().State == roce.StateErr {
			far++
		} else { // it has not come to waiting for the peer
			patience *= 2
		}
		must(t, errors.Join(setup.QP.Close(), cq.Close()))
	}
	if far < many/2 {
		t.Fatalf("%d of %d have waited for their peers", far, many)
	}
	for heap.Live()-held > int64(far)*each {
		if n := b.manager.Usage().Connections; n < far {
			t.Fatalf("more than %d bytes are held of each until its time-wait is over", each)
		}
	}
}

// TestDestroyEndsCalls: who waits for a call of a connection that is destroyed hears of it, and the
// time-wait ends as always.
func TestDestroyEndsCalls(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	at := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, at)
	c, err := a.manager.Dial(within(t, testTimeout), at, cm.Setup{PD: a.pd})
	must(t, err)
	d := s.conn(t)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Receive(within(t, testTimeout), a.mr.SGE(0, 8))
		ended <- err
	}()
	c.Destroy()
	if err := <-ended; !errors.Is(err, cm.ErrClosed) {
		t.Error(err)
	}
	over(t, d.Done())
	if err := d.Err(); !errors.Is(err, cm.ErrHungUp) {
		t.Error(err)
	}
	d.Destroy()
	over(t, c.Released())
	over(t, d.Released())
	a.forgotten(t)
	b.forgotten(t)
}
