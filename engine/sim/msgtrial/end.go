package msgtrial

import (
	"errors"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/msg"
)

// receiveID marks the WRID of a receive.
const receiveID = 1 << 63

// A pair is two nodes that are connected, and connected anew when that ends.
type pair struct {
	w       *world
	index   int
	config  *PairConfig
	ends    [2]*end
	lives   int
	session msg.Token
	todo    [2]int // messages that each end has still to send
}

// An end is one end of a connection.
type end struct {
	pair *pair
	side int
	life int
	node *node
	host uint64 // life of the node
	peer *end

	pds      []*engine.PD // an adapter each
	rails    []*rail      // whose queue pairs are not closed
	core     *msg.Conn
	several  bool        // it may have further rails
	nextDial []roce.Time // of a rail, an adapter each
	// strandedAt is when the last rail was lost.
	strandedAt roce.Time

	nextPost roce.Time
	messages []*message // that it sent, in order
	closing  bool       // Close was called
	noMemory bool       // for slots
	harm     [2]uint64  // of both nodes, when it was made
	cause    string     // why it may end, "" while it may not
	over     bool       // the machine says so, or its host is down
	err      error
	gone     bool // its queue pair is closed
}

// String names it.
func (e *end) String() string {
	return fmt.Sprintf("pair %d.%d end %d (node %d)", e.pair.index, e.life, e.side, e.node.index)
}

// lost reports whether its host has gone down since.
func (e *end) lost() bool { return e.host != e.node.opened || !e.node.up }

// connect makes a connection, as a connection manager does.
func (p *pair) connect() {
	w := p.w
	for side := range p.ends {
		n := w.nodes[p.config.Nodes[side]]
		e := &end{
			pair: p, side: side, life: p.lives, node: n, host: n.opened,
			nextDial: make([]roce.Time, len(n.adapters)),
		}
		for _, a := range n.adapters {
			e.pds = append(e.pds, a.device.AllocPD())
		}
		n.domains = append(n.domains, e.pds...)
		p.ends[side] = e
	}
	a, b := p.ends[0], p.ends[1]
	a.peer, b.peer = b, a
	p.session = msg.Token{}
	if len(a.node.adapters) > 1 && len(b.node.adapters) > 1 {
		p.session = b.node.machine.NewSession()
	}
	p.join([2]*adapter{a.node.pick(), b.node.pick()})
	for _, e := range p.ends {
		e.harm = e.harmNow()
		e.node.ends = append(e.node.ends, e)
	}
	p.lives++
	w.stats.Connections++
}

// harmNow counts the faults that both nodes took part in.
func (e *end) harmNow() [2]uint64 { return [2]uint64{e.node.harm, e.peer.node.harm} }

// tend does what is due, and reports whether there was anything.
func (e *end) tend(now roce.Time) bool {
	worked := false
	for i := 0; i < len(e.rails); i++ {
		r := e.rails[i]
		worked = r.tend(now) || worked
		if i < len(e.rails) && e.rails[i] != r {
			i--
		}
	}
	if e.core == nil || e.gone {
		return worked
	}
	if e.pair.w.ending && !e.closing && !e.over {
		e.close(now)
		worked = true
	}
	return e.dial(now) || worked
}

// closed is told by the machine that the connection is over.
func (e *end) closed(now roce.Time) {
	w := e.pair.w
	e.err = e.core.Err()
	w.say("%s: over: %v", e, e.err)
	if e.over {
		w.fail(Once, "%s: it is over twice", e)
	}
	w.judgeEnd(e)
	e.finish()
	for _, r := range e.rails {
		r.leave(now)
	}
	e.leaveIfGone()
}

// lose is the end of the connection with its host.
func (e *end) lose() {
	if e.over {
		e.gone = true
		return
	}
	e.err, e.gone = errors.New("the host is down"), true
	w := e.pair.w
	e.finish()
	for _, r := range e.rails {
		r.peer.blame("the host of the peer is down")
		if !e.several || one(w.rng, 2) { // else it has to notice
			r.peer.hearAt = w.clock.Now() + 1 + w.upTo(100*roce.Microsecond)
		}
	}
}

// finish ends an end, and has the peer hear of it.
func (e *end) finish() {
	e.over = true
	e.pair.w.changes++
	e.peer.blame("the peer has ended it")
}

// blame says why the end may be over.
func (e *end) blame(why string) {
	if e.cause == "" {
		e.cause = why
	}
}

// leaveIfGone forgets the end when it is over and has no queue pair.
func (e *end) leaveIfGone() {
	if !e.over || len(e.rails) > 0 || e.gone {
		return
	}
	e.gone = true
	for i, other := range e.node.ends {
		if other == e {
			e.node.ends = append(e.node.ends[:i:i], e.node.ends[i+1:]...)
			break
		}
	}
}
