package xsk

import (
	"runtime"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// nearWrap is where rings start in the tests: the 32-bit indices wrap soon.
const nearWrap = 0xFFFFFFF0

// newMemory makes a ring in ordinary memory.
func newMemory[T entry](size int, start uint32) RingMemory[T] {
	m := RingMemory[T]{
		Producer: new(atomic.Uint32), Consumer: new(atomic.Uint32), Flags: new(atomic.Uint32),
		Entries: make([]T, size),
	}
	m.Producer.Store(start)
	m.Consumer.Store(start)
	return m
}

// ends returns a ring seen from both sides.
func ends(size int, start uint32) (producer, consumer *ring[uint64]) {
	m := newMemory[uint64](size, start)
	producer, consumer = new(ring[uint64]), new(ring[uint64])
	producer.init(m, true)
	consumer.init(m, false)
	return producer, consumer
}

// TestRingIsAQueue compares a ring with a slice, over any calls and starts.
func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 1 << rapid.IntRange(0, 6).Draw(t, "log2 size")
		start := rapid.OneOf(rapid.Uint32(), rapid.Just(uint32(nearWrap))).Draw(t, "start")
		p, c := ends(size, start)
		var (
			next                        uint64   // value to write
			reserved, published, peeked []uint64 // by where they are
		)
		check := func(t *rapid.T, got span[uint64], want []uint64, what string) {
			if int(got.len()) != len(want) {
				t.Fatalf("%s: %d slots, want %d", what, got.len(), len(want))
			}
			for i, w := range want {
				if v := *got.at(uint32(i)); v != w {
					t.Fatalf("%s: slot %d is %d, want %d", what, i, v, w)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n := rapid.IntRange(0, size+2).Draw(t, "n")
				room := size - len(reserved) - len(published) - len(peeked)
				s := p.reserve(uint32(n))
				if int(s.len()) != min(n, room) {
					t.Fatalf("reserve(%d) with room %d: %d slots", n, room, s.len())
				}
				for i := range s.len() {
					*s.at(i) = next
					reserved = append(reserved, next)
					next++
				}
			},
			"submit": func(t *rapid.T) {
				n := rapid.IntRange(0, len(reserved)).Draw(t, "n")
				p.submit(uint32(n))
				published, reserved = append(published, reserved[:n]...), reserved[n:]
			},
			"peek": func(t *rapid.T) {
				n := min(rapid.IntRange(0, size+2).Draw(t, "n"), len(published))
				check(t, c.peek(uint32(n)), published[:n], "peek")
				peeked, published = append(peeked, published[:n]...), published[n:]
			},
			"release": func(t *rapid.T) {
				n := rapid.IntRange(0, len(peeked)).Draw(t, "n")
				c.release(uint32(n))
				peeked = peeked[n:]
			},
		})
	})
}

// TestRingAcrossThreads moves values between two goroutines over the wrap. Under
// the race detector it fails when an entry is touched outside the protocol.
func TestRingAcrossThreads(t *testing.T) {
	const total = 200_000
	p, c := ends(64, nearWrap)
	go func() {
		for v := uint64(0); v < total; {
			s := p.reserve(uint32(min(7, total-v)))
			for i := range s.len() {
				*s.at(i) = v
				v++
			}
			p.submit(s.len())
			if s.len() == 0 {
				runtime.Gosched()
			}
		}
	}()
	for want := uint64(0); want < total; {
		s := c.peek(13)
		for i := range s.len() {
			if v := *s.at(i); v != want {
				t.Fatalf("value %d, want %d", v, want)
			}
			want++
		}
		c.release(s.len())
		if s.len() == 0 {
			runtime.Gosched()
		}
	}
}

func TestRingSpanWraps(t *testing.T) {
	p, _ := ends(8, nearWrap+6) // slot 6
	s := p.reserve(5)
	if len(s.first) != 2 || len(s.second) != 3 {
		t.Fatalf("span of %d and %d slots, want 2 and 3", len(s.first), len(s.second))
	}
	if s.at(2) != &p.mem.Entries[0] {
		t.Error("third slot is not the first of the ring")
	}
}

func TestRingFlags(t *testing.T) {
	var tx txRing
	var fill fillRing
	tx.init(newMemory[Desc](4, nearWrap), true)
	fill.init(newMemory[uint64](4, nearWrap), true)
	if tx.needWakeup() || fill.needWakeup() {
		t.Error("a wake-up is asked for with flags 0")
	}
	tx.mem.Flags.Store(ringNeedWakeup)
	fill.mem.Flags.Store(ringNeedWakeup | 1<<7)
	if !tx.needWakeup() || !fill.needWakeup() {
		t.Error("no wake-up is asked for with the flag set")
	}
	tx.reserve(3)
	tx.submit(2)
	if n := tx.unsent(); n != 2 {
		t.Errorf("%d unsent, want 2", n)
	}
}

func BenchmarkRingProduceConsume(b *testing.B) {
	for _, batch := range []uint32{1, 64} {
		b.Run(map[uint32]string{1: "batch=1", 64: "batch=64"}[batch], func(b *testing.B) {
			p, c := ends(4096, 0)
			var sum uint64
			for i := 0; i < b.N; i += int(batch) {
				s := p.reserve(batch)
				for j := range s.len() {
					*s.at(j) = uint64(j)
				}
				p.submit(s.len())
				s = c.peek(batch)
				for j := range s.len() {
					sum += *s.at(j)
				}
				c.release(s.len())
			}
			if batch > 1 && b.N > 1 && sum == 0 {
				b.Fatal("nothing moved")
			}
		})
	}
}
