package cm_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	rcm "xroce/roce/cm"
)

// TestServices connects by service IDs: with ports of an IB space, and without any.
func TestServices(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	const ipoib = rcm.ServiceID(0x1000000000000000)
	for _, tt := range []struct {
		name          string
		at, to        netip.Addr
		listen, mask  rcm.ServiceID
		dial          rcm.ServiceID
		port, private int
	}{
		{"IB space", b.v4, b.v4, rcm.ServiceIDOf(rcm.PortSpaceIB, 7), 0, 0x013f0007, 7, 56},
		{"number", b.v6, b.v6, 0x0002c90300a0b0c0, 0, 0x0002c90300a0b0c0, 0, 92},
		{"range", netip.IPv4Unspecified(), b.v4, ipoib, ipoib, ipoib | 0x4711, 0, 92},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := b.manager.ListenService(tt.at, tt.listen, tt.mask)
			must(t, err)
			defer l.Close()
			if l.Service() != tt.listen || l.Addr() != netip.AddrPortFrom(tt.at, uint16(tt.port)) {
				t.Errorf("listens for %s at %s", l.Service(), l.Addr())
			}
			if _, err := b.manager.ListenService(tt.at, tt.dial, 0); !errors.Is(err, rcm.ErrInUse) {
				t.Errorf("listens twice: %v", err)
			}
			said := bytes.Repeat([]byte{0x5a}, tt.private)
			heard := make(chan *cm.Conn, 1)
			go func() {
				defer close(heard)
				r, err := l.Accept(within(t, testTimeout))
				if err != nil {
					t.Error(err)
					return
				}
				if r.Service() != tt.dial || !bytes.Equal(r.Private(), said) ||
					r.LocalAddr() != netip.AddrPortFrom(tt.to, uint16(tt.port)) {
					t.Errorf("%s at %s, % x", r.Service(), r.LocalAddr(), r.Private())
				}
				d, err := r.Accept(within(t, testTimeout), b.setup())
				if err != nil {
					t.Error(err)
					return
				}
				heard <- d
			}()
			setup := a.setup()
			setup.Private = said
			c, err := a.manager.DialService(within(t, testTimeout), tt.to, tt.dial, setup)
			must(t, err)
			d := <-heard
			if d == nil {
				t.Fatal("not accepted")
			}
			if c.RemoteAddr() != d.LocalAddr() || c.LocalAddr() != d.RemoteAddr() ||
				c.Service() != tt.dial || d.Service() != tt.dial {
				t.Errorf("%s %s to %s, and %s %s to %s", c.Service(), c.LocalAddr(),
					c.RemoteAddr(), d.Service(), d.LocalAddr(), d.RemoteAddr())
			}
			must(t, c.Close())
			over(t, d.Done())
			must(t, d.Close())
			setup.Private = append(said, 0)
			_, err = a.manager.DialService(within(t, testTimeout), tt.to, tt.dial, setup)
			if !errors.Is(err, rcm.ErrInvalid) {
				t.Errorf("%d bytes of private data: %v", len(setup.Private), err)
			}
		})
	}
	var refused *cm.RejectedError
	_, err := a.manager.DialService(within(t, testTimeout), b.v4, 0x4712<<32, a.setup())
	if !errors.As(err, &refused) || refused.Reason != rcm.ReasonInvalidServiceID {
		t.Errorf("nobody listens: %v", err)
	}
}
