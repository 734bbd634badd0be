package mem

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func newKeys(seed uint64) *Keys { return NewKeys(rand.NewPCG(seed, 0)) }

func TestFaults(t *testing.T) {
	k, d := newKeys(2), new(Domain)
	r, err := k.RegisterAt(d, make([]byte, 100), 0x1000, LocalWrite|RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		domain *Domain
		key    uint32
		addr   uint64
		n      int
		need   Access
		want   Fault
	}{
		{"all of it", d, r.RKey(), 0x1000, 100, RemoteRead, OK},
		{"nothing at the end", d, r.RKey(), 0x1064, 0, RemoteRead, OK},
		{"other variant", d, r.RKey() ^ 1, 0x1000, 1, RemoteRead, FaultNoKey},
		{"other index", d, r.RKey() ^ 0x100, 0x1000, 1, RemoteRead, FaultNoKey},
		{"other domain", new(Domain), r.RKey(), 0x1000, 1, RemoteRead, FaultDomain},
		{"not granted", d, r.RKey(), 0x1000, 1, RemoteWrite, FaultRights},
		{"one of two granted", d, r.RKey(), 0x1000, 1, RemoteRead | RemoteWrite, FaultRights},
		{"one before", d, r.RKey(), 0xfff, 1, RemoteRead, FaultOutOfRange},
		{"one too long", d, r.RKey(), 0x1001, 100, RemoteRead, FaultOutOfRange},
		{"nothing behind the end", d, r.RKey(), 0x1065, 0, RemoteRead, FaultOutOfRange},
		{"far behind", d, r.RKey(), math.MaxUint64, 1, RemoteRead, FaultOutOfRange},
	} {
		if got := k.Check(tt.domain.Local(), tt.key, tt.addr, tt.n, tt.need); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestRangeArithmetic compares the range check with one in unbounded integers
// at every corner where 64-bit arithmetic could wrap.
func TestRangeArithmetic(t *testing.T) {
	corners := []uint64{
		0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63,
		math.MaxUint64 - 8, math.MaxUint64,
	}
	for _, base := range corners {
		if base > math.MaxUint64-8 {
			continue
		}
		v := &view{base: base, length: 8}
		for _, from := range corners {
			for _, delta := range []uint64{0, 1, 7, 8, 9} {
				for _, n := range []int{0, 1, 7, 8, 9, 1 << 31, math.MaxInt64} {
					addr := from + delta
					lo, hi := new(big.Int).SetUint64(addr), new(big.Int).SetUint64(base+8)
					end := new(big.Int).Add(lo, big.NewInt(int64(n)))
					inside := lo.Cmp(new(big.Int).SetUint64(base)) >= 0 && end.Cmp(hi) <= 0
					if _, fault := v.within(addr, uint64(n)); (fault == OK) != inside {
						t.Errorf("base %#x addr %#x len %d: %s", base, addr, n, fault)
					}
				}
			}
		}
	}
}

func TestLoadAndStoreAreAllOrNothing(t *testing.T) {
	k, d := newKeys(3), new(Domain)
	b := []byte("0123456789")
	r, err := k.Register(d, b, LocalWrite|RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	if f := k.Store(d.Local(), r.RKey(), r.Addr()+2, []byte("ab"), RemoteWrite); f != OK {
		t.Fatal(f)
	}
	f := k.Store(d.Local(), r.RKey(), r.Addr()+9, []byte("xy"), RemoteWrite)
	if f != FaultOutOfRange {
		t.Fatal(f)
	}
	dst := []byte("....")
	if f := k.Load(d.Local(), r.LKey(), r.Addr()+1, dst, 0); f != OK || string(dst) != "1ab4" {
		t.Errorf("loaded %q, %s", dst, f)
	}
	f = k.Load(d.Local(), r.LKey(), r.Addr()+7, dst, 0)
	if f != FaultOutOfRange || string(dst) != "1ab4" {
		t.Errorf("a refused load left %q, %s", dst, f)
	}
	if !bytes.Equal(b, []byte("01ab456789")) {
		t.Errorf("memory is %q", b)
	}
}

func TestDeregisteredKeyIsGone(t *testing.T) {
	k, d := newKeys(4), new(Domain)
	r, err := k.Register(d, make([]byte, 8), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Deregister(r); err != nil {
		t.Error(err)
	}
	if err := k.Deregister(r); !errors.Is(err, ErrNotRegistered) || k.Len() != 0 {
		t.Errorf("deregistered twice: %v", err)
	}
	if f := k.Check(d.Local(), r.RKey(), r.Addr(), 0, 0); f != FaultNoKey {
		t.Errorf("key still answers: %s", f)
	}
}

func TestDomainsAreDistinct(t *testing.T) {
	if a, b := new(Domain), new(Domain); a == b {
		t.Error("two domains are one")
	}
}
