package mem

import (
	"bytes"
	"math"
	"math/big"
	"testing"
)

// What a region can grant: everything, and what needs no memory that persists.
const (
	volatile = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic | FlushGlobal |
		Invalidatable
	everything = volatile | FlushPersistent
)

// A call is one of the ways to use a key. Which of the defects of a request it
// can see differs.
type call struct {
	name   string
	do     func(k *Keys, d *Domain, key uint32, addr uint64) Fault
	need   Access
	n      uint64 // bytes that it uses, 0 when it looks at no address
	word   bool   // must be aligned
	writes bool
}

// calls are all of them; where a length is to be told it is 16.
var calls = []call{
	{"Check", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return k.Check(d.Local(), key, addr, 16, RemoteRead)
	}, RemoteRead, 16, false, false},
	{"Load", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return k.Load(d.Local(), key, addr, make([]byte, 16), RemoteRead)
	}, RemoteRead, 16, false, false},
	{"Store", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return k.Store(d.Local(), key, addr, make([]byte, 16), RemoteWrite)
	}, RemoteWrite, 16, false, true},
	{"FetchAdd", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		_, f := k.FetchAdd(d.Local(), key, addr, 1)
		return f
	}, RemoteAtomic, 8, true, true},
	{"CompareSwap", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		_, f := k.CompareSwap(d.Local(), key, addr, math.MaxUint64, 1)
		return f
	}, RemoteAtomic, 8, true, true},
	{"StoreWord", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return k.StoreWord(d.Local(), key, addr, 1)
	}, RemoteWrite, 8, true, true},
	{"Flush", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return flush(k, d.Local(), key, addr, 16, false, false)
	}, FlushGlobal, 16, false, false},
	{"Flush persistent", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return flush(k, d.Local(), key, addr, 16, false, true)
	}, FlushPersistent, 16, false, false},
	{"Flush whole", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return flush(k, d.Local(), key, addr, -1, true, false)
	}, FlushGlobal, 0, false, false},
	{"Flush whole persistent", func(k *Keys, d *Domain, key uint32, addr uint64) Fault {
		return flush(k, d.Local(), key, addr, -1, true, true)
	}, FlushPersistent, 0, false, false},
	{"Invalidate", func(k *Keys, d *Domain, key uint32, _ uint64) Fault {
		return k.Invalidate(d.Local(), key)
	}, Invalidatable, 0, false, false},
}

// TestOrderOfFaults: of several defects of a request each call reports the one
// that is checked first, and leaves memory alone.
func TestOrderOfFaults(t *testing.T) {
	const size, base = 32, 0x1000
	for _, c := range calls {
		for set := range 1 << 6 {
			has := func(i int) bool { return set&(1<<i) != 0 }
			badKey, badDomain, invalid := has(0), has(1), has(2)
			badRights, badRange, odd := has(3), has(4), has(5)

			// A region that cannot be invalidated is never invalid.
			if c.need == Invalidatable && invalid && badRights {
				continue
			}
			access := everything
			if badRights {
				access &^= c.need
				if c.need&(RemoteWrite|RemoteAtomic) != 0 {
					access &^= RemoteWrite | RemoteAtomic
				}
			}
			k, d := newKeys(uint64(set)), new(Domain)
			b := bytes.Repeat([]byte{0xff}, size)
			synced := func(int, int) error { return nil }
			r, err := k.RegisterMemory(d, Memory{Bytes: b, Addr: base, Sync: synced}, access)
			if err != nil {
				t.Fatal(err)
			}
			key, addr := r.RKey(), uint64(base+8)
			if invalid && k.Invalidate(d.Local(), key) != OK {
				t.Fatal("not invalidated")
			}
			if badKey {
				key ^= 1
			}
			if badDomain {
				d = new(Domain)
			}
			if badRange {
				addr = base + size - c.n + 8
			}
			if odd {
				addr++
			}
			want := OK
			switch {
			case badKey:
				want = FaultNoKey
			case badDomain:
				want = FaultDomain
			case invalid:
				want = FaultInvalid
			case badRights:
				want = FaultRights
			case badRange && c.n > 0:
				want = FaultOutOfRange
			case odd && c.word:
				want = FaultMisaligned
			}
			if got := c.do(k, d, key, addr); got != want {
				t.Errorf("%s, defects %06b: %s, want %s", c.name, set, got, want)
			}
			wrote := !bytes.Equal(b, bytes.Repeat([]byte{0xff}, size))
			if wrote != (c.writes && want == OK) {
				t.Errorf("%s, defects %06b: memory is %x", c.name, set, b)
			}
		}
	}
}

// arithmeticCorners are where 31, 32, 63 and 64 bits are at an end.
var arithmeticCorners = []uint64{
	0, 1, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1,
	1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 32, math.MaxUint64,
}

// inside reports whether n bytes at addr are in a region, in unbounded integers.
func inside(addr, base uint64, size int, n int64) bool {
	if n < 0 {
		return false
	}
	lo, end := new(big.Int).SetUint64(base), new(big.Int).SetUint64(addr)
	end.Add(end, big.NewInt(n))
	hi := new(big.Int).Add(lo, big.NewInt(int64(size)))
	return new(big.Int).SetUint64(addr).Cmp(lo) >= 0 && end.Cmp(hi) <= 0
}

// TestArithmetic compares every call with unbounded integers, at every corner
// where an address, a base or a length could wrap.
func TestArithmetic(t *testing.T) {
	const size = 24
	lengths := []int{
		-1, math.MinInt64, 0, 1, 7, 8, 23, 24, 25, 1 << 31, 1<<31 + 1, 1 << 32, 1<<32 - 1,
		math.MaxInt64,
	}
	b := make([]byte, size)
	for _, base := range arithmeticCorners {
		k, d := newKeys(base), new(Domain)
		synced := func(off, n int) error { _ = b[off:][:n]; return nil }
		r, err := k.RegisterMemory(d, Memory{Bytes: b, Addr: base, Sync: synced},
			everything&^Invalidatable)
		if (err == nil) != (base <= math.MaxUint64-size) {
			t.Errorf("base %#x: %v", base, err)
		}
		if err != nil {
			continue
		}
		for _, from := range append(arithmeticCorners, base) {
			for delta := range uint64(size + 2) {
				addr := from + delta
				for _, c := range calls {
					if c.n == 0 {
						continue
					}
					want := OK
					switch {
					case !inside(addr, base, size, int64(c.n)):
						want = FaultOutOfRange
					case c.word && (addr%8 != 0 || (addr-base)%8 != 0):
						want = FaultMisaligned
					}
					if got := c.do(k, d, r.RKey(), addr); got != want {
						t.Errorf("%s at %#x of %#x: %s, want %s", c.name, addr, base, got, want)
					}
				}
				for _, n := range lengths {
					f := flush(k, d.Local(), r.RKey(), addr, n, false, true)
					if (f == OK) != inside(addr, base, size, int64(n)) {
						t.Errorf("flush of %d at %#x of %#x: %s", n, addr, base, f)
					}
				}
			}
		}
	}
}

// TestNothingAllocates on the way of a packet.
func TestNothingAllocates(t *testing.T) {
	k, d := newKeys(5), new(Domain)
	sync := func(int, int) error { return nil }
	m := Memory{Bytes: make([]byte, 64), Sync: sync}
	r, err := k.RegisterMemory(d, m, everything)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	for name, f := range map[string]func() Fault{
		"Load":     func() Fault { return k.Load(d.Local(), r.RKey(), 0, buf, RemoteRead) },
		"Store":    func() Fault { return k.Store(d.Local(), r.RKey(), 0, buf, RemoteWrite) },
		"FetchAdd": func() Fault { _, f := k.FetchAdd(d.Local(), r.RKey(), 8, 1); return f },
		"CompareSwap": func() Fault {
			_, f := k.CompareSwap(d.Local(), r.RKey(), 8, 1, 2)
			return f
		},
		"StoreWord": func() Fault { return k.StoreWord(d.Local(), r.RKey(), 8, 1) },
		"Flush":     func() Fault { return flush(k, d.Local(), r.RKey(), 1, 2, false, true) },
	} {
		fault := OK
		if n := testing.AllocsPerRun(100, func() { fault = f() }); n != 0 || fault != OK {
			t.Errorf("%s: %v allocations, %s", name, n, fault)
		}
	}
}
