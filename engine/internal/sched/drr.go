package sched

// Quantum is how many bytes of frames an entity may send in a round: some packets,
// so that what a queue pair needs is fetched from memory once for all of them, and
// few enough to be over soon. It is more than the longest frame.
const Quantum = 16 << 10

// An Entity is what a DRR schedules. It is embedded in an object of type T, and made
// ready by Init.
type Entity[T any] struct {
	owner      *T
	queued     bool   // it is on a list,
	list       uint8  // which is this one
	round      uint32 // the last one in which it was served,
	deficit    int32  // and the bytes that it may send until the next
	next, prev *Entity[T]
}

// Init says in which object the entity is.
func (e *Entity[T]) Init(owner *T) { e.owner = owner }

// Queued reports whether the entity is on the active list.
func (e *Entity[T]) Queued() bool { return e.queued }

// MaySend reports whether the entity may send another packet in this round, urgent
// or not. It is asked between Dequeue and the next Enqueue.
func (e *Entity[T]) MaySend(urgent bool) bool {
	return e.deficit > 0 || (urgent && e.deficit > -Quantum)
}

// Charge counts bytes that the entity has sent.
func (e *Entity[T]) Charge(bytes int) { e.deficit -= int32(bytes) }

// Renew gives the entity a quantum before its turn, when it is the last.
func (e *Entity[T]) Renew() { e.deficit = Quantum }

// A DRR is the order in which entities that may have something to send do so: a
// deficit round robin (Shreedhar and Varghese, 1995). In each round each entity may
// send a quantum of bytes; what it sends beyond that is taken from its next quantum.
// So entities that always have work send the same number of bytes, whatever the size
// of their messages, and none waits for more than one quantum of each other one.
//
// Within a round those that are urgent come first: a queue pair with a response to send,
// for which the peer waits. An entity that has used up its quantum may still
// send what is urgent, up to a quantum in advance of the next round: so an
// acknowledgement does not wait for the data of all the others, and neither a flood
// of urgent work nor one of the other kind stops the other.
//
// The zero value is an empty one.
type DRR[T any] struct {
	round uint32
	// lists are the active lists of this round and the next, by the lowest bit of
	// the round, then by class.
	lists [2][2]activeList[T]
}

// The classes of entities within a round.
const (
	urgentClass = 0
	normalClass = 1
)

// Empty reports whether no entity is on an active list.
func (d *DRR[T]) Empty() bool { return d.over(d.round) && d.over(d.round+1) }

// over reports whether no entity is left in a round.
func (d *DRR[T]) over(round uint32) bool {
	lists := &d.lists[round&1]
	return lists[urgentClass].head == nil && lists[normalClass].head == nil
}

// Enqueue puts an entity on the active list, unless it is there. One that is there
// without being urgent moves forward when it becomes so.
func (d *DRR[T]) Enqueue(e *Entity[T], urgent bool) {
	class := uint32(normalClass)
	if urgent {
		class = urgentClass
	}
	if e.queued {
		if !urgent || e.list&1 == urgentClass {
			return
		}
		d.Remove(e)
	}
	round := d.round
	if e.round == round && !e.MaySend(urgent) {
		round++
	}
	e.queued, e.list = true, uint8(round&1<<1|class)
	d.listOf(e).push(e)
}

// listOf is the one that the entity is on.
func (d *DRR[T]) listOf(e *Entity[T]) *activeList[T] { return &d.lists[e.list>>1][e.list&1] }

// Dequeue takes the next entity off the active list and returns its owner, nil when
// the list is empty. The entity has its quantum then.
func (d *DRR[T]) Dequeue() *T {
	if d.over(d.round) {
		if d.over(d.round + 1) {
			return nil
		}
		d.round++
	}
	lists := &d.lists[d.round&1]
	e := lists[urgentClass].head
	if e == nil {
		e = lists[normalClass].head
	}
	d.Remove(e)
	if e.round != d.round {
		// What it did not use of its last quantum it did not need.
		e.round, e.deficit = d.round, min(e.deficit+Quantum, Quantum)
	}
	return e.owner
}

// Remove takes an entity off the active list, if it is there.
func (d *DRR[T]) Remove(e *Entity[T]) {
	if e.queued {
		d.listOf(e).remove(e)
		e.queued = false
	}
}

// An activeList has entities in the order in which they are served.
type activeList[T any] struct{ head, tail *Entity[T] }

// push puts an entity at the end.
func (l *activeList[T]) push(e *Entity[T]) {
	e.next, e.prev = nil, l.tail
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
}

// remove takes an entity out, which is in.
func (l *activeList[T]) remove(e *Entity[T]) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.next, e.prev = nil, nil
}
