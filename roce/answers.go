package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// An answer is what the responder owes the peer: one acknowledge packet, or all
// the responses of a READ.
type answer struct {
	isRead   bool
	resource int           // READ: index of its resource
	psn      wire.PSN      // acknowledge: its PSN, READ: its first PSN
	syndrome wire.Syndrome // acknowledge
	msn      uint32
}

// An answerQueue keeps answers in the order in which they must leave. Between
// two READs at most one acknowledge waits, because a later one covers those
// before it; so the queue is bounded by the READ resources.
type answerQueue struct {
	ring []answer
	head int
	n    int
}

// init makes room for the answers of so many READs.
func (f *answerQueue) init(reads int) {
	// Every READ is in the queue at most once, with one acknowledge before
	// each and one behind the last.
	*f = answerQueue{ring: make([]answer, 2*reads+1)}
}

func (f *answerQueue) clear() { f.head, f.n = 0, 0 }

func (f *answerQueue) front() *answer { return &f.ring[f.head] }

// patient tells whether the answer in front is a mere ACK.
func (f *answerQueue) patient() bool {
	return f.n > 0 && !f.front().isRead && f.front().syndrome.IsACK()
}

func (f *answerQueue) pop() {
	f.head = (f.head + 1) % len(f.ring)
	f.n--
}

func (f *answerQueue) push(a answer) {
	*f.at(f.n) = a
	f.n++
}

// read queues the answer to a READ.
func (f *answerQueue) read(resource int, psn wire.PSN, msn uint32) {
	f.push(answer{isRead: true, resource: resource, psn: psn, msn: msn})
}

// replay queues the answer to an old READ before everything that answers later
// PSNs: a peer that misses this one can use nothing behind it.
func (f *answerQueue) replay(resource int, psn wire.PSN, msn uint32) {
	f.read(resource, psn, msn)
	for i := f.n - 1; i > 0; i-- {
		a, b := f.at(i-1), f.at(i)
		if a.psn.Before(psn) {
			return
		}
		*a, *b = *b, *a
	}
}

// at returns the answer i places behind the front.
func (f *answerQueue) at(i int) *answer { return &f.ring[(f.head+i)%len(f.ring)] }

// ack queues a positive acknowledge of psn and all before it. It reports
// whether one that waited was covered by it.
func (f *answerQueue) ack(psn wire.PSN, msn uint32) bool {
	return f.acknowledge(answer{psn: psn, syndrome: wire.ACKNoCredits, msn: msn})
}

// nak queues a negative acknowledge, which covers all PSNs before its own.
func (f *answerQueue) nak(psn wire.PSN, s wire.Syndrome) {
	f.acknowledge(answer{psn: psn, syndrome: s})
}

func (f *answerQueue) acknowledge(a answer) (covered bool) {
	if f.n > 0 {
		tail := f.at(f.n - 1)
		if !tail.isRead {
			// A waiting NAK covers all PSNs before its own, and more: it is
			// not to be lost to the acknowledge of a duplicate.
			if tail.syndrome.IsACK() || !a.psn.Before(tail.psn) {
				*tail = a
			}
			return true
		}
	}
	f.push(a)
	return false
}

// nextResponse writes the next packet that the responder owes.
func (q *QP) nextResponse(now Time, frame []byte) int {
	f := &q.rsp.fifo
	if f.n == 0 {
		return 0
	}
	a := f.front()
	if a.isRead {
		return q.putReadResponse(now, a, frame)
	}
	msn := a.msn
	if a.syndrome.IsNAK() || a.syndrome.IsRNRNAK() {
		msn = q.rsp.msn
	}
	n := q.putAck(a.psn, a.syndrome, msn, frame)
	f.pop()
	return n
}

func (q *QP) putAck(psn wire.PSN, s wire.Syndrome, msn uint32, frame []byte) int {
	spec := wire.RCAck.Spec()
	b := frame[q.path.Len():]
	wire.BTH{
		Opcode: wire.RCAck, M: true, PKey: wire.DefaultPKey, DestQP: q.attr.DestQPN, PSN: psn,
	}.Put(b)
	wire.AETH{Syndrome: s, MSN: msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	return q.seal(frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// putReadResponse writes the next response of a READ.
func (q *QP) putReadResponse(now Time, a *answer, frame []byte) int {
	res := &q.rsp.reads[a.resource]
	off := uint32(res.cur.Sub(uint32(res.first))) * q.pmtu
	n := min(res.end-off, q.pmtu)
	var op wire.Opcode
	switch isFirst, isLast := res.cur == res.start, res.cur == res.stop; {
	case isFirst && isLast:
		op = wire.RCReadRespOnly
	case isFirst:
		op = wire.RCReadRespFirst
	case isLast:
		op = wire.RCReadRespLast
	default:
		op = wire.RCReadRespMiddle
	}
	spec := op.Spec()
	b := frame[q.path.Len():]
	payload := b[wire.BTHLen+int(spec.HeaderLen):]
	// The key is checked again for each packet: it may be gone by now.
	if n > 0 && q.keys.Load(q.domain, res.rkey, res.va+uint64(off), payload[:n],
		mem.RemoteRead) != mem.OK {
		return q.refuseRead(now, res, frame)
	}
	wire.BTH{
		Opcode: op, M: true, PadCnt: wire.PadCnt(int(n)), PKey: wire.DefaultPKey,
		DestQP: q.attr.DestQPN, PSN: res.cur,
	}.Put(b)
	if spec.Has(wire.HasAETH) {
		wire.AETH{Syndrome: wire.ACKNoCredits, MSN: a.msn}.
			Put(b[spec.Offsets[wire.HeaderAETH]:])
	}
	if res.cur == res.stop {
		res.queued = false
		q.rsp.fifo.pop()
	} else {
		res.cur = res.cur.Add(1)
	}
	return q.seal(frame, wire.BTHLen+int(spec.HeaderLen), n)
}

// refuseRead ends a READ whose memory is gone, and with it the QP.
func (q *QP) refuseRead(now Time, res *readResource, frame []byte) int {
	q.lastDrop = stepRKey
	q.count.Inc(counter.SentFatalNAK)
	n := q.putAck(res.cur, wire.NAKRemoteAccessError, q.rsp.msn, frame)
	q.rsp.fifo.clear()
	if q.State() != StateErr {
		q.enterError(now)
	}
	return n
}
