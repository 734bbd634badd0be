package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A connection on which nothing is asked for hears nothing, also when its peer is gone. With a
// keepalive the requester asks then: it sends an RDMA WRITE of no bytes with the PSN before the
// oldest unacknowledged one. That was executed before, or was never used, so the peer only
// acknowledges it (IBA 9.7.5.1.4), as a host answers the keepalive of TCP, whose sequence
// number is one too old as well (RFC 9293, 3.8.4). No PSN, no work request and no completion
// is spent, and any peer answers. While something is unacknowledged the local ACK timer finds
// out.

// maxProbeTimeout is the largest local ACK timeout code that a question waits for, 4.3 s. One that
// is much larger is for work that must not be repeated early, or comes from a peer: neither is a
// reason to wait for hours on one that is gone. An answer that takes longer is heard all the same,
// until the last question has waited in vain.
const maxProbeTimeout = 20

// keepalive is what a requester knows of a peer that may be silent, beside requestState.mark.
// It is small: a QP without a keepalive has it, too.
type keepalive struct {
	probes uint8 // that were sent since something was heard
	state  keepaliveState
}

// keepaliveState is what was asked. While something is unacknowledged it is one of those that
// begin with small, or quiet: see largelost.go.
type keepaliveState uint8

const (
	keepaliveQuiet  keepaliveState = iota
	keepaliveDue                   // a probe is to be sent
	keepaliveSilent                // the QP is in ERR because no probe was answered
	smallDue                       // a small packet is to be sent
	smallAsked                     // it was
	smallAnswered                  // and the peer has answered
)

// hear notes that a packet of the peer came.
func (r *requester) hear(now Time) {
	if r.alive.probes = 0; r.alive.state < smallDue {
		r.alive.state = keepaliveQuiet
	}
	if !r.rnrWait && !r.stalled {
		r.mark = now
	}
}

// keepaliveAt is when the keepalive is to act, 0 for never: when a peer has been silent for as long
// as the attribute says, and then each time that a question has waited.
func (r *requester) keepaliveAt() Time {
	idle := Time(r.attr.Keepalive) * Millisecond
	switch {
	case idle == 0 || r.alive.state != keepaliveQuiet || r.ackAt != 0 || r.rnrWait ||
		r.stalled || r.State() != StateRTS:
		return 0
	case r.alive.probes == 0 || r.attr.Timeout == 0:
		return r.mark + idle
	}
	return r.mark + ackTimeout(min(r.attr.Timeout, maxProbeTimeout))
}

// keepaliveExpired reports whether the keepalive is to act.
func (r *requester) keepaliveExpired(now Time) bool {
	at := r.keepaliveAt()
	return at != 0 && now >= at
}

// checkPeer has the peer asked whether it is there. One that left RETRY_CNT repetitions
// unanswered, too, is not, and the QP ends: by a work request that waits for it, or by
// EventQPFatal.
func (r *requester) checkPeer(now Time) {
	if r.alive.probes <= r.attr.RetryCnt {
		r.alive.state = keepaliveDue
		return
	}
	r.count.Inc(counter.RetryExceeded)
	r.alive.state = keepaliveSilent
	if r.draining() {
		r.fail(now, StatusRetryExcErr)
		return
	}
	r.enterError()
	r.raise(EventQPFatal)
}

// putProbe writes the question, unless there is no need for it any more.
func (r *requester) putProbe(now Time, frame []byte) int {
	r.alive.state = keepaliveQuiet
	if r.ackAt != 0 || r.rnrWait || r.stalled || r.State() != StateRTS {
		return 0
	}
	r.mark = now
	r.alive.probes++
	r.count.Inc(counter.Keepalives)
	return r.putQuestion(frame)
}

// putQuestion writes the WRITE of no bytes.
func (r *requester) putQuestion(frame []byte) int {
	b := frame[r.path.Len():]
	spec := r.putBTH(b, &wire.BTH{
		Opcode: wire.RCWriteOnly, AckReq: true, PSN: r.una.Sub(1),
	}, 0)
	wire.RETH{}.Put(b[spec.Offsets[wire.HeaderRETH]:])
	return r.seal(&r.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// answersProbe reports whether a response is the one to a probe: an acknowledge of what was
// acknowledged before.
func (r *requester) answersProbe(p *wire.Packet) bool {
	return (r.alive.probes != 0 || r.alive.state == smallAnswered) &&
		p.BTH.PSN == r.una.Sub(1) && p.Spec.Is(wire.ClassAck) && p.AETH().Syndrome.IsACK()
}

// Silent reports whether the keepalive ended the QP: the peer answers no more. It needs the
// progress lock.
func (q *QP) Silent() bool { return q.req.alive.state == keepaliveSilent }
