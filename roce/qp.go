package roce

import (
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A QP is a queue pair. PostSend, PostRecv, State and WantsCredit are safe for
// concurrent use; everything else needs the progress lock of the queue that
// owns the QP.
//
// It is the door to two machines that know nothing of each other: the requester, with
// the send queue, and the responder, with the receive queue. What both need is in the
// transport. The QP decides which of them a packet is for and in which order they send,
// moves the state, and ends every call.
type QP struct {
	// What each packet looks at comes first, and what none does last: of very many
	// QPs each one has to be fetched from memory again and again.
	transport
	req requester
	rsp responder
}

// NewQP returns a QP in state RESET with this number (24 bits).
func NewQP(num uint32, c QPConfig) (*QP, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	q := new(QP)
	q.transport = transport{
		num: num, typ: c.Type, service: uint8(c.Type.Service()) << 5,
		inline: uint8(c.MaxInlineRecv), domain: c.Domain,
		count: c.Counters, onEvent: c.OnEvent, posts: (*postLock)(q), common: c.Common,
	}
	if c.Congestion != nil && !c.Type.Datagram() && c.Type != TypeRawPacket {
		q.congestion = &congestion{config: c.Congestion}
	}
	if err := q.req.init(&q.transport, &c); err != nil {
		return nil, err
	}
	if err := q.rsp.init(&q.transport, &c); err != nil {
		return nil, err
	}
	return q, nil
}

// Num returns the QP number.
func (q *QP) Num() uint32 { return q.num }

// Type returns the type.
func (q *QP) Type() QPType { return q.typ }

// HandlePacket takes a packet that was addressed to this QP. It borrows p.
func (q *QP) HandlePacket(now Time, p *wire.Packet) {
	q.traceAt(now)
	q.outcome = received{}
	if reason := q.admit(p); reason != reasonAdmitted {
		q.drop(p, reason)
		return
	}
	q.count.Inc(counter.RcvdPkts)
	if q.trace != nil {
		q.trace.packet(TraceReceived, p.BTH.Opcode, p.BTH.PSN)
	}
	if q.congestion != nil && q.req.observe(now, p) {
		return // a CNP is nothing else (RoCE v2, A17.9.3)
	}
	if !q.flags.has(established) && p.Spec.Is(wire.ClassRequest) {
		q.establish(p.BTH.PSN)
	}
	switch {
	case q.typ.Datagram():
		q.rsp.handleDatagram(now, p)
	case !p.Spec.Is(wire.ClassRequest):
		q.req.handleResponse(now, p)
	case q.typ == TypeUC:
		q.rsp.handleUnreliable(now, p)
	default:
		if p.Spec.Has(wire.HasAPSN) && q.State().Sends() {
			q.req.takeRider(now, p.APSN().PSN, p.AETH())
		}
		q.rsp.handleRequest(now, p)
	}
	if q.attr.Keepalive != 0 {
		q.req.hear(now)
	}
	q.endCall(now)
}

// TellEstablished has EventCommEst raised for the first request of the connection not only in
// RTR but also in RTS. A passive end that goes to RTS with its REP, as those of rdma_cm do,
// needs it where the RTU is lost. It needs the progress lock; RESET forgets it.
func (q *QP) TellEstablished() { q.flags.put(tellEstablished, true) }

// heardWindow is how many PSNs the first request of a connection may have for EventCommEst: the
// expected one, the one before it, which a keepalive has, and a few behind it, since packets may
// be lost. All else may be of a stranger, who can write the peer's address but has not seen the
// PSN that the peer was told. This leaves him 1 guess in 2^21 for each queue pair.
const heardWindow = 8

// establish notes the first request of a connection. The PSNs are counted from the one that the
// peer was told: a UC responder takes up any other one that comes.
func (q *QP) establish(psn wire.PSN) {
	s := q.State()
	if !q.typ.Datagram() && (s == StateRTR || s == StateRTS && q.flags.has(tellEstablished)) {
		if !psn.InWindow(q.attr.RQPSN.Sub(1), heardWindow) {
			return
		}
		q.raise(EventCommEst)
	}
	q.flags.put(established, true)
}

// NextPacket writes the next packet to send to frame, which must have room for FrameRoom
// bytes, and returns its length, 0 when nothing is to be sent
// now. Without a frame nothing is written; work that was posted to a QP in ERR is
// flushed all the same. Responses go before requests, but a mere ACK lets one request
// pass: a delayed ACK costs the peer less than a delayed request.
func (q *QP) NextPacket(now Time, frame []byte) int {
	q.traceAt(now)
	n := 0
	q.flags.put(sentRequest|sentAgain, false)
	if len(frame) == 0 {
		q.endCall(now)
		return 0
	}
	if q.congestion == nil {
		n = q.nextInTurn(now, frame)
	} else {
		n = q.nextControlled(now, frame)
	}
	q.endCall(now)
	if n > 0 {
		q.count.Inc(counter.SentPkts)
		q.count.Add(counter.SentBytes, uint64(n))
	}
	return n
}

// nextInTurn writes the next packet of one of the halves.
func (q *QP) nextInTurn(now Time, frame []byte) (n int) {
	pass := !q.flags.has(ackPassed) && q.rsp.responses.frontIsACK()
	if q.flags.put(ackPassed, pass); pass {
		n = q.requestWithAck(now, frame)
	}
	if n == 0 {
		n = q.rsp.nextResponse(now, frame)
	}
	if n == 0 {
		n = q.req.nextRequest(now, frame)
	}
	return n
}

// requestWithAck writes the next request while an ACK waits in front, which rides on it if it can.
func (q *QP) requestWithAck(now Time, frame []byte) (n int) {
	if q.attr.Extensions&ExtPiggybackAck == 0 {
		return q.req.nextRequest(now, frame)
	}
	q.common.rider = q.rsp.responses.front()
	n = q.req.nextRequest(now, frame)
	if q.common.rider == nil {
		q.rsp.responses.pop()
		q.flags.put(ackPassed, false)
	}
	q.common.rider = nil
	return n
}

// nextControlled is nextInTurn for a QP with congestion control: a CNP goes before everything,
// and the data of a READ is held to the same rate as requests.
func (q *QP) nextControlled(now Time, frame []byte) (n int) {
	if n = q.congestion.putCNP(&q.transport, frame); n > 0 {
		return n
	}
	if !q.rsp.frontIsData() {
		return q.nextInTurn(now, frame)
	}
	if q.req.paced = q.req.pace.Early(now); q.req.paced {
		return 0
	}
	if n = q.rsp.nextResponse(now, frame); n == 0 {
		return q.req.nextRequest(now, frame)
	}
	q.req.pace.Spend(now, n)
	q.req.left(now, n)
	return n
}

// Responding reports whether the responder has a packet to send: such a QP is
// to send before those that only have requests. It needs the progress lock.
func (q *QP) Responding() bool {
	return q.rsp.responses.n > 0 || q.congestion != nil && q.congestion.cnpDue
}

// NextDeadline returns when HandleDeadline wants to be called, false for never.
func (q *QP) NextDeadline() (Time, bool) {
	at := clock.Sooner(q.req.deadline(), q.rsp.deadline())
	return at, at != 0
}

// HandleDeadline does what is due. Calling it early does nothing.
func (q *QP) HandleDeadline(now Time) {
	q.traceAt(now)
	if q.trace != nil {
		q.trace.add(TraceEvent{Kind: TraceDeadline})
	}
	q.req.handleDeadline(now)
	q.rsp.handleDeadline(now)
	// After the responder, whose gap the peer is to hear of though this may end the QP.
	q.req.recovery.handleDeadline(now)
	q.endCall(now)
}

// SyncDone tells the QP that a job of the keys' Syncer is over, and how. It reports whether
// the QP waited for it: then it may have something to send. It needs the progress lock.
func (q *QP) SyncDone(now Time, job *mem.SyncJob, err error) (waited bool) {
	q.traceAt(now)
	if waited = q.rsp.endSync(job, err); waited {
		q.endCall(now)
	}
	return waited
}

// endCall ends every call: an error that the call met ends the work, a QP that lost a
// completion goes to ERR, one in ERR flushes what was posted meanwhile, one in SQE its
// sends.
func (q *QP) endCall(now Time) {
	if q.overrun || q.State() >= StateSQD {
		q.endWork(now)
	}
}

// endWork is endCall for a QP in SQD, SQE or ERR, or one that lost a completion.
func (q *QP) endWork(now Time) {
	q.endError(now)
	if !q.overrun || q.flags.has(fatal) {
		q.goOn(now)
	}
	if q.overrun && !q.flags.has(fatal) { // by what was done just now, too
		q.flags.put(fatal, true)
		q.enterError()
		q.raise(EventQPFatal)
		q.endError(now)
	}
}

// goOn does what a QP in SQD, SQE or ERR does at the end of each call.
func (q *QP) goOn(now Time) {
	switch q.State() {
	case StateErr:
		q.flush(now)
	case StateSQE:
		q.req.flush(now)
	case StateSQD:
		if q.flags.has(tellDrained) && !q.req.draining() {
			q.flags.put(tellDrained, false)
			q.raise(EventSQDrained)
		}
	}
}

// endError does what a QP does once when it has come to ERR. A completion that is lost
// meanwhile is the next thing for endCall.
func (q *QP) endError(now Time) {
	if q.flags.has(ended) || q.State() != StateErr {
		return
	}
	q.flags.put(ended, true)
	q.req.stop()
	q.rsp.stop()
	q.flush(now)
	if q.rsp.shared() {
		q.raise(EventQPLastWQEReached)
	}
}

// flush completes all work requests with a flush error, in order. The one at fault was
// completed before.
func (q *QP) flush(now Time) {
	q.req.flush(now)
	q.rsp.flush(now)
}

// HandleFrame gives a whole Ethernet frame, in its two parts, to a QP of type
// RAW_PACKET. It borrows them. A frame without a receive, or too long for it, is
// dropped and counted.
func (q *QP) HandleFrame(now Time, head, tail []byte) error {
	if q.typ != TypeRawPacket {
		return fmt.Errorf("%w: a frame for a QP of type %s", ErrInvalid, q.typ)
	}
	q.traceAt(now)
	s := &q.rsp
	n := uint32(len(head) + len(tail))
	switch {
	case !q.State().Receives():
		q.count.Inc(reasonState.counter())
	case !q.rsp.takeReceive():
		q.count.Inc(reasonNoReceive.counter())
	case n > s.recv.Length:
		q.count.Inc(reasonFit.counter())
	default:
		q.rsp.placeFrame(now, head, tail)
	}
	q.endCall(now)
	return nil
}
