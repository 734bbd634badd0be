package perf

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A groupConn is a connection of an end that names a group where it should name its GID.
type groupConn struct{ net.Conn }

// Write implements net.Conn.
func (c groupConn) Write(b []byte) (int, error) {
	own, group := []byte(":ff:ff:c0:00:02:01:"), []byte(":ff:ff:e0:00:00:01:")
	return c.Conn.Write(bytes.ReplaceAll(b, own, group))
}

// TestPeerIsNoGroup: a peer that names a group as where it is does not make this end send to
// all of it.
func TestPeerIsNoGroup(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeUD} {
		t.Run(typ.String(), func(t *testing.T) {
			c := brief(Test{Verb: Send})
			c.Type, c.Both, c.Size = typ, true, 1024
			p := newPair(t, c)
			p.wrap = func(end int, conn net.Conn) net.Conn {
				if end == 0 {
					return groupConn{conn}
				}
				return conn
			}
			p.network.Observe(func(e *sim.Event) {
				if e.Kind == sim.Sent && e.Frame[0]&1 != 0 {
					t.Errorf("a frame for a group")
				}
			})
			errs := p.run(t)
			p.wantsNoResult(t, errs)
			if !errors.Is(errs[1], perftest.ErrMessage) {
				t.Errorf("the server: %v", errs[1])
			}
		})
	}
}

// A strangeManaged is an end of -z that tells of a GID which is not its own.
type strangeManaged struct {
	*Managed
	gid wire.GID
}

// Keys implements Connector.
func (s strangeManaged) Keys(local perftest.Endpoint) (perftest.Endpoint, error) {
	local.GID = s.gid
	return s.Managed.Keys(local)
}

// TestManagedPeerIsNoGroup: with -z, too, a peer that names a group as where it is, or nothing,
// does not make this end send to all of it, or to nowhere.
func TestManagedPeerIsNoGroup(t *testing.T) {
	for _, c := range []struct {
		gid  wire.GID
		want error
	}{
		{wire.GIDFromAddr(netip.MustParseAddr("224.0.0.1")), perftest.ErrMessage},
		{wire.GIDFromAddr(netip.MustParseAddr("ff02::1")), perftest.ErrMessage},
		{wire.GID{}, perftest.ErrNoGID},
	} {
		if err := managedServer(t, c.gid); !errors.Is(err, c.want) {
			t.Errorf("%s: the server: %v", c.gid, err)
		}
	}
}

// managedServer returns what becomes of a server of -z whose client tells of a GID.
func managedServer(t *testing.T, gid wire.GID) error {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	var groups atomic.Int64
	network.Observe(func(e *sim.Event) {
		if e.Kind == sim.Sent && e.Frame[0]&1 != 0 && e.From == [6]byte{2, 0, 0, 0, 0, 1} {
			groups.Add(1)
		}
	})
	listening := make(chan struct{})
	at := netip.MustParseAddrPort("192.0.2.1:18515")
	var errs [2]error
	var all sync.WaitGroup
	for i := range errs {
		dev := device(t, network, byte(i+1), engine.Options{})
		manager, err := cm.Open(dev, cm.Options{Linger: -1})
		must(t, err)
		defer manager.Close()
		c := brief(Test{Verb: Send})
		c.Type, c.Both, c.Size = roce.TypeUD, true, 1024
		c.ManagedExchange, c.OtherDrives, c.Dial = true, true, i == 1
		_, err = c.Settle(true)
		must(t, err)
		o := Options{Config: c, Tell: &Record{}}
		most := timeout.Scaled(5 * time.Second) // when it does what it must not
		o.hurry = patience{most, most, most}
		all.Go(func() {
			if c.Dial {
				<-listening
			}
			m, err := NewManaged(t.Context(), dev, manager, at, netip.Addr{}, c.Dial,
				func() { close(listening) }, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Close()
			var via Connector = m
			if m.ManagedExchange = true; c.Dial {
				via = strangeManaged{m, gid}
			}
			_, errs[i] = Run(t.Context(), dev, via, o)
		})
	}
	all.Wait()
	if n := groups.Load(); n > 0 {
		t.Errorf("%s: the server has sent %d frames to a group", gid, n)
	}
	return errs[0]
}
