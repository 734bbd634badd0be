package engine

import (
	"sync"

	"xroce/roce"
)

// A pathBook knows which connected QPs go where, so that a change on the way costs
// as much as there are destinations, whatever the number of QPs, and a change that
// moves nothing does not stop the queue. Its lock comes after the progress lock.
type pathBook struct {
	follow bool // there is somebody to follow; set before the first QP

	mu    sync.Mutex
	going map[destination]*goers
	of    map[*QP]*goers
	// fresh has a value when a destination is new. What was resolved for it may
	// have been overtaken by a change before it came here, so it is looked at once.
	fresh chan struct{}
}

// goers are the QPs that go to one destination.
type goers struct {
	to      destination
	qps     map[*QP]struct{}
	checked bool // it was looked at since it came
}

func (b *pathBook) init() {
	b.going, b.of = map[destination]*goers{}, map[*QP]*goers{}
	b.fresh = make(chan struct{}, 1)
}

// enter puts a QP where its address vector says, or takes it out when it has none.
// The caller holds the progress lock.
func (b *pathBook) enter(q *QP) {
	if !b.follow || q.Type() == roce.TypeUD {
		return
	}
	path := q.machine.Attr().Path
	to := destinationOf(&path)
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.of[q]; g != nil && g.to == to {
		return
	}
	b.drop(q)
	if path.Framing == 0 {
		return
	}
	g := b.going[to]
	if g == nil {
		g = &goers{to: to, qps: map[*QP]struct{}{}}
		b.going[to] = g
		select {
		case b.fresh <- struct{}{}:
		default:
		}
	}
	g.qps[q] = struct{}{}
	b.of[q] = g
}

// remove takes a QP out. The caller holds the progress lock.
func (b *pathBook) remove(q *QP) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(q)
}

// drop is remove with the lock held.
func (b *pathBook) drop(q *QP) {
	g := b.of[q]
	if g == nil {
		return
	}
	delete(b.of, q)
	delete(g.qps, q)
	if len(g.qps) == 0 {
		delete(b.going, g.to)
	}
}

// all lists the destinations, which count as looked at then.
func (b *pathBook) all() []destination { return b.list(true) }

// unchecked lists those that were not looked at since they came.
func (b *pathBook) unchecked() []destination { return b.list(false) }

func (b *pathBook) list(all bool) (list []destination) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for to, g := range b.going {
		if all || !g.checked {
			g.checked = true
			list = append(list, to)
		}
	}
	return list
}

// to lists the QPs that go to a destination.
func (b *pathBook) to(to destination) (list []*QP) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.going[to]; g != nil {
		for qp := range g.qps {
			list = append(list, qp)
		}
	}
	return list
}

// goes reports whether a QP goes to a destination.
func (b *pathBook) goes(q *QP, to destination) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.of[q]
	return g != nil && g.to == to
}
