package perf

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// manyAddrs makes a device with an address of IPv4 and two of IPv6.
func manyAddrs(t *testing.T, network *sim.Network, n byte) *engine.Device {
	t.Helper()
	port, err := network.NewPort(sim.PortConfig{
		Name: "xr" + string('0'+n), MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200,
		Addrs: []netip.Addr{
			netip.AddrFrom4([4]byte{192, 0, 2, n}),
			netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n}),
			netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 13: 1, 15: n}),
		},
		Yield: true,
	})
	must(t, err)
	dev, err := engine.OpenLink(port, port, engine.Options{})
	must(t, err)
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// runManaged makes a test of a client with the server at an address, with rdma_cm, and returns what
// both have told.
func runManaged(t *testing.T, c Config, at netip.AddrPort, from netip.Addr) [2]Record {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	listening := make(chan struct{})
	var records [2]Record // the server's first
	var errs [2]error
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	var all sync.WaitGroup
	for i := range errs {
		dev := manyAddrs(t, network, byte(i+1))
		manager, err := cm.Open(dev, cm.Options{Linger: -1})
		must(t, err)
		defer manager.Close()
		c := c
		c.Managed, c.OtherDrives, c.Dial = true, true, i == 1
		_, err = c.Settle(true)
		must(t, err)
		all.Go(func() {
			if c.Dial {
				select {
				case <-listening:
				case <-ctx.Done():
					return
				}
			}
			m, err := NewManaged(ctx, dev, manager, at, from, c.Dial,
				func() { close(listening) }, nil)
			if errs[i] = err; err != nil {
				cancel()
				return
			}
			defer m.Close()
			_, errs[i] = Run(ctx, dev, m, Options{Config: c, Tell: &records[i]})
		})
	}
	all.Wait()
	if errs[0] != nil || errs[1] != nil {
		t.Fatalf("server %v, client %v", errs[0], errs[1])
	}
	return records
}

// TestManagedGIDs: what the ends of -R tell of their addresses is what they are connected by: that
// of the route, of either version, or that which was chosen.
func TestManagedGIDs(t *testing.T) {
	t.Parallel()
	const v4, v6, other = 1, 2, 3 // behind the address of the link
	for _, tt := range []struct {
		name, at, from string
		want           [2]int
	}{
		{"IPv4", "192.0.2.1", "", [2]int{v4, v4}},
		{"IPv6", "2001:db8::1", "", [2]int{v6, v6}},
		{"another one of the server", "2001:db8::1:1", "", [2]int{other, v6}},
		{"another one of the client", "2001:db8::1", "2001:db8::1:2", [2]int{v6, other}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var from netip.Addr
			if tt.from != "" {
				from = netip.MustParseAddr(tt.from)
			}
			at := netip.AddrPortFrom(netip.MustParseAddr(tt.at), 18515)
			c := brief(Test{Verb: Send})
			c.QPs = 2
			records := runManaged(t, c, at, from)
			for i := range records {
				info, peer := records[i].Info, records[1-i].Info
				if info.GID != tt.want[i] {
					t.Errorf("end %d: GID index %d, want %d", i, info.GID, tt.want[i])
				}
				for n := range info.Remote {
					if info.Remote[n].GID != peer.Local[n].GID {
						t.Errorf("end %d: the peer is at %s, and says %s", i,
							peer.Local[n].GID.Addr(), info.Remote[n].GID.Addr())
					}
				}
				if want := at.Addr(); i == 0 && info.Local[0].GID.Addr() != want {
					t.Errorf("the server is at %s", info.Local[0].GID.Addr())
				}
			}
		})
	}
}

// TestManagedFromChosenAddress: each connection of a client is from the address that was chosen.
func TestManagedFromChosenAddress(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	at := netip.MustParseAddrPort("[2001:db8::1]:18515")
	from := netip.MustParseAddr("2001:db8::1:2")
	var managers [2]*cm.Manager
	var devs [2]*engine.Device
	for i := range managers {
		devs[i] = manyAddrs(t, network, byte(i+1))
		managers[i], err = cm.Open(devs[i], cm.Options{Linger: -1})
		must(t, err)
		defer managers[i].Close()
	}
	l, err := managers[0].Listen(at)
	must(t, err)
	defer l.Close()
	cq, err := devs[1].CreateCQ(2)
	must(t, err)
	m := &Managed{manager: managers[1], at: at, from: from, patience: timeout.Scaled(time.Minute)}
	ctx, cancel := context.WithTimeout(t.Context(), m.patience)
	defer cancel()
	asked := make(chan error, 1)
	go func() {
		_, err := m.ask(ctx, cm.Setup{PD: devs[1].AllocPD(), Init: engine.QPInit{
			SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
		}})
		asked <- err
	}()
	r, err := l.Accept(ctx)
	must(t, err)
	if got := r.RemoteAddr().Addr(); got != from {
		t.Errorf("asked from %s, not %s", got, from)
	}
	must(t, r.Reject(nil))
	if err := <-asked; err == nil {
		t.Error("connected")
	}
}

// TestManagedPeerTellsNoGID: what rdma_cm has connected needs no GID of the peer's keys, where
// tools have told none.
func TestManagedPeerTellsNoGID(t *testing.T) {
	own := wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1"))
	c := brief(Test{Verb: Send})
	for _, managed := range []bool{true, false} {
		c.Managed = managed
		e := &end{
			cfg: &c, flows: make([]flow, 1), local: []perftest.Endpoint{{GID: own}},
			remote: make([]perftest.Endpoint, 1),
		}
		err := e.connect(t.Context(), &Managed{conns: make([]*cm.Conn, 1)})
		if (err == nil) != managed {
			t.Errorf("rdma_cm %t: %v", managed, err)
		}
	}
}
