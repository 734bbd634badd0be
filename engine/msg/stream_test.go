package msg_test

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/nettest"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
)

const streamPort = 7471

// newStreams makes two endpoints that are connected by a stream.
func newStreams(
	t testing.TB, f sim.Faults, o msg.Options,
) (a, b *msg.Endpoint, sa, sb *msg.Stream) {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), f)
	must(t, err)
	a, _ = newNode(t, network, 1, o)
	b, addr := newNode(t, network, 2, o)
	l, err := b.ListenStream(netip.AddrPortFrom(addr, streamPort))
	must(t, err)
	sa, sb = connectStreams(t, a, l)
	must(t, l.Close())
	return a, b, sa, sb
}

// connectStreams connects an endpoint with a listener and returns both ends.
func connectStreams(t testing.TB, a *msg.Endpoint, l *msg.StreamListener) (sa, sb *msg.Stream) {
	t.Helper()
	type accepted struct {
		net.Conn
		error
	}
	done := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		done <- accepted{c, err}
	}()
	sa, err := a.DialStream(within(t), netip.AddrPort(l.Addr().(msg.Addr)))
	must(t, err)
	other := <-done
	must(t, other.error)
	return sa, other.Conn.(*msg.Stream)
}

// TestConn is what golang.org/x/net demands of a net.Conn, with small slots alone, with large
// ones, and on a wire that loses packets.
func TestConn(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults sim.Faults
	}{
		{"clean", sim.Faults{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			network, err := sim.NewNetwork(1, engine.NewSystemClock(), c.faults)
			must(t, err)
			a, _ := newNode(t, network, 1, msg.Options{})
			b, addr := newNode(t, network, 2, msg.Options{})
			l, err := b.ListenStream(netip.AddrPortFrom(addr, streamPort))
			must(t, err)
			t.Cleanup(func() { must(t, l.Close()) })
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				sa, sb := connectStreams(t, a, l)
				return sa, sb, func() {
					_ = sa.Close()
					_ = sb.Close()
				}, nil
			})
		})
	}
}
