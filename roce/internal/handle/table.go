package handle

import (
	"errors"
	"sync"
	"sync/atomic"
)

// ErrFull says that no number can be drawn: the range is in use.
var ErrFull = errors.New("handle: no free number")

// Implementation constants.
const (
	// quarantine is how many numbers must be given back after one before that
	// one may be drawn again: a late packet must not meet a new object.
	quarantine = 1 << 16
	// minSlots is the first size of the hash table.
	minSlots = 16
)

// Rand is the source of randomness, in the shape of math/rand/v2.Source. It
// must be unpredictable where a peer is not trusted.
type Rand interface{ Uint64() uint64 }

// A Table maps random numbers to values. Lookup is safe for concurrent use
// with everything; Insert and Delete exclude each other.
type Table[T any] struct {
	slots atomic.Pointer[[]atomic.Pointer[entry[T]]]

	mu      sync.Mutex
	rand    Rand
	min     uint32
	max     uint32
	live    int
	used    int // slots that are not nil, deleted ones too
	retired []uint32
	oldest  int // index in retired of the oldest, once it is full
	resting map[uint32]struct{}
}

type entry[T any] struct {
	num   uint32
	value *T // nil in an entry that was deleted
}

// New returns an empty table for numbers min to max, both included.
func New[T any](minNum, maxNum uint32, rand Rand) *Table[T] {
	t := &Table[T]{rand: rand, min: minNum, max: maxNum, resting: map[uint32]struct{}{}}
	slots := make([]atomic.Pointer[entry[T]], minSlots)
	t.slots.Store(&slots)
	return t
}

// Lookup returns the value of a number, nil when there is none.
func (t *Table[T]) Lookup(num uint32) *T {
	slots := *t.slots.Load()
	mask := uint32(len(slots) - 1)
	// Numbers are random, so their low bits are the hash. A slot is nil
	// somewhere, since the table is never more than half full.
	for i := num & mask; ; i = (i + 1) & mask {
		e := slots[i].Load()
		if e == nil {
			return nil
		}
		if e.num == num && e.value != nil {
			return e.value
		}
	}
}

// Insert draws a number, makes the value with it and publishes it. The make
// function must not use the table.
func (t *Table[T]) Insert(build func(num uint32) *T) (*T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	num, err := t.draw()
	if err != nil {
		return nil, err
	}
	v := build(num)
	t.insert(num, v)
	return v, nil
}

// InsertAt publishes a value under a number that is never drawn, below or above
// the table's range. It reports whether the number was free.
func (t *Table[T]) InsertAt(num uint32, v *T) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if num >= t.min && num <= t.max || t.Lookup(num) != nil {
		return false
	}
	t.insert(num, v)
	return true
}

// insert publishes a value under a free number. The caller holds mu.
func (t *Table[T]) insert(num uint32, v *T) {
	if 2*(t.used+1) > len(*t.slots.Load()) {
		t.rebuild()
	}
	place(*t.slots.Load(), &entry[T]{num, v})
	t.used++
	t.live++
}

// Delete takes a number out and reports whether it was there. The number
// rests before it can be drawn again.
func (t *Table[T]) Delete(num uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := *t.slots.Load()
	mask := uint32(len(slots) - 1)
	for i := num & mask; ; i = (i + 1) & mask {
		e := slots[i].Load()
		if e == nil {
			return false
		}
		if e.num == num && e.value != nil {
			slots[i].Store(&entry[T]{num: num})
			t.live--
			t.rest(num)
			return true
		}
	}
}

// Len returns how many numbers are in use.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// All calls yield for each value until it returns false. Values inserted or
// deleted meanwhile may or may not be seen.
func (t *Table[T]) All(yield func(num uint32, v *T) bool) {
	slots := *t.slots.Load()
	for i := range slots {
		if e := slots[i].Load(); e != nil && e.value != nil && !yield(e.num, e.value) {
			return
		}
	}
}

// draw picks a number that is neither in use nor resting.
func (t *Table[T]) draw() (uint32, error) {
	span := uint64(t.max-t.min) + 1
	if uint64(t.live)+uint64(len(t.resting)) >= span {
		return 0, ErrFull
	}
	for {
		// A 64-bit draw over a span of at most 2^32 is biased by less than
		// one in 2^32.
		num := t.min + uint32(t.rand.Uint64()%span)
		if _, tired := t.resting[num]; !tired && t.Lookup(num) == nil {
			return num, nil
		}
	}
}

// rest keeps num from being drawn until enough others came after it. In a
// small range at most half of the numbers rest.
func (t *Table[T]) rest(num uint32) {
	limit := min(quarantine, (uint64(t.max-t.min)+1)/2)
	if limit == 0 || num < t.min || num > t.max {
		return
	}
	if uint64(len(t.retired)) < limit {
		t.retired = append(t.retired, num)
	} else {
		delete(t.resting, t.retired[t.oldest])
		t.retired[t.oldest] = num
		t.oldest = (t.oldest + 1) % len(t.retired)
	}
	t.resting[num] = struct{}{}
}

// rebuild copies the live entries to a table that they fill to a quarter, and
// publishes it. Readers in the old one see what they would have seen.
func (t *Table[T]) rebuild() {
	size := minSlots
	for size < 4*(t.live+1) {
		size *= 2
	}
	old := *t.slots.Load()
	slots := make([]atomic.Pointer[entry[T]], size)
	for i := range old {
		if e := old[i].Load(); e != nil && e.value != nil {
			place(slots, e)
		}
	}
	t.used = t.live
	t.slots.Store(&slots)
}

// place puts e in the first empty slot of its chain.
func place[T any](slots []atomic.Pointer[entry[T]], e *entry[T]) {
	mask := uint32(len(slots) - 1)
	i := e.num & mask
	for slots[i].Load() != nil {
		i = (i + 1) & mask
	}
	slots[i].Store(e)
}
