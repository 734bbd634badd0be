package msg_test

import (
	"errors"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestRequests: a server sees who wants to connect before it does, refuses one and takes another,
// and both know what the connection can do.
func TestRequests(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	options := msg.Options{Extensions: roce.ExtSelectiveRepeat}
	client := newHost(t, network, 1, asksOnce, options)
	server := newHost(t, network, 2, asksOnce, options)
	at := netip.AddrPortFrom(server.addr, 7471)
	l, err := server.ListenRequests(at)
	must(t, err)
	defer l.Close()
	ctx := within(t)
	type dialed struct {
		conn *msg.Conn
		err  error
	}
	dial := func() chan dialed {
		done := make(chan dialed, 1)
		go func() {
			conn, err := client.Dial(ctx, at)
			done <- dialed{conn, err}
		}()
		return done
	}
	first := dial()
	r, err := l.Next(ctx)
	must(t, err)
	if r.RemoteAddr().Addr() != client.addr {
		t.Errorf("from %v", r.RemoteAddr())
	}
	must(t, r.Reject())
	var refused *cm.RejectedError
	if d := <-first; !errors.As(d.err, &refused) {
		t.Errorf("refused: %v", d.err)
	}
	second := dial()
	r, err = l.Next(ctx)
	must(t, err)
	conn, err := r.Accept(ctx)
	must(t, err)
	d := <-second
	must(t, d.err)
	if conn.Extensions() != options.Extensions || d.conn.Extensions() != options.Extensions {
		t.Errorf("extensions %v and %v", conn.Extensions(), d.conn.Extensions())
	}
}
