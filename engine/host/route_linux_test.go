package host

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// opened does something at one end of a pair, with its host open.
func opened(t *testing.T, p *xsktest.Pair, do func(h *Kernel)) {
	t.Helper()
	p.Do(xsktest.A, func() {
		h, err := Open(vethpair.IfName)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		do(h)
	})
}

// TestAnswerIsSeenLate: on a host that was not scheduled for as long as a neighbour may take, what
// the kernel told of it is not taken yet. The kernel's own table has it.
func TestAnswerIsSeenLate(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	opened(t, p, func(h *Kernel) {
		port := h.Port()
		via := neighbourKey{port.Index, p.A.IPv4.Addr().Next().Next()}
		mac := [6]byte{2, 0, 0, 0, 0, 7}
		err := netlink.NeighAdd(&netlink.Neigh{
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

// until waits until something has happened.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); !done(); {
		if time.Now().After(end) {
			t.Fatalf("it never happens: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// makeStale has the kernel know a neighbour that nobody confirmed lately, and a host know it, too.
func makeStale(t *testing.T, h *Kernel, src, dst netip.Addr, mac [6]byte) {
	t.Helper()
	err := netlink.NeighSet(&netlink.Neigh{
		LinkIndex: h.Port().Index, Family: netlink.FAMILY_V4, IP: dst.AsSlice(),
		State: netlink.NUD_STALE, HardwareAddr: net.HardwareAddr(mac[:]),
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the stale neighbour is known", func() bool {
		hop, err := h.Known(0, src, dst)
		return err == nil && hop.MAC == mac
	})
}

// TestResolveProbesStale: nothing that the kernel sees is ever sent to a neighbour that is only
// resolved, so an entry that nobody confirmed would stay as it is for ever, right or wrong.
func TestResolveProbesStale(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	opened(t, p, func(h *Kernel) {
		// Or it would take the kernel eight seconds.
		dir := "/proc/sys/net/ipv4/neigh/" + vethpair.IfName + "/"
		for file, value := range map[string]string{
			"delay_first_probe_time": "1", "retrans_time_ms": "20",
		} {
			if err := os.WriteFile(dir+file, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
		src, dst := p.A.IPv4.Addr(), p.B.IPv4.Addr()
		wrong := [6]byte{2, 0, 0, 0, 0, 7}
		makeStale(t, h, src, dst, wrong)
		until(t, "it is found out", func() bool {
			// Between the wrong answer and the right one the kernel may have none for a while.
			hop, err := h.ResolveOn(t.Context(), 0, src, dst)
			return err == nil && hop.MAC != wrong
		})
		if mac, err := h.Resolve(t.Context(), src, dst); err != nil || mac != [6]byte(p.B.MAC) {
			t.Errorf("% x, %v", mac, err)
		}
	})
}

// TestLookupWithoutPrivilege: who may not have the kernel ask still learns what it knows, though
// that is stale, and follows a neighbour that moved.
func TestLookupWithoutPrivilege(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	opened(t, p, func(h *Kernel) {
		src, dst := p.A.IPv4.Addr(), p.A.IPv4.Addr().Next().Next()
		mac := [6]byte{2, 0, 0, 0, 0, 7}
		makeStale(t, h, src, dst, mac)
		withoutAdmin(t, func() {
			if err := h.probe(neighbourKey{h.Port().Index, dst}); !errors.Is(err, unix.EPERM) {
				t.Errorf("asking: %v, not EPERM", err)
			}
			if hop, err := h.Lookup(0, src, dst); err != nil || hop.MAC != mac {
				t.Errorf("% x, %v", hop.MAC, err)
			}
		})
	})
}

// withoutAdmin does something on a thread without CAP_NET_ADMIN, which the caller has locked.
func withoutAdmin(t *testing.T, do func()) {
	t.Helper()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var was [2]unix.CapUserData
	if err := unix.Capget(&hdr, &was[0]); err != nil {
		t.Fatal(err)
	}
	less := was
	less[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&hdr, &less[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&hdr, &was[0]); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// TestResolveIsGivenUp: whoever gave up, or had no time, is told so, and whom it was about.
func TestResolveIsGivenUp(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	opened(t, p, func(h *Kernel) {
		nobody := p.B.IPv4.Addr().Next()
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for _, c := range []struct {
			ctx  context.Context
			want error
		}{
			{canceled, context.Canceled},
			{late, context.DeadlineExceeded},
		} {
			_, err := h.ResolveOn(c.ctx, 0, p.A.IPv4.Addr(), nobody)
			if !errors.Is(err, c.want) || !errors.Is(err, ErrNoNeighbour) {
				t.Errorf("%v, want %v and %v", err, c.want, ErrNoNeighbour)
			}
		}
	})
}
