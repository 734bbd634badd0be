package bridge

import (
	"net/netip"
	"testing"

	"xroce/roce/clock"
)

// TestHosts: an address is at the port that it came from first, until it was silent for the age.
func TestHosts(t *testing.T) {
	h, err := NewHosts(Config{Size: 9, Ports: 3, Age: 10})
	if err != nil {
		t.Fatal(err)
	}
	a, inside := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for i, step := range []struct {
		now  clock.Time
		port Port
		ok   bool
		at   Port
	}{
		{1, 1, true, 1},
		{2, 2, false, 1},
		{9, 1, true, 1},
		{18, 2, false, 1},
		{19, 2, true, 2},
		{20, 1, false, 2},
		{21, Inside, false, 2},
		{21, 3, false, 2},
		{21, -1, false, 2},
	} {
		if ok := h.Learn(step.now, a, step.port); ok != step.ok || h.To(step.now, a) != step.at {
			t.Errorf("step %d: %t, at %d", i, ok, h.To(step.now, a))
		}
	}
	if !h.Learn(21, inside, Inside) || h.To(21, inside) != Drop || h.Learn(22, inside, 1) {
		t.Error("what is inside is at a peer")
	}
	if h.To(29, a) != Drop {
		t.Error("it is not too old")
	}
	if h.Forget(2); h.Len() != 1 {
		t.Errorf("%d addresses", h.Len())
	}
	if h.Expire(31); h.Len() != 0 {
		t.Errorf("%d addresses", h.Len())
	}
	for _, text := range []string{"224.0.0.1", "0.0.0.0", "127.0.0.1", "ff02::1", "fe80::1", "::"} {
		if h.Learn(31, netip.MustParseAddr(text), 1) {
			t.Errorf("%s is a host", text)
		}
	}
	if h.Learn(31, netip.Addr{}, 1) {
		t.Error("no address is a host")
	}
}

// TestFloodOfHosts: a port that sends in the name of ever more has its share and no more, and the
// others theirs; once they are old there is room again.
func TestFloodOfHosts(t *testing.T) {
	h, err := NewHosts(Config{Size: 30, Ports: 3, Age: 10 * clock.Second})
	if err != nil {
		t.Fatal(err)
	}
	mine := netip.MustParseAddr("10.9.9.9")
	h.Learn(1, mine, 2)
	a := netip.MustParseAddr("10.0.0.1")
	for i := range clock.Time(10000) {
		if ok := h.Learn(1+i, a, 1); ok != (i < 10) {
			t.Fatalf("address %d: %t", i, ok)
		}
		a = a.Next()
	}
	if h.Len() != 11 || h.To(2, mine) != 2 {
		t.Errorf("%d addresses, mine at %d", h.Len(), h.To(2, mine))
	}
	if !h.Learn(11*clock.Second, a, 1) {
		t.Error("no room though all are old")
	}
}

// TestHostsAllocs: an address that is known is noted without new memory.
func TestHostsAllocs(t *testing.T) {
	h, err := NewHosts(Config{Ports: 3})
	if err != nil {
		t.Fatal(err)
	}
	a, now := netip.MustParseAddr("10.0.0.1"), clock.Time(1)
	h.Learn(now, a, 1)
	if n := testing.AllocsPerRun(100, func() {
		now++
		if !h.Learn(now, a, 1) || h.To(now, a) != 1 {
			t.Error("not there")
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
