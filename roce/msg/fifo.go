package msg

import "iter"

// A fifo is a queue of values in a ring that grows and stays. The zero value is empty.
type fifo[T any] struct {
	ring  []T // a power of 2 long
	first int
	n     int
}

// push adds a value at the end.
func (f *fifo[T]) push(x T) { *f.add() = x }

// add adds a zero value at the end, to be filled in there: large ones are not copied then.
func (f *fifo[T]) add() *T {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.n++
	return &f.ring[(f.first+f.n-1)&(len(f.ring)-1)]
}

// pop takes the first value out; there must be one.
func (f *fifo[T]) pop() T {
	x := *f.head()
	f.drop()
	return x
}

// drop is pop of a value that nobody needs any more.
func (f *fifo[T]) drop() {
	var none T
	f.ring[f.first] = none
	f.first = (f.first + 1) & (len(f.ring) - 1)
	f.n--
}

// remove takes out the value that is i places behind the first one.
func (f *fifo[T]) remove(i int) {
	at := func(i int) *T { return &f.ring[(f.first+i)&(len(f.ring)-1)] }
	for ; i < f.n-1; i++ {
		*at(i) = *at(i + 1)
	}
	var none T
	*at(f.n - 1) = none
	f.n--
}

// head is the first value, which may be changed in place; there must be one.
func (f *fifo[T]) head() *T { return &f.ring[f.first] }

func (f *fifo[T]) grow() {
	ring := make([]T, max(8, 2*len(f.ring)))
	n := copy(ring, f.ring[f.first:])
	copy(ring[n:], f.ring[:f.first])
	f.ring, f.first = ring, 0
}

// all goes through the values, the first one first.
func (f *fifo[T]) all() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range f.n {
			if !yield(&f.ring[(f.first+i)&(len(f.ring)-1)]) {
				return
			}
		}
	}
}
