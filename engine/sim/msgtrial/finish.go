package msgtrial

import (
	"errors"
	"fmt"

	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/msg"
)

// through reports whether all was sent and received that there is to send.
func (w *world) through() bool {
	if w.looked != w.changes {
		w.looked = w.changes
		if w.doneAt = 0; w.unfinished() == "" {
			w.doneAt = w.clock.Now()
		}
	}
	// A late copy of a READ whose key is gone breaks a connection, which then was not closed in
	// order: copies arrive before. Peers that are asked whether they are there send without end.
	return w.doneAt != 0 &&
		(w.network.UnderWay() == 0 || w.clock.Now() > w.doneAt+w.config.Faults.Delay)
}

// unfinished says what is not done, "" when all is.
func (w *world) unfinished() string {
	for _, p := range w.pairs {
		if p.todo != [2]int{} && !w.ending && !p.closing() {
			return fmt.Sprintf("pair %d has %v messages to send", p.index, p.todo)
		}
	}
	for _, m := range w.messages {
		switch {
		case m.out && !m.end.lost():
			return fmt.Sprintf("%s: message %d of %d bytes by %v is out", m.end, m.id, m.size,
				m.op.Choice.Protocol)
		case m.due():
			return fmt.Sprintf("%s: message %d of %d bytes by %v was not received", m.end, m.id,
				m.size, m.op.Choice.Protocol)
		}
	}
	for _, n := range w.nodes {
		for _, e := range n.ends {
			if w.ending || e.several && !e.over && e.peer.over { // it will notice
				return fmt.Sprintf("%s: not over", e)
			}
		}
	}
	return ""
}

// closing reports whether an end of the pair has closed: the other one is to follow.
func (p *pair) closing() bool {
	for _, e := range p.ends {
		if e != nil && !e.over && e.closing {
			return true
		}
	}
	return false
}

// hangUp has all connections closed in order, and takes back the receives that got nothing.
func (w *world) hangUp() {
	w.ending = true
	for _, n := range w.nodes {
		for len(n.pending) > 0 && w.violation == nil {
			r := n.pending[0]
			if r.mustHave != none {
				w.fail(Matching, "node %d: receive %d was passed over", n.index, r.index)
			}
			if r.cancelled = n.machine.Cancel(&r.op); !r.cancelled {
				w.fail(Liveness, "node %d: receive %d is under way", n.index, r.index)
				return
			}
			n.progress()
		}
	}
}

// over reports whether all connections have ended.
func (w *world) over() bool {
	for _, n := range w.nodes {
		if len(n.ends) > 0 {
			return false
		}
	}
	return true
}

// finish checks the world at rest, and takes it apart.
func (w *world) finish() {
	if w.violation != nil {
		return
	}
	for _, n := range w.nodes {
		// What connections that broke have left is here as a whole.
		for range n.machine.Usage().Unexpected {
			n.receive(w.clock.Now(), &receive{size: n.longest()})
			n.progress()
		}
		u := n.machine.Usage()
		if u != (msg.Usage{}) || len(n.given) != 0 || len(n.asked) != 0 {
			w.fail(Residue, "node %d: %+v, memory given %d times, asked %d", n.index, u,
				len(n.given), len(n.asked))
		}
		for _, r := range n.receives {
			if r.message != nil && !r.intact() {
				w.fail(Bytes, "node %d: receive %d was changed when it was back", n.index, r.index)
			}
		}
		for _, pd := range n.domains {
			if err := pd.Close(); err != nil {
				w.fail(Residue, "node %d: %v", n.index, err)
			}
		}
		n.count()
		for _, a := range n.adapters {
			a.close()
			a.checkFrames()
		}
	}
	for _, m := range w.messages {
		if !m.out && !blanked(m.data) {
			w.fail(Bytes, "%s: message %d was changed after it came back", m.end, m.id)
		}
	}
}

// judgeEnd holds that a connection ends for a reason.
func (w *world) judgeEnd(e *end) {
	var peer *msg.PeerError
	var work *roce.WorkError
	var said *msg.StatusError
	switch err := e.err; {
	case errors.As(err, &peer), errors.Is(err, msg.ErrOwner):
		w.fail(Excuse, "%s: %v", e, err)
	case errors.Is(err, errRefused):
		if !e.noMemory {
			w.fail(Excuse, "%s: %v, and nothing was refused", e, err)
		}
	case e.cause != "":
	// Of two that want slots of different lengths one may have no room for those of the other.
	case errors.Is(err, msg.ErrQuota) && e.node.hasQuota():
	case errors.As(err, &said) && said.Status == msg.StatusQuota && e.peer.node.hasQuota():
	case e.several:
		w.judgeStranded(e)
	case errors.As(err, &work) && e.harm != e.harmNow(): // its retries ran out
	default:
		w.fail(Excuse, "%s: %v", e, err)
	}
	if w.ending && !errors.Is(e.err, msg.ErrClosed) {
		w.fail(Excuse, "%s: it was closed in order, and ended with %v", e, e.err)
	}
	w.stats.Ended++
}

// hasQuota reports whether the slots of a node have a bound that a run reaches.
func (n *node) hasQuota() bool {
	bound := n.config.Machine.Registered
	return bound != 0 && bound < plentyOfSlots
}

// judgeStranded holds that a connection of several rails ends by itself when none is left, and
// none came back in time.
func (w *world) judgeStranded(e *end) {
	grace := e.node.machine.Config().Grace
	switch {
	case e.alive():
		w.fail(Excuse, "%s: a rail is left, and it ended with %v", e, e.err)
	case grace > 0 && w.clock.Now() < e.strandedAt+grace && !e.closing && !e.peer.closing:
		w.fail(Excuse, "%s: without a rail since %s, and ended with %v", e,
			campaign.ClockTime(e.strandedAt), e.err)
	}
}

// notReady judges an RNR NAK.
func (w *world) notReady(f *campaign.Frame) {
	for _, e := range w.nodes[f.From].ends {
		for _, r := range e.rails {
			if r.peer.info.QPN == f.DestQP && !r.broken && !e.over {
				w.fail(Ready, "%s: no receive for what came", r)
			}
		}
	}
}
