package roce

import (
	"fmt"

	"xroce/roce/wire"
)

// This file tells what came of the packet of the last call, for who watches packets.

// A Verdict is what came of a received packet.
type Verdict uint8

// The verdicts.
const (
	VerdictAccepted  Verdict = iota // it had its effect
	VerdictDuplicate                // it was seen before, and is answered once more
	VerdictHeld                     // it is early: it waits for those before it
	VerdictDropped                  // it had no effect, and the peer is not told, or of a gap
	VerdictRefused                  // it had no effect, and a NAK says why

	verdictCount
)

var verdictNames = [verdictCount]string{"accepted", "duplicate", "held", "dropped", "refused"}

// String returns the verdict's name.
func (v Verdict) String() string {
	if v >= verdictCount {
		return fmt.Sprintf("verdict %d", uint8(v))
	}
	return verdictNames[v]
}

// An Outcome is what came of the packet that HandlePacket took last. Reason is of a packet
// that was dropped or refused.
type Outcome struct {
	Verdict Verdict
	Reason  Reason
	HasWR   bool   // the packet is of a SEND, for the receive of ID WRID
	WRID    uint64 // of the receive
}

// received is what an Outcome is made of.
type received struct {
	verdict Verdict
	reason  Reason
	// settled says that what is noted now is of another packet, which was held until this
	// one came.
	settled bool
}

// judge notes what came of the packet under way.
func (r *received) judge(v Verdict, reason Reason) {
	if !r.settled {
		r.verdict, r.reason = v, reason
	}
}

// Outcome returns what came of the last packet, which is p. It needs the progress lock, and
// nothing may have been called in between.
func (q *QP) Outcome(p *wire.Packet) Outcome {
	o := Outcome{Verdict: q.outcome.verdict, Reason: q.outcome.reason}
	if o.Verdict == VerdictAccepted && !q.outcome.settled && p.Spec.Is(wire.ClassSend) {
		o.HasWR, o.WRID = true, q.rsp.recv.WRID
	}
	return o
}

// Peer returns the number of the queue pair at the other end, 0 when there is none. It
// needs the progress lock.
func (q *QP) Peer() uint32 { return q.attr.DestQPN }

// A Sent is what the packet is that NextPacket wrote last.
type Sent struct {
	Request bool   // of the work request WRID; else it is an answer, or asks for one
	Again   bool   // the packet was sent before
	WRID    uint64 // of a request
}

// Sent returns what was written last. It needs the progress lock.
func (q *QP) Sent() Sent {
	s := Sent{Request: q.flags.has(sentRequest), Again: q.flags.has(sentAgain)}
	if s.Request {
		s.WRID = q.wrote
	}
	return s
}

// sent notes a packet of a request.
func (t *transport) sent(w *sendWQE, again bool) {
	t.flags.put(sentRequest, true)
	t.flags.put(sentAgain, again)
	t.wrote = w.wrID
}
