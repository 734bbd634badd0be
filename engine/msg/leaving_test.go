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
// they may be asked for minutes, an end keeps a bounded number, however many there were.
func TestPeersThatDoNotConfirm(t *testing.T) {
	const many, bound = 400, 256
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	patient := cm.Options{Linger: -1}
	o := msg.Options{Linger: time.Millisecond}
	hosts := [2]*host{newHost(t, network, 1, patient, o), newHost(t, network, 2, patient, o)}
	at := netip.AddrPortFrom(hosts[1].addr, 7471)
	l, err := hosts[1].Listen(at)
	must(t, err)
	qps := hosts[1].dev.Resources(0).Total.QP
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
	end := time.Now().Add(timeout.Scaled(20 * time.Second))
	left := many
	for ; left > bound && time.Now().Before(end); time.Sleep(time.Millisecond) {
		left = hosts[1].dev.Resources(0).Total.QP - qps
	}
	if left != bound {
		t.Errorf("%d connections are kept of %d, want %d", left, many, bound)
	}
}
