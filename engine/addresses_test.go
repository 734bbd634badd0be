package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A movingHost is the Router of a link, whose addresses and neighbours the test
// changes.
type movingHost struct {
	link    io.Closer // what else ends with it
	changes chan struct{}

	mu     sync.Mutex
	port   engine.Port
	macs   map[netip.Addr]engine.Hop
	old    *engine.Hop        // what ResolveOn answers, nil for the same as Lookup
	looked map[netip.Addr]int // how often Lookup was asked for an address
	closed bool
}

func (h *movingHost) Port() engine.Port {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.port
}

func (h *movingHost) Changes() <-chan struct{} { return h.changes }

func (h *movingHost) Lookup(_ wire.VLAN, _, dst netip.Addr) (engine.Hop, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked[dst]++
	hop, ok := h.macs[dst]
	if !ok {
		return hop, fmt.Errorf("%w: %s", engine.ErrNoNeighbour, dst)
	}
	return hop, nil
}

func (h *movingHost) Known(vlan wire.VLAN, src, dst netip.Addr) (engine.Hop, error) {
	return h.Lookup(vlan, src, dst)
}

func (h *movingHost) HasNeighbour(_ wire.VLAN, addr netip.Addr) bool {
	_, err := h.Lookup(0, netip.Addr{}, addr)
	return err == nil
}

func (h *movingHost) ResolveOn(_ context.Context, vlan wire.VLAN, src, dst netip.Addr) (
	engine.Hop, error,
) {
	if h.old != nil {
		return *h.old, nil
	}
	return h.Lookup(vlan, src, dst)
}

func (h *movingHost) Resolve(ctx context.Context, src, dst netip.Addr) ([6]byte, error) {
	hop, err := h.ResolveOn(ctx, 0, src, dst)
	return hop.MAC, err
}

func (h *movingHost) Source(netip.Addr) (wire.VLAN, netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return 0, h.port.Addrs[0], nil
}

func (h *movingHost) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.changes)
	}
	return h.link.Close()
}

// change changes what the host is and tells the device.
func (h *movingHost) change(f func(p *engine.Port, macs map[netip.Addr]engine.Hop)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.port.Addrs = slices.Clone(h.port.Addrs)
	f(&h.port, h.macs)
	select {
	case h.changes <- struct{}{}:
	default:
	}
}

// Addresses of the moving hosts, by their number.
func movingAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }
func movingMAC(i int) [6]byte     { return [6]byte{2, 0, 0, 0, 0, byte(i + 1)} }

func movingIPv6(i int) netip.Addr { return netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i + 1)}) }

// The VLAN of these tests, and its addresses.
const testVLAN = 5

func vlanAddrs(i int) []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 0, 5, byte(i + 1)}),
		netip.AddrFrom16([16]byte{0: 0xfd, 1: 5, 15: byte(i + 1)}),
	}
}

// newMovingHost is the i-th of two hosts, on a port with a VLAN. It knows the other.
func newMovingHost(
	i int, vlan wire.VLAN, port engine.Port, peer [6]byte, link io.Closer,
) *movingHost {
	h := &movingHost{
		link: link, changes: make(chan struct{}, 1), port: port,
		macs: map[netip.Addr]engine.Hop{}, looked: map[netip.Addr]int{},
	}
	h.port.Addrs = []netip.Addr{movingAddr(i), movingIPv6(i)}
	h.port.VLANs = []engine.VLAN{{ID: vlan, Name: "v", MAC: port.MAC, Addrs: vlanAddrs(i)}}
	for _, a := range append(vlanAddrs(1-i), movingAddr(1-i), movingIPv6(1-i)) {
		h.macs[a] = engine.Hop{MAC: peer}
	}
	return h
}

// indexOf waits until the GID table has an address and returns its index, -1 when
// it is to have it no more.
func indexOf(t *testing.T, d *engine.Device, a netip.Addr, want bool) (index int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s in the GID table: %t", a, want), func() bool {
		index = slices.Index(d.GIDs(), wire.GIDFromAddr(a))
		return index >= 0 == want
	})
	return index
}

// joinFrom connects two seats, each from a GID of its own.
func joinFrom(t *testing.T, a, b *seat, from [2]int, o engine.ConnectOptions) {
	t.Helper()
	var ends [2]engine.Endpoint
	for i, s := range []*seat{a, b} {
		var err error
		if ends[i], err = s.dev.Endpoint(s.qp, from[i]); err != nil {
			t.Fatal(err)
		}
		if err := s.qp.Init(rights); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range []*seat{a, b} {
		if o.SGIDIndex = from[i]; o.Timeout == 0 {
			o.Timeout = patientTimeout
		}
		if err := s.qp.Connect(t.Context(), ends[i], ends[1-i], o); err != nil {
			t.Fatal(err)
		}
	}
}

// movingWorld is a simWorld of two devices on moving hosts, each with a VLAN.
func movingWorld(t *testing.T, o engine.Options) (*world, [2]*movingHost) {
	t.Helper()
	return movingWorldOn(t, testVLAN, o)
}

// movingWorldOn is movingWorld with a VLAN of the hosts.
func movingWorldOn(t *testing.T, vlan wire.VLAN, o engine.Options) (*world, [2]*movingHost) {
	t.Helper()
	w := &world{t: t, clock: &sim.VirtualClock{}}
	w.network = newNetwork(t, 1, w.clock, sim.Faults{})
	o.Clock, o.Direct = w.clock, true
	var hosts [2]*movingHost
	for i := range hosts {
		link := newPort(t, w.network, i)
		h := newMovingHost(i, vlan, link.Port(), movingMAC(1-i), link)
		dev, err := engine.OpenLink(link, h, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		hosts[i], w.devs = h, append(w.devs, dev)
	}
	w.run = func(done func() bool) {
		t.Helper()
		err := w.network.Run(w.clock, w.clock.Now()+1000*roce.Second, done, machinesOf(w.devs)...)
		if err != nil {
			t.Fatal(err)
		}
	}
	return w, hosts
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout.Scaled(20 * time.Second)); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never happens: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// gidChange takes the event of a changed GID table.
func gidChange(t *testing.T, d *engine.Device) {
	t.Helper()
	eventually(t, "GID_CHANGE", func() bool {
		e, ok := d.PollEvent()
		if ok && e != (engine.AsyncEvent{Type: roce.EventGIDChange}) {
			t.Fatalf("%+v", e)
		}
		return ok
	})
}

// withoutAddr takes the first address of a port away.
func withoutAddr(p *engine.Port, _ map[netip.Addr]engine.Hop) { p.Addrs = p.Addrs[1:] }

// TestRemovedAddress ends what goes on with it at both ends: the retries of both are
// used up, nothing with that address is on the wire any more, and its index is empty.
// With the address back, new connections work at the same index.
func TestRemovedAddress(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	c, d := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	join(t, c, d, engine.ConnectOptions{SGIDIndex: gidIPv6})
	a.send(t, writeTo(a, b, roce.OpWrite, 100))
	w.succeed(a.cq, 1)

	gid := w.devs[0].GIDs()[gidIPv4]
	hosts[0].change(withoutAddr)
	gidChange(t, w.devs[0])
	var seen int
	w.network.Observe(func(e *sim.Event) {
		if src, _, ok := wire.FrameSource(e.Frame); ok && src == gid {
			seen++
		}
	})
	for _, s := range []*seat{a, b} {
		s.send(t, writeTo(s, []*seat{b, a}[slices.Index([]*seat{a, b}, s)], roce.OpWrite, 100))
		if wc := w.take(s.cq, 1)[0]; wc.Status != roce.StatusRetryExcErr {
			t.Errorf("%s", wc.Status)
		}
	}
	if seen != 0 {
		t.Errorf("%d packets left from an address that is gone", seen)
	}
	if sent, came := counterOf(t, w.devs[0], "drop_no_gid"),
		counterOf(t, w.devs[0], "drop_not_local"); sent != 8 || came != 8 {
		t.Errorf("drop_no_gid is %d, drop_not_local %d, want 8 each", sent, came)
	}
	c.send(t, writeTo(c, d, roce.OpWrite, 100))
	w.succeed(c.cq, 1)
	if _, err := w.devs[0].Endpoint(a.qp, gidIPv4); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("an empty index: %v", err)
	}
	if got := w.devs[0].GIDs(); !got[gidIPv4].IsZero() || got[gidIPv6].IsZero() {
		t.Errorf("GIDs %v", got)
	}

	hosts[0].change(func(p *engine.Port, _ map[netip.Addr]engine.Hop) {
		p.Addrs = append(p.Addrs, movingAddr(0))
	})
	gidChange(t, w.devs[0])
	e, f := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, e, f, engine.ConnectOptions{})
	e.send(t, writeTo(e, f, roce.OpWrite, 100))
	w.succeed(e.cq, 1)
}

// TestAddressComesBack in time: the connection goes on.
func TestAddressComesBack(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	hosts[0].change(withoutAddr)
	gidChange(t, w.devs[0])
	a.send(t, writeTo(a, b, roce.OpWrite, 100))
	w.run(func() bool { return counterOf(t, w.devs[0], "drop_no_gid") == 3 })
	hosts[0].change(func(p *engine.Port, _ map[netip.Addr]engine.Hop) {
		p.Addrs = append(p.Addrs, movingAddr(0))
	})
	gidChange(t, w.devs[0])
	w.succeed(a.cq, 1)
}

// TestDatagramsOfRemovedAddress neither leave nor arrive.
func TestDatagramsOfRemovedAddress(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	a := datagramSeat(t, w.devs[0], engine.QPInit{})
	b := datagramSeat(t, w.devs[1], engine.QPInit{})
	there := a.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4)
	back := b.handle(t, w.devs[0].GIDs()[gidIPv4], gidIPv4)
	hosts[0].change(withoutAddr)
	gidChange(t, w.devs[0])
	a.recv(t, 0, 0, 100)
	b.recv(t, 0, 0, 100)
	a.send(t, a.datagram(there, b.qp.QPN(), 10))
	w.succeed(a.cq, 1) // as of every datagram that is lost
	b.send(t, b.datagram(back, a.qp.QPN(), 10))
	w.succeed(b.cq, 1)
	w.run(func() bool { return counterOf(t, w.devs[0], "drop_not_local") == 1 })
	if n := counterOf(t, w.devs[0], "drop_no_gid"); n != 1 {
		t.Errorf("drop_no_gid is %d", n)
	}
	for _, s := range []*seat{a, b} {
		if n := s.qp.Snapshot().RecvPosted; n != 1 {
			t.Errorf("%d receives are left of 1", n)
		}
	}
}

// TestNeighbourMoves under a connection, which goes on over the new MAC address. The
// first one is that of nobody.
func TestNeighbourMoves(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	nobody := engine.Hop{MAC: [6]byte{2, 0, 0, 0, 0, 99}}
	hosts[0].change(func(_ *engine.Port, macs map[netip.Addr]engine.Hop) {
		macs[movingAddr(1)] = nobody
	})
	var pairs [3][2]*seat
	for i := range pairs {
		pairs[i] = [2]*seat{
			seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{}),
		}
		join(t, pairs[i][0], pairs[i][1], engine.ConnectOptions{})
		pairs[i][0].send(t, writeTo(pairs[i][0], pairs[i][1], roce.OpWrite, 100))
	}
	w.run(func() bool { return counterOf(t, w.devs[0], "local_ack_timeout_err") >= 3 })
	// A neighbour that is not known moves nothing.
	hosts[0].change(func(_ *engine.Port, macs map[netip.Addr]engine.Hop) {
		delete(macs, movingAddr(1))
	})
	if _, err := w.devs[0].ResolvePath(t.Context(), engine.AddressVector{
		DGID: w.devs[1].GIDs()[gidIPv4], SGIDIndex: gidIPv4,
	}); !errors.Is(err, engine.ErrNoNeighbour) {
		t.Errorf("%v", err)
	}
	pairs[2][0].qp.Close() // nobody misses it
	hosts[0].change(func(_ *engine.Port, macs map[netip.Addr]engine.Hop) {
		macs[movingAddr(1)] = engine.Hop{MAC: movingMAC(1)}
	})
	for _, p := range pairs[:2] {
		eventually(t, "the new path", func() bool {
			return p[0].qp.Query().Path.DstMAC == movingMAC(1)
		})
		w.succeed(p[0].cq, 1)
	}
}

// TestNeighbourMovesBeforeTheConnection does, after its path was resolved, and nobody
// tells any more.
func TestNeighbourMovesBeforeTheConnection(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	hosts[0].old = &engine.Hop{MAC: [6]byte{2, 0, 0, 0, 0, 99}}
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	eventually(t, "the new path", func() bool {
		return a.qp.Query().Path.DstMAC == movingMAC(1)
	})
}

// TestNeighbourMovedBeforeAnotherConnection: it has moved, the connections to it know, and another
// one comes whose path was resolved before.
func TestNeighbourMovedBeforeAnotherConnection(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	hosts[0].old = &engine.Hop{MAC: [6]byte{2, 0, 0, 0, 0, 99}}
	connect := func(gid int) *seat {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		joinFrom(t, a, b, [2]int{gid, gid}, engine.ConnectOptions{})
		return a
	}
	moved := func(s *seat) {
		t.Helper()
		eventually(t, "the new path", func() bool {
			return s.qp.Query().Path.DstMAC == movingMAC(1)
		})
	}
	moved(connect(gidIPv4))
	moved(connect(gidIPv6))
	// What is looked at now and then is both addresses, and for the connection its own alone. Both
	// at once may be either, so it may take another connection to tell.
	more := func() int {
		hosts[0].mu.Lock()
		defer hosts[0].mu.Unlock()
		return hosts[0].looked[movingAddr(1)] - hosts[0].looked[movingIPv6(1)]
	}
	for range 4 {
		before := more()
		moved(connect(gidIPv4))
		if more() > before {
			return
		}
	}
	t.Error("nobody looks for a connection, but now and then at all")
}

// TestOwnMACChanges under a connection: its packets leave from the new one, and the
// default GID is another.
func TestOwnMACChanges(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	mac := [6]byte{2, 0, 0, 0, 0, 50}
	hosts[0].change(func(p *engine.Port, _ map[netip.Addr]engine.Hop) { p.MAC = mac })
	gidChange(t, w.devs[0])
	if got := w.devs[0].GIDs()[0]; got != wire.LinkLocalGID(mac) {
		t.Errorf("the default GID is %s", got)
	}
	eventually(t, "the new path", func() bool { return a.qp.Query().Path.SrcMAC == mac })
}

// TestSourceGID is the one that the routes prefer.
func TestSourceGID(t *testing.T) {
	w, hosts := movingWorld(t, engine.Options{})
	plain := simWorld(t, 1, sim.Faults{}, engine.Options{})
	for _, tt := range []struct {
		dev  *engine.Device
		to   string
		want int // -1 for an error
	}{
		{w.devs[0], "10.9.9.9", gidIPv4},
		{w.devs[0], "fd00::1", gidIPv6}, // its own
		{w.devs[0], "fe80::1234", 0},
		{w.devs[0], "fe80::1234%" + w.devs[0].Name(), 0},
		{w.devs[0], "fe80::1234%other", -1},
		{plain.devs[0], "10.9.9.9", gidIPv4},
		{plain.devs[0], "2001:db8::1", gidIPv6},
	} {
		got, err := tt.dev.SourceGID(netip.MustParseAddr(tt.to))
		if err != nil {
			got = -1
		}
		if got != tt.want {
			t.Errorf("%s: index %d, want %d (%v)", tt.to, got, tt.want, err)
		}
	}
	hosts[0].change(withoutAddr)
	gidChange(t, w.devs[0])
	hosts[0].change(func(p *engine.Port, _ map[netip.Addr]engine.Hop) {
		p.Addrs[0] = netip.MustParseAddr("192.0.2.77") // not in the table yet
	})
	eventually(t, "the table follows", func() bool {
		i, err := w.devs[0].SourceGID(netip.MustParseAddr("10.9.9.9"))
		return err == nil && i == gidIPv4
	})
}
