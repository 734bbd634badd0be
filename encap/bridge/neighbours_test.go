package bridge

import (
	"net/netip"
	"testing"

	"xroce/roce/clock"
)

func host4(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

func neighbours(t *testing.T, size int) *Neighbours {
	t.Helper()
	n, err := NewNeighbours(Config{Size: size, Ports: 3, Age: 10 * clock.Second})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNeighbours: an address is answered for while who has it is at a peer, and was heard.
func TestNeighbours(t *testing.T) {
	n := neighbours(t, 30)
	who := Neighbour{Addr: host4(1), MAC: MAC{2, 1}, Router: true}
	n.Learn(clock.Second, who, 2)
	if got, port, ok := n.Find(2*clock.Second, host4(1)); got != who || port != 2 || !ok {
		t.Errorf("%+v at %d (%t)", got, port, ok)
	}
	n.Learn(clock.Second, Neighbour{Addr: host4(2), MAC: MAC{2, 2}}, Inside)
	for name, a := range map[string]netip.Addr{"inside": host4(2), "unknown": host4(3)} {
		if _, _, ok := n.Find(2*clock.Second, a); ok {
			t.Errorf("%s: found", name)
		}
	}
	if _, _, ok := n.Find(11*clock.Second, host4(1)); ok {
		t.Error("found though it was not heard for the age")
	}
	n.Learn(11*clock.Second, who, 2)
	n.Forget(2)
	if _, _, ok := n.Find(11*clock.Second, host4(1)); ok || n.Len() != 1 {
		t.Errorf("found after its peer has gone (%d)", n.Len())
	}
	for _, bad := range []Neighbour{
		{MAC: MAC{2}}, {Addr: host4(4)}, {Addr: host4(4), MAC: MAC{1}},
	} {
		if n.Learn(0, bad, 1); n.Len() != 1 {
			t.Errorf("%+v is learned", bad)
		}
	}
}

// TestNeighbourMoved: an address that was said to be at two places, with another MAC address or
// at another peer or inside, is not answered for until that is long ago.
func TestNeighbourMoved(t *testing.T) {
	for name, other := range map[string]struct {
		mac  MAC
		port Port
	}{"MAC": {MAC{2, 9}, 1}, "peer": {MAC{2, 1}, 2}, "inside": {MAC{2, 1}, Inside}} {
		n := neighbours(t, 30)
		first := Neighbour{Addr: host4(1), MAC: MAC{2, 1}}
		n.Learn(0, first, 1)
		n.Learn(clock.Second, Neighbour{Addr: host4(1), MAC: other.mac}, other.port)
		n.Learn(2*clock.Second, first, 1)
		for now := 2 * clock.Second; now < 12*clock.Second; now += clock.Second {
			n.Learn(now, first, 1)
			if _, _, ok := n.Find(now, host4(1)); ok {
				t.Errorf("%s: answered for after %d ns", name, now)
			}
		}
		n.Learn(13*clock.Second, first, 1)
		if _, _, ok := n.Find(13*clock.Second, host4(1)); !ok {
			t.Errorf("%s: never answered for again", name)
		}
		if n.used[0]+n.used[1]+n.used[2] != n.Len() {
			t.Errorf("%s: %v for %d", name, n.used, n.Len())
		}
	}
}

// TestNeighboursFull: a flood of one port takes nothing from others, and ends with the age.
func TestNeighboursFull(t *testing.T) {
	n := neighbours(t, 9)
	n.Learn(0, Neighbour{Addr: host4(200), MAC: MAC{2, 2}}, 2)
	for i := range byte(100) {
		n.Learn(clock.Second, Neighbour{Addr: host4(i), MAC: MAC{2, 1}}, 1)
	}
	if n.used[1] != 3 || n.Len() != 4 || n.Missed() != 97 {
		t.Errorf("%v, %d, %d missed", n.used, n.Len(), n.Missed())
	}
	if _, _, ok := n.Find(clock.Second, host4(200)); !ok {
		t.Error("that of another port is lost")
	}
	n.Learn(12*clock.Second, Neighbour{Addr: host4(100), MAC: MAC{2, 1}}, 1)
	if _, _, ok := n.Find(12*clock.Second, host4(100)); !ok {
		t.Error("nothing is learned when the others are old")
	}
	for _, c := range []Config{{Ports: 1}, {Ports: 3, Size: 2}, {Ports: 3, Age: -1}} {
		if _, err := NewNeighbours(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
