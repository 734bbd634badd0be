package msgtrial

import (
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// alive reports whether the end has a rail that is not lost, as far as the model knows.
func (e *end) alive() bool {
	for _, r := range e.rails {
		if !r.left && r.core != nil {
			return true
		}
	}
	return false
}

// dial makes the rails anew that the end, which has dialled the first one, has not. It reports
// whether it has tried.
func (e *end) dial(now roce.Time) bool {
	if e.side != 0 || !e.several || e.over {
		return false
	}
	tried := false
	for i, a := range e.node.adapters {
		if now < e.nextDial[i] || !a.up || e.has(a) {
			continue
		}
		w, peer := e.pair.w, e.peer
		there := peer.node.adapters[i%len(peer.node.adapters)]
		e.nextDial[i] = now + 1 + w.upTo(w.config.Phase/10)
		tried = true
		switch {
		case peer.lost(), !peer.node.running(), !there.up:
		case peer.core == nil, peer.over:
			e.refused(now)
			return true
		case w.reachable(a, there) || one(w.rng, 8):
			w.say("%s: dials rail %d", e, i)
			e.pair.join([2]*adapter{a, there})
		}
	}
	return tried
}

// has reports whether there is a rail of an adapter, or is to be.
func (e *end) has(a *adapter) bool {
	for _, r := range e.rails {
		if r.on == a && !r.left {
			return true
		}
	}
	return false
}

// refused is told that the peer does not know the session.
func (e *end) refused(now roce.Time) {
	if e.core.Alive() || e.peer.core == nil {
		return
	}
	e.blame("the peer knows no such session")
	e.core.Abort(now, errNoSession)
}

// reachable reports whether frames pass between two adapters, both ways.
func (w *world) reachable(a, b *adapter) bool {
	from, to := campaign.MAC(a.node.index, a.number), campaign.MAC(b.node.index, b.number)
	return !w.network.Direction(from, to).Blocked && !w.network.Direction(to, from).Blocked
}
