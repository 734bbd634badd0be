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
// with everything; Insert and Delete exclude each other, and allocate nothing as long as about
// as many numbers are in use as before.
type Table[T any] struct {
	slots atomic.Pointer[[]slot[T]]
	// moves is odd while values change their slots, and another number when they have.
	moves atomic.Uint64

	mu      sync.Mutex
	rand    Rand
	min     uint32
	max     uint32
	live    int
	resting quarantined
}

// A slot has a value or none. It is written in an order by which a reader notices a change: the
// number is not there while the value changes.
type slot[T any] struct {
	number atomic.Uint64 // with inUse, 0 of a slot without a value
	value  atomic.Pointer[T]
}

// inUse is in the number of a slot that has a value.
const inUse = 1 << 32

// New returns an empty table for numbers min to max, both included.
func New[T any](minNum, maxNum uint32, rand Rand) *Table[T] {
	t := &Table[T]{rand: rand, min: minNum, max: maxNum}
	slots := make([]slot[T], minSlots)
	t.slots.Store(&slots)
	return t
}

// Lookup returns the value of a number, nil when there is none. It takes no lock, but where
// numbers are deleted at the same moment and this one is not found at once.
func (t *Table[T]) Lookup(num uint32) *T {
	moves := t.moves.Load()
	v, sure := find(*t.slots.Load(), num)
	if sure && (v != nil || moves&1 == 0 && moves == t.moves.Load()) {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v, _ = find(*t.slots.Load(), num)
	return v
}

// Moves changes with each number that is deleted, and is odd while that goes on: a number that was
// there is there still as long as it has the same even value.
func (t *Table[T]) Moves() uint64 { return t.moves.Load() }

// find looks for the value of a number. It is not sure when the slot has changed meanwhile. While
// others change slots a value that is not found may be there all the same.
func find[T any](slots []slot[T], num uint32) (v *T, sure bool) {
	mask, want := uint32(len(slots)-1), inUse|uint64(num)
	// Numbers are random, so their low bits are the hash. The table is never more than half
	// full, so a slot without a value ends the search.
	for i := num & mask; ; i = (i + 1) & mask {
		switch s := &slots[i]; s.number.Load() {
		case want:
			v = s.value.Load()
			return v, s.number.Load() == want
		case 0:
			return nil, true
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
	if num >= t.min && num <= t.max || t.has(num) {
		return false
	}
	t.insert(num, v)
	return true
}

// has reports whether a number is in use. The caller holds mu.
func (t *Table[T]) has(num uint32) bool {
	v, _ := find(*t.slots.Load(), num)
	return v != nil
}

// insert publishes a value under a free number. The caller holds mu.
func (t *Table[T]) insert(num uint32, v *T) {
	if n := len(*t.slots.Load()); 2*(t.live+1) > n {
		t.rebuild(2 * n)
	}
	place(*t.slots.Load(), inUse|uint64(num), v)
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
		switch slots[i].number.Load() {
		case 0:
			return false
		case inUse | uint64(num):
			t.vacate(slots, i)
			t.live--
			t.rest(num)
			if len(slots) > minSlots && 32*t.live < len(slots) {
				t.rebuild(len(slots) / 4)
			}
			return true
		}
	}
}

// vacate empties a slot, and moves what lies behind it to where a search finds it. Who looks
// meanwhile may miss that. The caller holds mu.
func (t *Table[T]) vacate(slots []slot[T], hole uint32) {
	t.moves.Add(1)
	defer t.moves.Add(1)
	mask := uint32(len(slots) - 1)
	for i := (hole + 1) & mask; ; i = (i + 1) & mask {
		number := slots[i].number.Load()
		if number == 0 {
			break
		}
		// One whose search begins behind the hole does not pass there.
		if begin := uint32(number) & mask; (i-begin)&mask < (i-hole)&mask {
			continue
		}
		slots[hole].set(number, slots[i].value.Load())
		hole = i
	}
	slots[hole].set(0, nil)
}

// set puts a value into a slot.
func (s *slot[T]) set(number uint64, v *T) {
	s.number.Store(0)
	s.value.Store(v)
	s.number.Store(number)
}

// Len returns how many numbers are in use.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// All calls yield for each value that there is, until it returns false, without a lock. Values
// inserted or deleted meanwhile may or may not be seen.
func (t *Table[T]) All(yield func(num uint32, v *T) bool) {
	for _, n := range t.all() {
		if !yield(n.num, n.value) {
			return
		}
	}
}

// numbered is a value and its number.
type numbered[T any] struct {
	num   uint32
	value *T
}

// all returns what the table has.
func (t *Table[T]) all() []numbered[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]numbered[T], 0, t.live)
	slots := *t.slots.Load()
	for i := range slots {
		if number := slots[i].number.Load(); number != 0 {
			list = append(list, numbered[T]{uint32(number), slots[i].value.Load()})
		}
	}
	return list
}

// draw picks a number that is neither in use nor resting.
func (t *Table[T]) draw() (uint32, error) {
	span := uint64(t.max-t.min) + 1
	if uint64(t.live)+uint64(len(t.resting.list)) >= span {
		return 0, ErrFull
	}
	for {
		// A 64-bit draw over a span of at most 2^32 is biased by less than
		// one in 2^32.
		num := t.min + uint32(t.rand.Uint64()%span)
		if !t.resting.has(num) && !t.has(num) {
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
	t.resting.add(num, int(limit))
}

// rebuild copies the values to a table of another size, and publishes it. Readers in the old one
// see what they would have seen.
func (t *Table[T]) rebuild(size int) {
	old, slots := *t.slots.Load(), make([]slot[T], size)
	for i := range old {
		if number := old[i].number.Load(); number != 0 {
			place(slots, number, old[i].value.Load())
		}
	}
	t.slots.Store(&slots)
}

// place puts a value into the first empty slot of its chain.
func place[T any](slots []slot[T], number uint64, v *T) {
	mask := uint32(len(slots) - 1)
	i := uint32(number) & mask
	for slots[i].number.Load() != 0 {
		i = (i + 1) & mask
	}
	slots[i].set(number, v)
}
