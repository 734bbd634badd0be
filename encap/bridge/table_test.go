package bridge

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/clock"
)

// A slowTable is a list of addresses, the one that was heard last at the end.
type slowTable struct {
	ports, share int
	age          clock.Time
	list         []entry
}

func (s *slowTable) learn(now clock.Time, mac MAC, port Port) {
	if mac[0]&1 != 0 || mac == (MAC{}) {
		return
	}
	var kept []entry
	for _, e := range s.list {
		if e.mac != mac {
			kept = append(kept, e)
		}
	}
	s.list = append(kept, entry{mac: mac, port: port, heard: now})
	n, first := 0, -1
	for i, e := range s.list {
		if e.port == port {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n > s.share {
		s.list = append(s.list[:first:first], s.list[first+1:]...)
	}
}

func (s *slowTable) find(now clock.Time, mac MAC) (Port, bool) {
	for _, e := range s.list {
		if e.mac == mac && now-e.heard < s.age {
			return e.port, true
		}
	}
	return 0, false
}

// TestTableModel compares the table with a list, for frames from and to few addresses.
func TestTableModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports := rapid.IntRange(2, 5).Draw(t, "ports")
		size := rapid.IntRange(ports, 20).Draw(t, "size")
		table, err := New(Config{Size: size, Ports: ports, Age: 50})
		if err != nil {
			t.Fatal(err)
		}
		model := &slowTable{ports: ports, share: size / ports, age: 50}
		now := clock.Time(0)
		mac := func(name string) MAC {
			group := rapid.ByteRange(0, 1).Draw(t, name+" of a group")
			return MAC{group, 5: rapid.ByteRange(0, 23).Draw(t, name)}
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			now += clock.Time(rapid.IntRange(0, 5).Draw(t, "time"))
			dst, src := mac("dst"), mac("src")
			port := Port(rapid.IntRange(0, ports-1).Draw(t, "port"))
			switch rapid.IntRange(0, 20).Draw(t, "what") {
			case 0:
				table.Expire(now)
				continue
			case 1:
				table.Forget(port)
				var kept []entry
				for _, e := range model.list {
					if e.port != port {
						kept = append(kept, e)
					}
				}
				model.list = kept
				continue
			}
			if src[0]&1 == 0 {
				model.learn(now, src, port)
			}
			at, known := model.find(now, dst)
			if port == Inside {
				want := Flood
				switch {
				case src[0]&1 != 0:
					want = Drop
				case dst[0]&1 != 0 || !known:
				case at == Inside:
					want = Drop
				default:
					want = at
				}
				if got := table.FromInside(now, dst, src); got != want {
					t.Fatalf("from inside to %x: %d, want %d", dst, got, want)
				}
			} else {
				want := src[0]&1 == 0 && (dst[0]&1 != 0 || !known || at == Inside)
				if got := table.FromPeer(now, dst, src, port); got != want {
					t.Fatalf("from peer %d to %x: %v, want %v", port, dst, got, want)
				}
			}
			if table.Len() > size {
				t.Fatalf("%d addresses of %d", table.Len(), size)
			}
		}
	})
}

// TestFloodOfAddresses: new addresses from one peer drive out none but its own.
func TestFloodOfAddresses(t *testing.T) {
	table, err := New(Config{Size: 64, Ports: 4})
	if err != nil {
		t.Fatal(err)
	}
	quiet, inside := MAC{2, 1}, MAC{2, 2}
	table.Learn(0, quiet, 1)
	table.Learn(0, inside, Inside)
	for i := range 100_000 {
		table.FromPeer(1, inside, MAC{2, 3, byte(i >> 16), byte(i >> 8), byte(i)}, 2)
	}
	if port := table.FromInside(2, quiet, inside); port != 1 {
		t.Errorf("the address of a peer that was quiet is at %d", port)
	}
	if n := table.Len(); n != 2+16 {
		t.Errorf("%d addresses", n)
	}
	if s := table.Stats(); s.Evicted != 100_000-16 || s.Learned != 100_002 {
		t.Errorf("%+v", s)
	}
}

// TestSplitHorizon: what comes from a peer never goes to one.
func TestSplitHorizon(t *testing.T) {
	table, err := New(Config{Ports: 4})
	if err != nil {
		t.Fatal(err)
	}
	a, b := MAC{2, 1}, MAC{2, 2}
	table.Learn(0, b, 2)
	if table.FromPeer(0, b, a, 1) {
		t.Error("a frame from one peer to another goes inside")
	}
	if !table.FromPeer(0, MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, a, 1) {
		t.Error("a broadcast from a peer does not go inside")
	}
}

// TestTableAllocs: nothing on the way of a frame allocates.
func TestTableAllocs(t *testing.T) {
	table, err := New(Config{Ports: 2, Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for range 1000 {
		table.FromPeer(0, MAC{2}, MAC{2, 1, byte(i >> 8), byte(i)}, 1)
		i++
	}
	if n := testing.AllocsPerRun(1000, func() {
		table.FromPeer(0, MAC{2}, MAC{2, 1, byte(i >> 8), byte(i)}, 1)
		table.FromInside(0, MAC{2, 1, byte(i >> 8), byte(i)}, MAC{2})
		i++
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// TestConfigs that make no table are refused.
func TestConfigs(t *testing.T) {
	for _, c := range []Config{
		{},
		{Ports: 1},
		{Ports: maxPorts + 1},
		{Ports: 5, Size: 4},
		{Ports: 2, Age: -1},
		{Ports: 2, Size: maxSize + 1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v makes a table", c)
		}
	}
}
