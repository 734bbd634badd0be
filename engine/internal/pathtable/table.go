package pathtable

import (
	"sync"

	"xroce/roce/wire"
)

// A Destination is what the first hop of a path depends on.
type Destination struct {
	Framing  wire.Framing
	VLAN     wire.VLAN
	Src, Dst wire.GID
}

// DestinationOf is the destination of a path.
func DestinationOf(p *wire.Path) Destination {
	return Destination{p.Framing, p.Tags.VLAN(), p.Src, p.Dst}
}

// A Table lists the destinations in use, each with its users. A user has one
// destination at most. It is safe for concurrent use.
type Table[U comparable] struct {
	mu     sync.Mutex
	routes map[Destination]*route[U]
	of     map[U]*route[U]
	added  chan struct{} // has room for one
}

// A route is a destination with its users.
type route[U comparable] struct {
	to     Destination
	users  map[U]struct{}
	listed bool // by Destinations or Unlisted, since it came
}

// New returns an empty table.
func New[U comparable]() *Table[U] {
	return &Table[U]{
		routes: map[Destination]*route[U]{}, of: map[U]*route[U]{},
		added: make(chan struct{}, 1),
	}
}

// Added receives a value when a destination has come that was not in use; several
// may be one value. What was resolved for it may have been overtaken by a change
// before it came here, so the goroutine that follows changes resolves it once.
func (t *Table[U]) Added() <-chan struct{} { return t.added }

// Add makes a user one of a destination, and no longer of the one that it had.
func (t *Table[U]) Add(user U, to Destination) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.of[user]; r != nil && r.to == to {
		return
	}
	t.remove(user)
	r := t.routes[to]
	if r == nil {
		r = &route[U]{to: to, users: map[U]struct{}{}}
		t.routes[to] = r
		select {
		case t.added <- struct{}{}:
		default:
		}
	}
	r.users[user] = struct{}{}
	t.of[user] = r
}

// Remove takes a user out. One that is not in the table is no error.
func (t *Table[U]) Remove(user U) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(user)
}

// remove is Remove with the lock held.
func (t *Table[U]) remove(user U) {
	r := t.of[user]
	if r == nil {
		return
	}
	delete(t.of, user)
	delete(r.users, user)
	if len(r.users) == 0 {
		delete(t.routes, r.to)
	}
}

// Destinations lists the destinations in use, in no order.
func (t *Table[U]) Destinations() []Destination { return t.list(true) }

// Unlisted lists those that neither Destinations nor Unlisted has listed since they
// came.
func (t *Table[U]) Unlisted() []Destination { return t.list(false) }

func (t *Table[U]) list(all bool) (list []Destination) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for to, r := range t.routes {
		if all || !r.listed {
			r.listed = true
			list = append(list, to)
		}
	}
	return list
}

// Users lists the users of a destination, in no order.
func (t *Table[U]) Users(to Destination) (list []U) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.routes[to]; r != nil {
		for user := range r.users {
			list = append(list, user)
		}
	}
	return list
}

// Uses reports whether a user is one of a destination.
func (t *Table[U]) Uses(user U, to Destination) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of[user]
	return r != nil && r.to == to
}
