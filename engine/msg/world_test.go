package msg_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rcm "xroce/roce/cm"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/leaktest"
	"xroce/xsk/xsktest/timeout"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}

// within is a context that ends when something hangs.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(60*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// quick is a manager that asks again after 1.1 s and forgets after some 0.6 s: on a machine that
// is busy a peer may say nothing for long. Who is asked for a connection is given up after 17 s,
// who acknowledges nothing after eight timeouts of 0.5 s.
var quick = cm.Options{Machine: rcm.Config{ResponseTimeout: 17, PacketLifeTime: 16, AckDelay: 1}}

// asksOnce is one that asks once: who has refused what came is not asked again by what was on its
// way meanwhile, which he takes for another request.
var asksOnce = cm.Options{
	Linger: -1, Machine: rcm.Config{ResponseTimeout: 22, PacketLifeTime: 16, AckDelay: 1},
}

// newNode makes a host with an endpoint on a simulated wire, under real time.
func newNode(
	t testing.TB, network *sim.Network, n byte, o msg.Options,
) (*msg.Endpoint, netip.Addr) {
	t.Helper()
	h := newHost(t, network, n, quick, o)
	return h.Endpoint, h.addr
}

// newHost is newNode that says how its manager is.
func newHost(
	t testing.TB, network *sim.Network, n byte, how cm.Options, o msg.Options,
) *host {
	t.Helper()
	h := &host{addr: netip.AddrFrom4([4]byte{192, 0, 2, n})}
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200, Addrs: []netip.Addr{h.addr},
	})
	must(t, err)
	h.dev, err = engine.OpenLink(port, port, engine.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, h.dev.Close()) })
	h.manager, err = cm.Open(h.dev, how)
	must(t, err)
	t.Cleanup(func() { must(t, h.manager.Close()) })
	h.Endpoint, err = msg.Open(h.dev, h.manager, o)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

// newPair makes two endpoints that are connected.
func newPair(t testing.TB, f sim.Faults, o msg.Options) (a, b *msg.Endpoint, ca, cb *msg.Conn) {
	t.Helper()
	network, hosts := newNetwork(t, o)
	must(t, network.SetFaults(f))
	ca, cb = connect(t, hosts)
	return hosts[0].Endpoint, hosts[1].Endpoint, ca, cb
}

// connect connects two hosts.
func connect(t testing.TB, hosts [2]*host) (ca, cb *msg.Conn) {
	t.Helper()
	at := netip.AddrPortFrom(hosts[1].addr, 7471)
	l, err := hosts[1].Listen(at)
	must(t, err)
	defer l.Close()
	accepted := make(chan error, 1)
	ctx := within(t)
	go func() {
		var err error
		cb, err = l.Accept(ctx)
		accepted <- err
	}()
	ca, err = hosts[0].Dial(ctx, at)
	must(t, err)
	must(t, <-accepted)
	return ca, cb
}

// TestMessages sends messages of many lengths by each protocol.
func TestMessages(t *testing.T) {
	for p := rmsg.Auto; p <= rmsg.Fragments; p++ {
		t.Run(p.String(), func(t *testing.T) {
			_, _, ca, cb := newPair(t, sim.Faults{}, msg.Options{Machine: rmsg.Config{Protocol: p}})
			ctx := within(t)
			for _, n := range []int{0, 1, 64, 1024, 1025, 60_000, 1 << 20} {
				data := bytes.Repeat([]byte(fmt.Sprint(n, "/")), n/3+1)[:n]
				s := &msg.Send{Buffers: [][]byte{data}}
				must(t, ca.PostSend(s))
				buf := make([]byte, n)
				got, err := cb.Receive(ctx, buf)
				must(t, err)
				must(t, s.Wait(ctx))
				if got != n || !bytes.Equal(buf, data) {
					t.Errorf("%d bytes by %v: %d came, equal %v", n, s.Choice, got,
						bytes.Equal(buf, data))
				}
				t.Logf("%d bytes by %v: %v", n, s.Choice.Protocol, s.Choice.Why)
			}
			closed := make(chan error, 1)
			go func() { closed <- cb.Close(ctx) }()
			must(t, ca.Close(ctx))
			must(t, <-closed)
		})
	}
}
