package mem

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// words returns n words of memory, as bytes too.
func words(n int) ([]uint64, []byte) {
	w := make([]uint64, n)
	b := bytesOf(w)
	return w, b
}

func TestFetchAdd(t *testing.T) {
	w, b := words(2)
	k, d := newKeys(1), new(Domain)
	r, err := k.RegisterAt(d, b, 0x1000, LocalWrite|RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ memory, add, want uint64 }{
		{0, 1, 1},
		{1, 0, 1},
		{math.MaxUint64, 1, 0},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1},
		{1 << 63, 1 << 63, 0},
		{0x01020304_05060708, 0x10000000_00000001, 0x11020304_05060709},
	} {
		w[0], w[1] = 7, tt.memory
		old, f := k.FetchAdd(d.Local(), r.RKey(), 0x1008, tt.add)
		if f != OK || old != tt.memory || w[1] != tt.want || w[0] != 7 {
			t.Errorf("%#x + %#x: %#x, was %#x, %s", tt.memory, tt.add, w[1], old, f)
		}
	}
}

func TestCompareSwap(t *testing.T) {
	w, b := words(2)
	k, d := newKeys(1), new(Domain)
	r, err := k.RegisterAt(d, b, 0x1000, LocalWrite|RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ memory, compare, swap, want uint64 }{
		{0, 0, 1, 1},
		{0, 1, 2, 0},
		{5, 5, 5, 5},
		{math.MaxUint64, math.MaxUint64, 0, 0},
		{1 << 63, 0, 1, 1 << 63},
		{1 << 32, 0, 1, 1 << 32},
	} {
		w[0], w[1] = 7, tt.memory
		old, f := k.CompareSwap(d.Local(), r.RKey(), 0x1008, tt.compare, tt.swap)
		if f != OK || old != tt.memory || w[1] != tt.want || w[0] != 7 {
			t.Errorf("%+v: %#x, was %#x, %s", tt, w[1], old, f)
		}
	}
}

// TestStoreWordOrder: the bytes of the payload land in memory as they came.
func TestStoreWordOrder(t *testing.T) {
	_, b := words(3)
	k, d := newKeys(1), new(Domain)
	r, err := k.RegisterAt(d, b, 0x1000, LocalWrite|RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	f := k.StoreWord(d.Local(), r.RKey(), 0x1008, binary.NativeEndian.Uint64(payload))
	if f != OK || !bytes.Equal(b[8:16], payload) {
		t.Errorf("memory is %x, %s", b, f)
	}
	if !bytes.Equal(b[:8], make([]byte, 8)) || !bytes.Equal(b[16:], make([]byte, 8)) {
		t.Errorf("memory around it is %x", b)
	}
}

// TestAlignment: the address and the memory behind it must both be aligned.
func TestAlignment(t *testing.T) {
	for skew := range 8 { // of the memory
		_, b := words(8)
		for base := range uint64(8) { // of the address
			k, d := newKeys(base), new(Domain)
			r, err := k.RegisterAt(d, b[skew:], 0x1000+base, volatile)
			if err != nil {
				t.Fatal(err)
			}
			for off := range uint64(8) {
				want := FaultMisaligned
				if (uint64(skew)+off)%8 == 0 && (base+off)%8 == 0 {
					want = OK
				}
				for _, c := range calls {
					if !c.word {
						continue
					}
					if got := c.do(k, d, r.RKey(), r.Addr()+off); got != want {
						t.Errorf("%s at %d, memory at %d: %s, want %s",
							c.name, base+off, uint64(skew)+off, got, want)
					}
				}
			}
		}
	}
}

// TestAtomicModel runs random accesses against plain arithmetic on a copy of the
// memory.
func TestAtomicModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 4
		_, b := words(n)
		model := make([]byte, len(b))
		k, d := newKeys(1), new(Domain)
		r, err := k.RegisterAt(d, b, 0x1000, volatile)
		if err != nil {
			t.Fatal(err)
		}
		pick := func() (word []byte, addr uint64) {
			i := rapid.IntRange(0, n-1).Draw(t, "word")
			return model[8*i : 8*i+8], r.Addr() + uint64(8*i)
		}
		// Small numbers, so that a comparison is true now and then.
		number := rapid.OneOf(rapid.Uint64Range(0, 2), rapid.Uint64())
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if !bytes.Equal(b, model) {
					t.Fatalf("memory is %x, want %x", b, model)
				}
			},
			"FetchAdd": func(t *rapid.T) {
				word, addr := pick()
				was, add := binary.NativeEndian.Uint64(word), number.Draw(t, "add")
				old, f := k.FetchAdd(d.Local(), r.RKey(), addr, add)
				if f != OK || old != was {
					t.Fatalf("returned %#x, want %#x, %s", old, was, f)
				}
				binary.NativeEndian.PutUint64(word, was+add)
			},
			"CompareSwap": func(t *rapid.T) {
				word, addr := pick()
				was, compare := binary.NativeEndian.Uint64(word), number.Draw(t, "compare")
				swap := number.Draw(t, "swap")
				old, f := k.CompareSwap(d.Local(), r.RKey(), addr, compare, swap)
				if f != OK || old != was {
					t.Fatalf("returned %#x, want %#x, %s", old, was, f)
				}
				if was == compare {
					binary.NativeEndian.PutUint64(word, swap)
				}
			},
			"StoreWord": func(t *rapid.T) {
				word, addr := pick()
				payload := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "payload")
				f := k.StoreWord(d.Local(), r.RKey(), addr, binary.NativeEndian.Uint64(payload))
				if f != OK {
					t.Fatal(f)
				}
				copy(word, payload)
			},
			"Store": func(t *rapid.T) {
				src := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes")
				off := rapid.IntRange(0, len(b)-len(src)).Draw(t, "offset")
				f := k.Store(d.Local(), r.RKey(), r.Addr()+uint64(off), src, RemoteWrite)
				if f != OK {
					t.Fatal(f)
				}
				copy(model[off:], src)
			},
			"misaligned": func(t *rapid.T) {
				_, addr := pick()
				addr += rapid.Uint64Range(1, 7).Draw(t, "skew")
				if _, f := k.FetchAdd(d.Local(), r.RKey(), addr, 1); f == OK {
					t.Fatal("accepted")
				}
			},
		})
	})
}

// TestAtomicsOfAll: additions through two regions, compare-and-swap loops and the
// application's own sync/atomic all count on one word, and none is lost.
func TestAtomicsOfAll(t *testing.T) {
	const each = 5000
	w, b := words(1)
	k := newKeys(1)
	var regions [2]*Region
	for i := range regions {
		var err error
		regions[i], err = k.RegisterAt(new(Domain), b, uint64(i)<<12, LocalWrite|RemoteAtomic)
		if err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 2 {
		r := regions[i]
		wg.Go(func() {
			last := uint64(0)
			for n := range each {
				old, f := k.FetchAdd(r.Domain().Local(), r.RKey(), r.Addr(), 1)
				if f != OK || n > 0 && old <= last {
					t.Errorf("%d after %d, %s", old, last, f)
					return
				}
				last = old
			}
		})
		wg.Go(func() {
			guess := uint64(0)
			for n := 0; n < each; {
				old, f := k.CompareSwap(r.Domain().Local(), r.RKey(), r.Addr(), guess, guess+1)
				if f != OK {
					t.Error(f)
					return
				}
				if old == guess {
					n++
				}
				guess = old
			}
		})
		wg.Go(func() {
			for range each {
				atomic.AddUint64(&w[0], 1)
			}
		})
	}
	wg.Wait()
	if w[0] != 6*each {
		t.Errorf("counted %d, want %d", w[0], 6*each)
	}
}

// TestStoreWordIsWhole: a reader sees the word of one writer, never of two.
func TestStoreWordIsWhole(t *testing.T) {
	const each, pattern = 5000, 0x0001_0001_0001_0001
	w, b := words(1)
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, b, LocalWrite|RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range uint64(3) {
		wg.Go(func() {
			for n := range uint64(each) {
				if f := k.StoreWord(d.Local(), r.RKey(), r.Addr(), pattern*(3*n+i)); f != OK {
					t.Error(f)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for range each {
			if v := atomic.LoadUint64(&w[0]); v != pattern*(v&0xffff) {
				t.Errorf("read %#x", v)
				return
			}
		}
	})
	wg.Wait()
}
