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

// MACs are the addresses on the link by which a path goes: ours, and that of its first hop.
type MACs struct{ Src, Dst [6]byte }

// MACsOf are those of a path.
func MACsOf(p *wire.Path) MACs { return MACs{p.SrcMAC, p.DstMAC} }

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
	by     MACs       // told last, at first those of the user that came first
	users  map[U]MACs // by which each goes
	listed bool       // by Destinations or Unlisted, since it came or a user by other addresses
}

// New returns an empty table.
func New[U comparable]() *Table[U] {
	return &Table[U]{
		routes: map[Destination]*route[U]{}, of: map[U]*route[U]{},
		added: make(chan struct{}, 1),
	}
}

// Added receives a value when a destination has come that was not in use, or a user that goes
// there by other addresses than the others; several may be one value. What was resolved for it
// may have been overtaken by a change before it came here, so the goroutine that follows changes
// resolves it once. There is none for a user that goes as the others do: a look is at all users of
// a destination, so that one for each of them would be quadratic.
func (t *Table[U]) Added() <-chan struct{} { return t.added }

// Add makes a user one of a destination, which it goes to by some addresses, and no longer of the
// one that it had.
func (t *Table[U]) Add(user U, to Destination, by MACs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of[user]
	if r == nil || r.to != to {
		r = t.move(user, to, by)
	}
	r.users[user] = by
	if r.by != by {
		r.listed = false
	}
	if !r.listed {
		select {
		case t.added <- struct{}{}:
		default:
		}
	}
}

// move makes a user one of a destination that it does not go to until now, with the lock held.
func (t *Table[U]) move(user U, to Destination, by MACs) *route[U] {
	t.remove(user)
	r := t.routes[to]
	if r == nil {
		r = &route[U]{to: to, by: by, users: map[U]MACs{}}
		t.routes[to] = r
	}
	t.of[user] = r
	return r
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
// came, or a user that goes there by other addresses than the others.
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

// Tell notes by which addresses a destination is reached, and lists those of its users who go there
// by others and are to be told, in no order. Who was told once is not told again.
func (t *Table[U]) Tell(to Destination, by MACs) (list []U) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.routes[to]; r != nil {
		r.by = by
		for user, goes := range r.users {
			if goes != by {
				r.users[user] = by
				list = append(list, user)
			}
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
