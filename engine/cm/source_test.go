package cm_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce/wire"
)

// errRoute is what a router says of the networks that it has no route to.
var errRoute = errors.New("no route")

// A router has the routes of its two networks.
type router struct {
	*surroundings
	vlan    wire.VLAN
	changes chan struct{}
}

func newRouter(s *surroundings) engine.Host { return &router{s, 5, make(chan struct{})} }

// Port adds a VLAN, which has the same link-local address as the port.
func (r *router) Port() engine.Port {
	p := r.surroundings.Port()
	p.Name = "port"
	p.VLANs = []engine.VLAN{{
		ID: r.vlan, Name: "vlan", MAC: p.MAC, Addrs: []netip.Addr{wire.LinkLocalGID(p.MAC).Addr()},
	}}
	return p
}

func (r *router) Changes() <-chan struct{} { return r.changes }

func (r *router) Close() error {
	close(r.changes)
	return r.surroundings.Close()
}

func (r *router) ResolveOn(
	ctx context.Context, _ wire.VLAN, src, dst netip.Addr,
) (hop engine.Hop, err error) {
	hop.MAC, err = r.Resolve(ctx, src, dst)
	return hop, err
}

func (r *router) Known(vlan wire.VLAN, src, dst netip.Addr) (engine.Hop, error) {
	return r.Lookup(vlan, src, dst)
}

func (r *router) HasNeighbour(_ wire.VLAN, addr netip.Addr) bool {
	_, err := r.Host.Resolve(context.Background(), addr, addr)
	return err == nil
}

func (r *router) Lookup(vlan wire.VLAN, src, dst netip.Addr) (engine.Hop, error) {
	return r.ResolveOn(context.Background(), vlan, src, dst)
}

func (r *router) Source(dst netip.Addr) (vlan wire.VLAN, src netip.Addr, err error) {
	for _, a := range r.Port().Addrs {
		if near, err := a.Prefix(24); err == nil && near.Contains(dst) {
			return 0, a, nil
		}
	}
	return 0, src, errRoute
}

// linkLocal is the address that follows from the MAC address of a host.
func linkLocal(h *host) netip.Addr { return wire.LinkLocalGID(h.mac).Addr() }

// TestSource dials from the address that the routes say, unless it is told another.
func TestSource(t *testing.T) {
	_, hosts := newWorldAround(t, quick, engine.Options{}, newRouter)
	a, b := hosts[0], hosts[1]
	for _, tt := range []struct {
		to, local, want netip.Addr
	}{
		{b.v4, netip.Addr{}, a.v4},
		{b.far, netip.Addr{}, a.far},
		{b.far, a.v4, a.v4},
		{b.v6, netip.Addr{}, a.v6},
		{linkLocal(b), netip.Addr{}, linkLocal(a)},
		{linkLocal(b).WithZone("port"), netip.Addr{}, linkLocal(a)},
		{a.far, netip.Addr{}, a.far}, // its own
	} {
		from := a
		if tt.to != a.far {
			from = b
		}
		s := from.serve(t, netip.AddrPortFrom(tt.to, 1))
		setup := a.setup()
		setup.LocalAddr = tt.local
		c, err := a.manager.Dial(within(t, testTimeout), netip.AddrPortFrom(tt.to, 1), setup)
		must(t, err)
		d := s.conn(t)
		if got := d.RemoteAddr().Addr(); got != tt.want {
			t.Errorf("to %s from %s, want %s", tt.to, got, tt.want)
		}
		c.Close()
		d.Close()
		s.Close()
	}
	// A path to these would leave by the port.
	for _, zone := range []string{"vlan", "other"} {
		to := netip.AddrPortFrom(linkLocal(b).WithZone(zone), 1)
		_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
		if !errors.Is(err, cm.ErrNoAddress) {
			t.Errorf("zone %s: %v", zone, err)
		}
	}
	nowhere := netip.MustParseAddrPort("203.0.113.9:1")
	_, err := a.manager.Dial(within(t, testTimeout), nowhere, a.setup())
	if !errors.Is(err, cm.ErrNoAddress) || !errors.Is(err, errRoute) {
		t.Error(err)
	}
}
