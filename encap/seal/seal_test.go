package seal

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func packet(n int) []byte {
	b := make([]byte, n+Overhead)
	for i := range b {
		b[i] = byte(i * 3)
	}
	return b
}

// TestSeal opens what was sealed, once, and nothing that was changed in any bit.
func TestSeal(t *testing.T) {
	s, o := NewSealer([KeyLen]byte{1}, 77), NewOpener([KeyLen]byte{1})
	for _, n := range []int{0, 1, 20, 1500} {
		b := packet(n)
		want := bytes.Clone(b[HeaderLen:][:n])
		length, r := s.Seal(b, n, 0xdecade)
		if r != OK || length != len(b) || n > 16 && bytes.Contains(b, want) {
			t.Fatalf("%d bytes: %d, %s", n, length, r)
		}
		if index, ok := Index(b); !ok || index != 77 {
			t.Errorf("index %d", index)
		}
		for i := range min(len(b), 64) * 8 {
			changed := bytes.Clone(b)
			changed[i/8] ^= 1 << (i % 8)
			if _, _, r := o.Open(changed); r == OK {
				t.Fatalf("%d bytes, bit %d changed: opened", n, i)
			}
		}
		again := bytes.Clone(b)
		plain, hint, r := o.Open(b)
		if r != OK || hint != 0xdecade || !bytes.Equal(plain, want) {
			t.Errorf("%d bytes: %s, hint %x", n, r, hint)
		}
		if _, _, r := o.Open(again); r != Replayed {
			t.Errorf("twice: %s", r)
		}
	}
	b := packet(10)
	s.Seal(b, 10, 0)
	if _, _, r := NewOpener([KeyLen]byte{2}).Open(b); r != Forged {
		t.Errorf("another key: %s", r)
	}
	if _, _, r := o.Open(b[:Overhead-1]); r != NotSealed {
		t.Errorf("too short: %s", r)
	}
	s.counter.Store(MaxPackets)
	if _, r := s.Seal(b, 10, 0); r != Exhausted {
		t.Errorf("one too many: %s", r)
	}
}

// TestWindow compares with a set of all counters.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		seen, last := map[uint64]bool{}, uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "packets") {
			near := rapid.Uint64Range(0, 2*windowLen).Draw(t, "near")
			counter := max(last+windowLen/8, near) - near
			if rapid.IntRange(0, 50).Draw(t, "far") == 0 {
				counter = last + rapid.Uint64Range(0, 5*windowLen).Draw(t, "jump")
			}
			want := counter != 0 && !seen[counter] &&
				(counter > last || last-counter < windowLen)
			if got := w.fresh(counter); got != want {
				t.Fatalf("counter %d after %d: %v, want %v", counter, last, got, want)
			}
			if want {
				w.note(counter)
				seen[counter], last = true, max(last, counter)
			}
		}
	})
}

// TestSealAllocs: nothing is allocated for a packet.
func TestSealAllocs(t *testing.T) {
	s, o, b := NewSealer([KeyLen]byte{}, 1), NewOpener([KeyLen]byte{}), packet(1000)
	if n := testing.AllocsPerRun(100, func() {
		s.Seal(b, 1000, 1)
		if _, _, r := o.Open(b); r != OK {
			t.Fatal(r)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzOpen opens no bytes that were not sealed.
func FuzzOpen(f *testing.F) {
	b := packet(30)
	NewSealer([KeyLen]byte{1}, 5).Seal(b, 30, 9)
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, r := NewOpener([KeyLen]byte{9}).Open(b); r == OK {
			t.Fatal("opened")
		}
	})
}
