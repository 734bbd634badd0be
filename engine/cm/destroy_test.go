package cm_test

import (
	"errors"
	"net/netip"
	"testing"

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
