package rdmacm

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// A waitingRoom is places on a clock that the test moves.
type waitingRoom struct {
	places
	clock time.Time
	told  int // who gave way
}

func newWaitingRoom() *waitingRoom {
	w := &waitingRoom{clock: time.Unix(1, 0)}
	w.now = func() time.Time { return w.clock }
	return w
}

func (w *waitingRoom) comes(t *testing.T, from string) *seat {
	t.Helper()
	addr, free := netip.MustParseAddr(from), false
	free = w.free(addr)
	s := w.take(addr, func(why error) {
		if w.told++; !errors.Is(why, errOthers) {
			t.Errorf("it gives way for %v", why)
		}
	})
	if free != (s != nil) {
		t.Errorf("%s: free %t, and it gets %v", from, free, s)
	}
	return s
}

// TestQuietGivesWay: who says nothing keeps nobody out, be it from how many addresses; who plays
// stays, and one more is refused.
func TestQuietGivesWay(t *testing.T) {
	w := newWaitingRoom()
	seats := make([]*seat, MaxPingers)
	for i := range seats {
		seats[i] = w.comes(t, fmt.Sprintf("2001:db8::%x", i+1))
	}
	if w.comes(t, "2001:db8::ff") != nil {
		t.Error("a client gives way though it has just come")
	}
	w.clock = w.clock.Add(quiet)
	for _, s := range seats[1:] {
		s.heard()
	}
	if w.comes(t, "2001:db8::ff") == nil || w.told != 1 {
		t.Errorf("%d gave way to one who comes", w.told)
	}
	if w.comes(t, "2001:db8::fe") != nil {
		t.Error("there is none left who says nothing, and one gives way")
	}
	seats[1].leave()
	if w.comes(t, "2001:db8::fe") == nil || w.told != 1 {
		t.Errorf("%d gave way, and one has left", w.told)
	}
}

// TestOneAddressKeepsNobodyOut, and its neighbours of one network neither: on a link that is
// everybody.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	for _, hosts := range [][3]string{
		{"192.0.2.1", "192.0.2.2", "192.0.2.3"},
		{"2001:db8::1", "2001:db8::2", "2001:db8::3"},
	} {
		w := newWaitingRoom()
		for _, from := range hosts[:2] {
			for range maxOfAddress {
				if w.comes(t, from) == nil {
					t.Fatalf("no place for %s", from)
				}
			}
			if w.comes(t, from) != nil {
				t.Errorf("%s has more than its half", from)
			}
		}
		if w.comes(t, hosts[2]) == nil {
			t.Errorf("%s is kept out", hosts[2])
		}
	}
}

// TestTwoAddressesKeepNoLinkOut: neighbours on a link, whom one of them may have come before, get
// places of those who have more than all of them.
func TestTwoAddressesKeepNoLinkOut(t *testing.T) {
	w := newWaitingRoom()
	for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
		for range maxOfAddress {
			w.comes(t, from)
		}
	}
	for _, from := range []string{"fe80::1", "fe80::2", "fe80::3", "fe80::1"} {
		if w.comes(t, from) == nil {
			t.Errorf("%s is kept out", from)
		}
	}
}

// TestLeavingIsBounded: who gave way holds memory until it has noticed.
func TestLeavingIsBounded(t *testing.T) {
	w := newWaitingRoom()
	var gone *seat
	for i := range MaxPingers + maxOfAddress {
		s := w.comes(t, fmt.Sprintf("192.0.2.%d", i))
		if w.clock = w.clock.Add(quiet); i == 0 {
			gone = s
		}
	}
	for i := range maxOfAddress {
		w.comes(t, fmt.Sprintf("198.51.100.%d", i))
		w.clock = w.clock.Add(quiet)
	}
	if w.told != MaxPingers || w.comes(t, "203.0.113.1") != nil {
		t.Errorf("%d have not noticed, and another one comes", w.told)
	}
	gone.leave()
	if w.comes(t, "203.0.113.1") == nil {
		t.Error("one has noticed, and there is no place")
	}
}
