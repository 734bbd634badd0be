package analyze

import (
	"xroce/roce/clock"
	"xroce/roce/wire"
)

// Kind is what an operation does.
type Kind uint8

// The kinds of operations.
const (
	Send Kind = iota
	Write
	Read
	Atomic
	Flush
	AtomicWrite

	numKinds = int(iota)
)

// String is the name of the kind.
func (k Kind) String() string {
	return [numKinds + 2]string{"SEND", "WRITE", "READ", "ATOMIC", "FLUSH", "ATOMIC_WRITE"}[k&7]
}

// kindOf is the kind of operation that a request belongs to.
func kindOf(s *wire.OpcodeSpec) Kind {
	switch {
	case s.Is(wire.ClassAtomicWrite):
		return AtomicWrite
	case s.Is(wire.ClassFlush):
		return Flush
	case s.Is(wire.ClassAtomic):
		return Atomic
	case s.Is(wire.ClassRead):
		return Read
	case s.Is(wire.ClassWrite):
		return Write
	}
	return Send
}

// An operation is one that is not answered yet.
type operation struct {
	kind  Kind
	ended bool // its last packet was seen
	first wire.PSN
	last  wire.PSN // of a READ the last of its answer, as far as the MTU is known
	at    clock.Time
	asked uint32 // bytes, of a READ
}

// maxOutstanding is how many operations of a direction are remembered until they are answered.
const maxOutstanding = 256

// Work is what there was of a kind of operation.
type Work struct {
	Operations int    // that began
	Bytes      uint64 // of payload, asked for or sent, without what came again
	Latency    Histogram
}

// window are the operations of a requester that are not answered yet, from the oldest.
type window struct {
	list      []operation
	forgotten int // because there were too many
}

func (w *window) push(o operation) {
	if len(w.list) == maxOutstanding {
		w.list = append(w.list[:0], w.list[1:]...)
		w.forgotten++
	}
	w.list = append(w.list, o)
}

// newest is the last operation, nil when there is none.
func (w *window) newest() *operation {
	if len(w.list) == 0 {
		return nil
	}
	return &w.list[len(w.list)-1]
}

// acknowledge calls done for each operation that ends at or before a PSN, and forgets it. A READ or
// an atomic is only done when its answer came, unless something behind it is acknowledged.
func (w *window) acknowledge(psn wire.PSN, answer bool, done func(o *operation)) {
	n := 0
	for i := range w.list {
		o := &w.list[i]
		if !o.ended || psn.Before(o.last) || !answer && psn == o.last && o.answered() {
			break
		}
		done(o)
		n++
	}
	if n > 0 {
		w.list = append(w.list[:0], w.list[n:]...)
	}
}

// answered reports whether an operation is answered by more than an acknowledgement.
func (o *operation) answered() bool { return o.kind != Send && o.kind != Write }
