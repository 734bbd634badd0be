package msg_test

import (
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestPeersThatDoNotConfirm: of connections whose peers never confirm that they are over, which
// they may be asked for minutes, an end keeps no queue pair and no memory.
func TestPeersThatDoNotConfirm(t *testing.T) {
	const many = 400
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	patient := cm.Options{Linger: -1}
	o := msg.Options{Linger: time.Millisecond}
	hosts := [2]*host{newHost(t, network, 1, patient, o), newHost(t, network, 2, patient, o)}
	at := netip.AddrPortFrom(hosts[1].addr, 7471)
	l, err := hosts[1].Listen(at)
	must(t, err)
	before := hosts[1].dev.Resources(0).Total
	var conns []*msg.Conn
	for range many {
		accepted := make(chan error, 1)
		go func() {
			c, err := l.Accept(within(t))
			conns = append(conns, c)
			accepted <- err
		}()
		_, err := hosts[0].Dial(within(t), at)
		must(t, err)
		must(t, <-accepted)
	}
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	for _, c := range conns {
		c.Abort()
	}
	conns = nil
	end := time.Now().Add(timeout.Scaled(20 * time.Second))
	left := hosts[1].dev.Resources(0).Total
	for ; left != before && time.Now().Before(end); time.Sleep(time.Millisecond) {
		left = hosts[1].dev.Resources(0).Total
	}
	if left != before {
		t.Errorf("before %+v, after %d connections %+v", before, many, left)
	}
	if n := hosts[1].manager.Usage().Connections; n != many {
		t.Errorf("%d of %d wait for their peers", n, many)
	}
}
