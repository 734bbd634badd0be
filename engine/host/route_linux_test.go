package host

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// TestAnswerIsSeenLate: on a host that was not scheduled for as long as a neighbour may take, what
// the kernel told of it is not taken yet. The kernel's own table has it.
func TestAnswerIsSeenLate(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	p.Do(xsktest.A, func() {
		h, err := Open(vethpair.IfName)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		port := h.Port()
		via := neighbourKey{port.Index, p.A.IPv4.Addr().Next().Next()}
		mac := [6]byte{2, 0, 0, 0, 0, 7}
		err = netlink.NeighAdd(&netlink.Neigh{
			LinkIndex: via.ifindex, Family: netlink.FAMILY_V4, IP: via.addr.AsSlice(),
			State: netlink.NUD_REACHABLE, HardwareAddr: net.HardwareAddr(mac[:]),
		})
		if err != nil {
			t.Fatal(err)
		}
		table := &h.watch.neighbours
		for end := time.Now().Add(timeout.Scaled(10 * time.Second)); ; {
			if _, ok := table.get(via); ok {
				break
			}
			if time.Now().After(end) {
				t.Fatal("a new neighbour is not noticed")
			}
			time.Sleep(time.Millisecond)
		}
		table.mu.Lock()
		delete(table.entries, via)
		table.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if got, err := h.Resolve(ctx, p.A.IPv4.Addr(), via.addr); got != mac || err != nil {
			t.Errorf("%x, %v", got, err)
		}
		via.addr = via.addr.Next()
		if got, err := h.Resolve(ctx, p.A.IPv4.Addr(), via.addr); err == nil {
			t.Errorf("nobody has %v, and it is %x", via.addr, got)
		}
	})
}
