package cm_test

import (
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/xsk/xsktest"
)

// TestCloseTellsMany closes a manager of more connections than addresses are resolved at
// once, so old that each way is to be found out again: every peer is told at once.
func TestCloseTellsMany(t *testing.T) {
	const many = 100
	clock := &skipClock{Clock: engine.NewSystemClock()}
	o := cm.Options{Clock: clock, Linger: testTimeout}
	network, hosts := newWorldAround(t, o, engine.Options{}, newRouter)
	b := hosts[1]
	addrs := make([]netip.Addr, many)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 10)})
	}
	a := &host{}
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, 9}, MTU: 1500, Addrs: addrs,
	})
	must(t, err)
	a.dev, err = engine.OpenLink(port, port, engine.Options{Clock: engine.NewSystemClock()})
	must(t, err)
	t.Cleanup(func() { must(t, a.dev.Close()) })
	a.equip(t, cm.Options{})
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	ctx := within(t, testTimeout)
	conns := make([]*cm.Conn, many)
	for i := range conns {
		setup := a.setup()
		setup.LocalAddr = addrs[i]
		conns[i], err = a.manager.Dial(ctx, to, setup)
		must(t, err)
		s.conn(t)
	}
	clock.skipped.Store(int64(roce.Second) * 3600)
	must(t, b.manager.Close())
	for _, c := range conns {
		over(t, c.Done())
		c.Close()
	}
	if lost := b.manager.Lost(); lost != (cm.Lost{}) {
		t.Errorf("lost %+v", lost)
	}
}

// TestCloseTellsAll closes a manager of more connections than the device has room for
// messages, and the machine, too: all wait for their turn, also where the way to the peer is
// to be found out again.
func TestCloseTellsAll(t *testing.T) {
	for name, age := range map[string]roce.Time{"new": 0, "old": 3600 * roce.Second} {
		t.Run(name, func(t *testing.T) { closeTellsAll(t, age) })
	}
}

func closeTellsAll(t *testing.T, age roce.Time) {
	// Nothing is said twice before 16 s have passed, so all has to be said once.
	slow := cm.Options{Machine: rcm.Config{ResponseTimeout: 22}}
	_, hosts := newWorldAround(t, slow, engine.Options{}, newRouter)
	a, b := hosts[0], hosts[1]
	must(t, b.manager.Close())
	clock := &skipClock{Clock: engine.NewSystemClock()}
	slow.Clock, slow.Linger, slow.Machine.MaxOutbox = clock, testTimeout, 16
	var err error
	b.manager, err = cm.Open(b.dev, slow)
	must(t, err)
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	ctx := within(t, testTimeout)
	n := 700
	if xsktest.RaceDetector {
		n = 150
	}
	conns := make([]*cm.Conn, n)
	for i := range conns {
		conns[i], err = a.manager.Dial(ctx, to, a.setup())
		must(t, err)
		s.conn(t)
	}
	clock.skipped.Store(int64(age))
	must(t, b.manager.Close())
	for _, c := range conns {
		over(t, c.Done())
		c.Close()
	}
	if lost, full := b.manager.Lost(), b.counted("cm_outbox_full"); lost != (cm.Lost{}) ||
		full != 0 {
		t.Errorf("lost %+v, and no room for %d", lost, full)
	}
}
