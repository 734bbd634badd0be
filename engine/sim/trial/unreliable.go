package trial

import (
	"bytes"

	"xroce/engine/sim"
	"xroce/roce"
)

// unreliable reports whether nobody acknowledges.
func (e *endpoint) unreliable() bool { return e.conn.config.Type == roce.TypeUC }

// shuffles are the faults by which a frame arrives twice or behind others: UC
// promises order to a network that keeps it.
var shuffles = map[sim.Kind]bool{
	sim.Duplicated: true, sim.Staled: true, sim.Reordered: true, sim.Held: true,
}

// nextUnreliable finds the message that a receive of a UC brings: whole, the
// next or a later one, those in between being lost. On a network that makes
// copies and lets frames overtake it may be any that was sent.
func (e *endpoint) nextUnreliable(r *receive, wc *roce.Completion) *op {
	for i, o := range e.expect {
		if e.brought(o, r, wc) {
			for _, lost := range e.expect[:i] {
				e.lose(lost)
			}
			e.expect = e.expect[i+1:]
			return o
		}
	}
	if e.shuffled {
		return e.late(r, wc)
	}
	return nil
}

// late finds a message that came behind later ones, or once more. One that was taken for
// lost is not.
func (e *endpoint) late(r *receive, wc *roce.Completion) (found *op) {
	for _, o := range e.heard {
		if (found == nil || o.missed && !found.missed) && e.brought(o, r, wc) {
			found = o
		}
	}
	if found != nil && found.missed {
		found.missed = false
		e.lost--
		e.w.stats.Lost--
	}
	return found
}

// brought reports whether a receive has a message in it.
func (e *endpoint) brought(o *op, r *receive, wc *roce.Completion) bool {
	if wc.Opcode != o.arrival || int(wc.ByteLen) != o.size ||
		(wc.Flags == roce.WCWithImm) != o.imm || o.imm && wc.Imm != o.value {
		return false
	}
	if o.remote {
		return true
	}
	data := make([]byte, o.size)
	fill(data, o.key)
	return bytes.Equal(r.arena.mem[r.slot.off+r.at:][:o.size], data)
}

// lose takes a message for lost.
func (e *endpoint) lose(o *op) {
	o.missed = true
	e.lost++
	e.w.stats.Lost++
}

// arriveUnreliable checks memory when a message of a UC arrived. A receive may
// have parts of messages in it that ended early, behind the one that arrived.
func (e *endpoint) arriveUnreliable(o *op, r *receive) string {
	if !o.remote {
		fill(r.arena.want[r.slot.off+r.at:][:o.size], o.key)
		return r.arena.judge(r.slot, e.scraps(r))
	}
	s := o.distant
	for i, c := range s.claims {
		if c == o && i == len(s.claims)-1 && !e.shuffled {
			// Nothing was written over it.
			data := make([]byte, o.size)
			fill(data, o.key)
			if !bytes.Equal(data, e.arena.mem[s.off+o.distantAt:][:o.size]) {
				return "the data of the message is not there"
			}
		}
	}
	if wrong := r.arena.judge(r.slot, e.scraps(r)); wrong != "" {
		return wrong
	}
	return e.arena.judge(s, e.written(s))
}

// scraps are the parts of messages of a UC that may be in a receive.
func (e *endpoint) scraps(r *receive) []partial {
	var list []partial
	for _, o := range e.heard {
		if !o.remote {
			data := make([]byte, o.size)
			fill(data, o.key)
			list = append(list, partial{r.at, data[:min(len(data), r.size)]})
		}
	}
	return list
}

// mayLose is how many messages the faults can have lost. A frame that is lost or damaged
// loses its message, a copy the message that it comes into, and one that comes behind
// others may do both: its own has ended without it, and it ends the one that is under way
// by then (IBA 9.8.2).
func (e *endpoint) mayLose() int { return e.harmIn + e.movedIn }

// restUnreliable takes what did not arrive for lost on a UC where nothing is under way,
// and compares its number with the most that the faults can have lost. A receive that is
// missing, or too small, loses a message as well.
func (e *endpoint) restUnreliable() {
	for _, o := range e.expect {
		e.lose(o)
	}
	e.expect = nil
	unready := e.noRecvOnce || e.shortest() < e.conn.config.MaxSize
	if e.lost > e.mayLose() && !unready {
		e.w.fail(Delivery, "%s: %d messages did not arrive, faults befell %d frames, %d of which "+
			"came behind others", e, e.lost, e.harmIn, e.movedIn)
	}
	for _, s := range e.arena.pools[poolWritable] {
		e.judgeSlot(s, e.written(s))
	}
	for _, r := range e.recvs {
		if wrong := r.arena.judge(r.slot, e.scraps(r)); wrong != "" {
			e.w.fail(Memory, "%s at rest: %s", e, wrong)
		}
	}
}
