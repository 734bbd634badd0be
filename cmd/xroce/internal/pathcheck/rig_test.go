package pathcheck

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A rig is a server and a device for a client, on a network in memory.
type rig struct {
	network  *sim.Network
	dev      [2]*engine.Device // client, server
	listener net.Listener
	server   *Server
	ended    chan ended // of each client
}

// ended is how it went with a client.
type ended struct {
	answered int
	err      error
}

// newRig makes two hosts with interfaces of these MTUs and starts the server.
func newRig(t *testing.T, faults sim.Faults, mtu ...int) *rig {
	t.Helper()
	r := &rig{ended: make(chan ended, 64)}
	var err error
	if r.network, err = sim.NewNetwork(1, engine.NewSystemClock(), faults); err != nil {
		t.Fatal(err)
	}
	for i := range r.dev {
		r.dev[i] = r.device(t, byte(i+1), mtu[i])
	}
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	r.server = &Server{Device: r.dev[1], Ended: func(_ netip.AddrPort, n int, err error) {
		r.ended <- ended{n, err}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.server.Serve(ctx, r.listener) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(timeout.Scaled(20 * time.Second)):
			t.Error("the server does not end")
		}
	})
	return r
}

// device makes one of the hosts.
func (r *rig) device(t *testing.T, n byte, mtu int) *engine.Device {
	t.Helper()
	port, err := r.network.NewPort(sim.PortConfig{
		Name: "xr" + string('0'+n), MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: mtu,
		Addrs: []netip.Addr{
			netip.AddrFrom4([4]byte{192, 0, 2, n}),
			netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := engine.OpenLink(port, port, engine.Options{RoCEv1: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// connect connects to the server by TCP.
func (r *rig) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dial makes a client that waits long.
func (r *rig) dial(t *testing.T) *Client {
	t.Helper()
	c, err := Dial(t.Context(), r.dev[0], r.connect(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.patience = timeout.Scaled(10 * time.Second)
	return c
}

// toServer is the way from a mailbox of the client's device to the server's.
func (r *rig) toServer(t *testing.T, box *mailbox) *roce.AH {
	t.Helper()
	to := engine.AddressVector{DGID: wire.GIDFromAddr(r.dev[1].Port().Addrs[0])}
	index, err := r.dev[0].SourceGID(to.DGID.Addr())
	if err != nil {
		t.Fatal(err)
	}
	to.SGIDIndex = index
	ah, err := box.handle(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	return ah
}

// awaitEnd waits until the server is done with a client.
func (r *rig) awaitEnd(t *testing.T) ended {
	t.Helper()
	select {
	case e := <-r.ended:
		return e
	case <-time.After(timeout.Scaled(20 * time.Second)):
		t.Fatal("the server does not end a client")
	}
	return ended{}
}

// text is a result as lines of verdict, name, value and remedy.
func (r Result) text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(string(f.Verdict) + " " + f.What + ": " + f.Value + " -> " + f.Remedy + "\n")
	}
	return b.String()
}

// contains fails the test unless each of the pieces is in the text of a result.
func contains(t *testing.T, r Result, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(r.text(), p) {
			t.Errorf("%q is not in:\n%s", p, r.text())
		}
	}
}
