package host

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestBroadcastIsNoNeighbour: who sent to the broadcast address of a network has an entry
// for it in the neighbour table. A peer that says it has this address is none, as one that
// says it has that of a group: what we send would go to everybody.
func TestBroadcastIsNoNeighbour(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	b := pair.End(vethpair.B).IPv4
	last := b.Masked().Addr().As4()
	last[3] = 255 // of a /24
	everybody := netip.AddrFrom4(last)
	var h *Kernel
	err = pair.Do(vethpair.B, func() error {
		to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(everybody, 9))
		conn, err := net.DialUDP("udp4", nil, to)
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("to everybody"))
		if err = errors.Join(err, conn.Close()); err != nil {
			return err
		}
		h, err = Open(vethpair.IfName)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.HasNeighbour(0, everybody) {
		t.Errorf("%s is taken for a neighbour", everybody)
	}
	if hop, err := h.Known(0, b.Addr(), everybody); !errors.Is(err, ErrNoNeighbour) {
		t.Errorf("%s is at %x, %v", everybody, hop.MAC, err)
	}
	a := pair.End(vethpair.A).IPv4.Addr()
	if _, err := h.Resolve(t.Context(), b.Addr(), a); err != nil {
		t.Errorf("a neighbour: %v", err)
	}
}
