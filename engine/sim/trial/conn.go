package trial

import (
	"bytes"

	"xroce/roce"
)

// A conn is a connection between two endpoints, made anew when it breaks.
type conn struct {
	w        *world
	index    int
	config   *ConnConfig
	limits   limits
	ends     [2]*endpoint
	lives    int  // connections that ended
	open     bool // there are two queue pairs
	breaking bool // no new work: it is to end
}

func newConn(w *world, index int, k *ConnConfig) *conn {
	c := &conn{w: w, index: index, config: k, limits: k.limitsOf()}
	for side := range c.ends {
		c.ends[side] = &endpoint{
			w: w, conn: c, side: side, node: w.nodes[k.Nodes[side]],
			arena: newArena(k.Slots, k.MaxSize+8, k.uses("SEND_INV") || k.uses("WRITE_TICKET")),
			todo:  k.Messages,
		}
	}
	if c.extended() {
		c.ends[1].todo = 0
	}
	c.ends[0].peer, c.ends[1].peer = c.ends[1], c.ends[0]
	return c
}

// extended reports whether it is an XRC, of which end 0 sends and end 1 receives.
func (c *conn) extended() bool { return c.config.Type == roce.TypeXRCSend }

// receives reports whether the endpoint is the receiving end of an XRC.
func (e *endpoint) receives() bool { return e.conn.extended() && e.side == 1 }

// uses reports whether an operation may be chosen.
func (k *ConnConfig) uses(name string) bool {
	for i := range operations {
		if operations[i].name == name {
			return k.Weights[i] > 0
		}
	}
	return false
}

// idle reports whether all that was to be posted is done.
func (c *conn) idle() bool {
	for _, e := range c.ends {
		if e.todo > 0 || len(e.sends) > 0 || len(e.expect) > 0 && !e.unreliable() {
			return false
		}
	}
	return true
}

// finished reports whether the connection needs nothing any more.
func (c *conn) finished() bool { return c.idle() && !c.breaking }

// tend makes the connection when it can be made and is needed, and ends one that
// broke when both ends are through. It reports whether it did anything.
func (c *conn) tend() bool {
	switch {
	case !c.open && !c.idle() && c.ends[0].node.running() && c.ends[1].node.running():
		c.connect()
		return true
	case c.open && c.breaking:
		return c.windDown()
	}
	return false
}

// connect makes a queue pair at both ends.
func (c *conn) connect() {
	for _, e := range c.ends {
		e.create()
	}
	for _, e := range c.ends {
		e.connect()
		e.node.endpoints = append(e.node.endpoints, e)
	}
	c.open, c.breaking = true, false
	c.w.stats.Connections++
	c.w.say("conn %d.%d: queue pairs 0x%06x and 0x%06x", c.index, c.lives, c.ends[0].info.QPN,
		c.ends[1].info.QPN)
}

// broken says that an end found the connection broken.
func (c *conn) broken(why string) {
	if !c.breaking {
		c.w.say("conn %d.%d: breaks: %s", c.index, c.lives, why)
		c.breaking = true
	}
}

// windDown ends a connection that broke, and reports whether it did anything. An end with
// work outstanding has to find out by itself; one without is moved to ERR.
func (c *conn) windDown() bool {
	acted := false
	for _, e := range c.ends {
		if !e.dead && e.node.running() && len(e.sends) == 0 {
			e.force("the other end is gone")
			acted = true
		}
	}
	for _, e := range c.ends {
		if !e.through() {
			return acted
		}
	}
	c.end()
	return true
}

// through reports whether the endpoint is dead and every completion was taken.
func (e *endpoint) through() bool {
	return e.dead && (e.destroyed || !e.node.up || e.overran && e.drainedAtLast ||
		len(e.sends) == 0 && len(e.recvs) == 0 && (e.shared == nil || e.drainedAtLast))
}

// end judges what a dead connection left, and forgets it.
func (c *conn) end() {
	for _, e := range c.ends {
		e.checkCause()
		e.checkOutcome()
	}
	for _, e := range c.ends {
		e.judgeMemory()
	}
	for _, e := range c.ends {
		e.vanish()
	}
	c.open, c.breaking = false, false
	c.lives++
}

// checkOutcome compares what this end was told with what the peer got.
func (e *endpoint) checkOutcome() {
	for _, o := range e.peer.expect {
		if o.complete && !e.unreliable() && !e.peer.overran && !e.peer.destroyed {
			e.w.fail(Delivery, "%s: %s %d is complete and never arrived", e, o.name, o.id)
		}
	}
	if !e.overran && !e.destroyed && len(e.sends)+len(e.recvs) > 0 {
		e.w.fail(Completion, "%s: %d requests and %d receives have no completion", e,
			len(e.sends), len(e.recvs))
	}
	e.failed = append(e.failed, e.sends...)
	e.failedRecvs = append(e.failedRecvs, e.recvs...)
	e.sends, e.recvs = nil, nil
}

// judgeMemory looks at the memory of a dead end. What failed requests may have done to
// it is taken over by the model, all else must be as the model says.
func (e *endpoint) judgeMemory() {
	if e.deregistered() && !bytes.Equal(e.deregisterAt, e.arena.mem) {
		e.w.fail(Memory, "%s: memory changed after it was deregistered", e)
	}
	if wrong := e.ticket.disturbed(e); wrong != "" {
		e.w.fail(Memory, "%s: at its end: %s", e, wrong)
	}
	if e.shared != nil && e.shared.on == e.node.device && e.node.up && !e.destroyed &&
		e.lastWQE != 1 {
		e.w.fail(Completion, "%s: %d events of the last receive", e, e.lastWQE)
	}
	for _, p := range []pool{poolWritable, poolReadable, poolTicket} {
		for _, s := range e.arena.pools[p] {
			e.judgeSlot(s, e.written(s))
			s.claims, s.locked = nil, false
		}
	}
	for _, o := range e.failed {
		if o.local == nil {
			continue
		}
		var brought []partial
		switch {
		case !o.gets || o.bad != fine || o.afterwards:
		case o.word:
			// Whatever the word was: its own check looks after that.
			now := e.arena.mem[o.local.off+o.localAt:][:o.size]
			brought = []partial{{o.localAt, bytes.Clone(now)}}
		default:
			brought = []partial{{o.localAt, o.want}}
		}
		e.judgeSlot(o.local, brought)
		o.local.taken = false
	}
	for i, r := range e.failedRecvs {
		if wrong := r.arena.judge(r.slot, e.fetched(i, r)); wrong != "" {
			e.w.fail(Memory, "%s: at its end: %s", e, wrong)
		}
		r.slot.taken = false
	}
	if wrong := e.arena.compare(0, len(e.arena.mem)); wrong != "" {
		e.w.fail(Memory, "%s: at its end: %s", e, wrong)
	}
}

func (e *endpoint) judgeSlot(s *slot, brought []partial) {
	if wrong := e.arena.judge(s, brought); wrong != "" {
		e.w.fail(Memory, "%s: at its end: %s", e, wrong)
	}
}

// written is what the peer's requests may have written to a slot.
func (e *endpoint) written(s *slot) []partial {
	var list []partial
	for _, o := range s.claims {
		if o.gets || o.bad != fine || o.afterwards {
			continue
		}
		data := make([]byte, o.size)
		fill(data, o.key)
		list = append(list, partial{o.distantAt, data})
	}
	return list
}

// fetched is what messages may have brought to a receive that did not succeed:
// only the first of those may have been begun. When completions were lost, so
// may the others.
func (e *endpoint) fetched(i int, r *receive) []partial {
	if e.unreliable() {
		return e.scraps(r)
	}
	if i > 0 && !e.overran && !e.destroyed {
		return nil
	}
	var list []partial
	for _, o := range e.expect {
		if o.remote || o.bad != fine || o.afterwards {
			continue
		}
		data := make([]byte, o.size)
		fill(data, o.key)
		list = append(list, partial{r.at, data[:min(len(data), r.size)]})
		if !e.overran && !e.destroyed {
			break
		}
	}
	return list
}

// vanish destroys the queue pair and gives everything back.
func (e *endpoint) vanish() {
	if e.node.up {
		e.qp.Close()
		if e.shared != nil && e.shared.on == e.node.device {
			e.shared.qpGone(e)
		}
		if !e.deregistered() {
			e.dropRegions()
		}
		e.node.leave(e)
	}
	if e.w.rng.IntN(2) == 0 {
		for _, p := range e.arena.pools {
			for _, s := range p {
				e.arena.scramble(s)
			}
		}
	}
	e.life = life{}
}

func (e *endpoint) dropRegions() {
	e.local.Deregister()
	e.writable.Deregister()
	e.readable.Deregister()
	e.ticket.drop(e.w)
}

// force moves the queue pair to ERR.
func (e *endpoint) force(why string) {
	if e.qp == nil || e.dead || !e.node.up {
		return
	}
	e.forced, e.excused = true, why
	e.w.must(e.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
	e.observe()
}

// destroy closes the queue pair: nobody is told, and nothing completes.
func (e *endpoint) destroy() {
	if e.qp == nil || e.dead || !e.node.up {
		return
	}
	e.destroyed, e.excused = true, "it was destroyed"
	e.node.events()
	e.qp.Close()
	e.die()
}

// deregister takes the regions away while requests may be under way.
func (e *endpoint) deregister() {
	if e.qp == nil || e.dead || !e.node.up {
		return
	}
	e.dropRegions()
	e.deregisterAt = bytes.Clone(e.arena.mem)
	e.conn.broken("its memory is gone")
}
