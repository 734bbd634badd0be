package gen

import (
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/wire"
)

// Handle takes a packet of the peer whose ICRC is right, and reports whether it was for this
// end. What it says is believed when it fits what was sent.
func (r *Requester) Handle(p *wire.Packet, now clock.Time) bool {
	if p.BTH.DestQP != r.c.QPN {
		return false
	}
	switch {
	case p.BTH.Opcode == wire.CNP:
		r.stats.CNPs++
	case r.err != nil:
	case p.Spec.Service != wire.ServiceRC || !p.Spec.Is(wire.ClassResponse) || !r.went(p.BTH.PSN):
		r.stats.Ghosts++
	case p.BTH.Opcode == wire.RCAck:
		r.acknowledge(p.BTH.PSN, p.AETH().Syndrome, now)
	default:
		r.response(p, now)
	}
	return true
}

// went reports whether a PSN is one of those that are kept.
func (r *Requester) went(psn wire.PSN) bool {
	if r.Idle() {
		return false
	}
	first, end := r.at(r.head).psn, r.flow.roce.psn
	return !psn.Before(first) && psn.Before(end)
}

// acknowledge takes an acknowledge or a NAK of a PSN.
func (r *Requester) acknowledge(psn wire.PSN, s wire.Syndrome, now clock.Time) {
	switch {
	case s.IsACK():
		r.through(psn.Add(1), now)
		return
	case !r.through(psn, now) || r.Idle():
		return // what is missing before goes again, and this will come again
	case s.IsRNRNAK():
		r.stats.RNRs++
		if r.rnr++; r.c.RNR != rnrForEver && r.rnr > r.c.RNR {
			r.err = fmt.Errorf("%w (PSN 0x%06x, %d times)", ErrRNR, uint32(psn), r.rnr)
			return
		}
		r.paused = now + clock.Time(wire.RNRTimerNanos(s.Code()))
	case s.NAK() == wire.NAKPSNSequenceError:
		r.stats.NAKs++
	default:
		r.err = fmt.Errorf("%w: %s of PSN 0x%06x", ErrNAK, s, uint32(psn))
		return
	}
	r.again()
}

// through takes what is before a PSN as answered. It reports false when a response is missing
// there, which is an implied NAK (IBA 9.7.5.1.2): then all goes again from there on.
func (r *Requester) through(end wire.PSN, now clock.Time) bool {
	for !r.Idle() {
		q := r.at(r.head)
		if !q.psn.Add(q.count - 1).Before(end) {
			return true
		}
		if q.answered {
			r.implied()
			return false
		}
		r.pop(q, now)
	}
	return true
}

// implied notes that a response is missing. While things go again already, it is known.
func (r *Requester) implied() {
	if r.cursor < r.next {
		return
	}
	r.stats.Implied++
	r.again()
}

// response takes a response to a READ, an atomic or another one of those.
func (r *Requester) response(p *wire.Packet, now clock.Time) {
	psn := p.BTH.PSN
	for !r.Idle() {
		q := r.at(r.head)
		place := psn.Diff(q.psn)
		switch {
		case place >= int32(q.count) && q.answered:
			r.implied()
			return
		case place >= int32(q.count):
			r.pop(q, now) // it is before what was answered
			continue
		case !q.answered || place < int32(q.got):
			r.stats.Ghosts++
		case place > int32(q.got):
			r.implied()
		default:
			r.stats.Bytes += uint64(p.PayloadLen())
			r.progress(now)
			if q.got++; q.got == q.count {
				r.reads--
				r.pop(q, now)
			}
		}
		return
	}
}

// pop takes the oldest request as answered.
func (r *Requester) pop(q *request, now clock.Time) {
	r.head++
	r.cursor = max(r.cursor, r.head)
	r.progress(now)
	r.stats.Packets++
	if !q.answered {
		r.stats.Bytes += uint64(q.n)
	}
	if !q.last {
		return
	}
	r.stats.Messages++
	if r.c.Acked != nil {
		r.c.Acked(now - q.at)
	}
}

// progress notes that the peer did something.
func (r *Requester) progress(now clock.Time) {
	r.timer, r.retries, r.rnr = now, 0, 0
}
