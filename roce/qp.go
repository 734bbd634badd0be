package roce

import (
	"fmt"
	"sync/atomic"

	"xroce/roce/clock"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// Implementation constants of a QP.
const (
	// defaultWindow is how many PSNs may be unacknowledged: enough to keep a
	// link busy over the round trip of a burst, and small against the receive
	// ring of the peer, which has to hold all of it.
	defaultWindow = 256
	maxWindow     = 1 << 16
)

// QPConfig says what a new QP is.
type QPConfig struct {
	Type           QPType
	Domain         *mem.Domain
	Keys           *mem.Keys // the keys of the device
	SendCQ, RecvCQ *CQ       // may be the same
	SRQ            *SRQ      // receives come from here; MaxRecvWR is 0 then
	XRCD           *XRCD     // of an XRC_RECV
	MaxSendWR      int       // send work requests, 1 to MaxWR
	MaxRecvWR      int       // receive work requests, 1 to MaxWR
	MaxSendSGE     int       // pieces of a send, 1 to MaxSGE
	MaxRecvSGE     int       // pieces of a receive, 1 to MaxSGE
	MaxInline      int       // bytes of inline data, 0 to MaxInline
	// MaxInlineRecv is how many bytes of a SEND received, of a READ response or of an
	// atomic one its completion may carry, 0 to MaxInlineRecv.
	MaxInlineRecv int
	SignalAll     bool         // every send makes a completion (sq_sig_all)
	Window        int          // PSNs in flight, 0 for the default
	MTU           wire.MTU     // of the port: what a datagram may carry, default 4096
	Counters      *counter.Set // of the queue that drives the QP
	Holds         *HoldPool    // where early packets wait; nil refuses Extensions

	// OnEvent is told of asynchronous events with the progress lock held, and
	// must not block. It may be nil.
	OnEvent func(Event)
}

func (c *QPConfig) check() error {
	switch {
	case !c.Type.Known():
		return fmt.Errorf("%w: no QP %s", ErrInvalid, c.Type)
	case c.Domain == nil || c.Keys == nil || c.Counters == nil:
		return fmt.Errorf("%w: a QP needs a protection domain, keys and counters", ErrInvalid)
	case c.Type.HasSend() && c.SendCQ == nil:
		return fmt.Errorf("%w: %s needs a send CQ", ErrInvalid, c.Type)
	case c.Type.HasRecv() && c.RecvCQ == nil:
		return fmt.Errorf("%w: %s needs a receive CQ", ErrInvalid, c.Type)
	case c.Window < 0 || c.Window > maxWindow:
		return fmt.Errorf("%w: window %d is not in 0..%d", ErrInvalid, c.Window, maxWindow)
	case c.MaxInline < 0 || c.MaxInline > MaxInline:
		return fmt.Errorf("%w: %d bytes inline are not in 0..%d", ErrInvalid, c.MaxInline,
			MaxInline)
	case c.MaxInlineRecv < 0 || c.MaxInlineRecv > MaxInlineRecv:
		return fmt.Errorf("%w: %d bytes of inline receive are not in 0..%d", ErrInvalid,
			c.MaxInlineRecv, MaxInlineRecv)
	case c.MTU > wire.MTU4096:
		return fmt.Errorf("%w: MTU code %d is not in 1..5", ErrInvalid, uint8(c.MTU))
	}
	return c.checkShared()
}

// checkShared tests what a QP shares with others.
func (c *QPConfig) checkShared() error {
	switch {
	case (c.Type == TypeXRCRecv) != (c.XRCD != nil):
		return fmt.Errorf("%w: an XRC domain is for XRC_RECV alone, which needs one", ErrInvalid)
	case c.SRQ != nil && (c.Type.XRC() || c.Type == TypeRawPacket):
		return fmt.Errorf("%w: %s takes no SRQ", ErrInvalid, c.Type)
	case c.SRQ != nil && c.SRQ.XRC():
		return fmt.Errorf("%w: the SRQ is one for XRC", ErrInvalid)
	case c.SRQ != nil && c.MaxRecvWR != 0:
		return fmt.Errorf("%w: a QP on an SRQ has no receive queue", ErrInvalid)
	}
	return nil
}

// A QP is a queue pair. PostSend, PostRecv, State and WantsCredit are safe for
// concurrent use; everything else needs the progress lock of the queue that
// owns the QP.
type QP struct {
	// What each packet looks at comes first, and what none does last: of very many
	// QPs each one has to be fetched from memory again and again.
	state   atomic.Uint32 // a State; written under both work queues' locks
	starved atomic.Bool   // the peer was told that no receive is posted
	num     uint32
	pmtu    uint32
	ipID    uint16
	typ     QPType
	service uint8 // wire.Service in the place where an opcode has it
	// stalled says that no request is sent until req.rnrAt, for want of a page here;
	// stalls is how often in a row.
	stalled bool
	stalls  uint8
	sigAll  bool
	// yielded says that the ACK in front let a request pass.
	yielded bool
	// overrun says that a completion was lost: the QP must go to ERR. fatal
	// says that EventQPFatal was raised for it.
	overrun, fatal bool
	// established says that a packet came since the connection was made.
	established bool
	// tellDrained says that EventSQDrained is wanted.
	tellDrained bool
	// lastDrop is the step that refused the last packet that was refused.
	lastDrop Step
	// inline is how many bytes of payload a completion may carry.
	inline  uint8
	portMTU wire.MTU
	party   mem.Party // what windows bound by this QP are for
	count   *counter.Set
	trace   *Trace
	sel     *selective // nil without Extensions

	req    requester
	keys   *mem.Keys
	domain *mem.Domain
	sendCQ *CQ
	sq     queue.WorkQueue[sendWQE]
	path   wire.Template
	attr   Attr
	rsp    responder
	recvCQ *CQ
	srq    *SRQ // fixed, or of the message under way on an XRC_RECV; may be nil
	rq     queue.WorkQueue[queue.RecvWQE]

	xrcd    *XRCD
	onEvent func(Event)
	holds   *HoldPool
}

// NewQP returns a QP in state RESET with this number (24 bits).
func NewQP(num uint32, c QPConfig) (*QP, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	q := &QP{
		num: num, typ: c.Type, service: uint8(c.Type.Service()) << 5, portMTU: c.MTU,
		domain: c.Domain, keys: c.Keys, count: c.Counters, sendCQ: c.SendCQ, recvCQ: c.RecvCQ,
		srq: c.SRQ, xrcd: c.XRCD, onEvent: c.OnEvent, holds: c.Holds, sigAll: c.SignalAll,
		inline: uint8(c.MaxInlineRecv),
	}
	if c.MTU == 0 {
		q.portMTU = wire.MTU4096
	}
	if c.Type.HasSend() {
		err := q.sq.Init("send queue", c.MaxSendWR, c.MaxSendSGE, c.MaxInline)
		if err != nil {
			return nil, err
		}
	}
	switch {
	case c.SRQ != nil:
		q.rsp.sges = make([]SGE, c.SRQ.MaxSGE())
	case c.Type.HasRecv():
		if err := q.rq.Init("receive queue", c.MaxRecvWR, c.MaxRecvSGE, 0); err != nil {
			return nil, err
		}
	}
	q.req.configured = uint32(c.Window)
	if c.Window == 0 {
		q.req.configured = defaultWindow
	}
	q.req.window = q.req.configured
	return q, nil
}

// Num returns the QP number.
func (q *QP) Num() uint32 { return q.num }

// Type returns the type.
func (q *QP) Type() QPType { return q.typ }

// State returns the state. It is safe for concurrent use.
func (q *QP) State() State { return State(q.state.Load()) }

// HandlePacket takes a packet that was addressed to this QP. It borrows p.
func (q *QP) HandlePacket(now Time, p *wire.Packet) {
	q.traceAt(now)
	if step := q.admit(p); step != stepAdmitted {
		q.drop(p, step)
		return
	}
	q.count.Inc(counter.RcvdPkts)
	if q.trace != nil {
		q.trace.packet(TraceReceived, p.BTH.Opcode, p.BTH.PSN)
	}
	if !q.established {
		q.establish()
	}
	switch {
	case q.typ.Datagram():
		q.handleDatagram(now, p)
	case !p.Spec.Is(wire.ClassRequest):
		q.handleResponse(now, p)
	case q.typ == TypeUC:
		q.handleUnreliable(now, p)
	default:
		q.handleRequest(now, p)
	}
	q.settle(now)
}

// establish notes the first packet of a connection.
func (q *QP) establish() {
	q.established = true
	if q.State() == StateRTR && !q.typ.Datagram() {
		q.raise(EventCommEst)
	}
}

// drop counts a packet that is dropped in silence at a step.
func (q *QP) drop(p *wire.Packet, step Step) {
	q.count.Inc(step.counter())
	q.note(p, step)
}

// note keeps the step at which a packet was dropped or refused.
func (q *QP) note(p *wire.Packet, step Step) {
	q.lastDrop = step
	if q.trace != nil {
		q.trace.dropped(p, step)
	}
}

// admit makes the checks whose failure is silent, in the order of IBA 9.6.
// The ICRC is last because it is the dearest.
func (q *QP) admit(p *wire.Packet) Step {
	state := q.State()
	switch {
	case !state.Receives() || q.typ == TypeRawPacket:
		return stepState
	case uint8(p.Spec.Service)<<5 != q.service && !q.understands(p):
		return stepService
	case !q.typ.Datagram() && (p.Src != q.attr.Path.Dst || p.Dst != q.attr.Path.Src ||
		p.Framing != q.attr.Path.Framing || p.VLANID() != q.attr.Path.VLANID()):
		return stepSource
	case !pkeyMatches(p.BTH.PKey):
		return stepPKey
	case !p.VerifyICRC():
		return stepICRC
	case !p.Spec.Is(wire.ClassRequest) && (!state.Sends() || q.typ == TypeXRCRecv):
		return stepState
	case p.Spec.Is(wire.ClassRequest) && q.typ == TypeXRCSend:
		return stepService
	}
	return stepAdmitted
}

// pkeyMatches compares with the one P_Key of RoCE, a full member: the low 15
// bits must agree (IBA 10.9.3).
func pkeyMatches(pkey uint16) bool { return pkey&0x7fff == wire.DefaultPKey&0x7fff }

// NextPacket writes the next packet to send to frame, which must have room for
// the largest frame of the path MTU, and returns its length, 0 when nothing is
// to be sent now. Without a frame nothing is written; work that was posted to a
// QP in ERR is flushed all the same. Answers go before requests, but a mere ACK lets one request
// pass: nobody waits for the ACK as long as for the request.
func (q *QP) NextPacket(now Time, frame []byte) int {
	q.traceAt(now)
	n := 0
	if len(frame) == 0 {
		q.settle(now)
		return 0
	}
	if q.yielded = !q.yielded && q.rsp.fifo.patient(); q.yielded {
		n = q.nextRequest(now, frame)
	}
	if n == 0 {
		n = q.nextResponse(now, frame)
	}
	if n == 0 {
		n = q.nextRequest(now, frame)
	}
	q.settle(now)
	if n > 0 {
		q.count.Inc(counter.SentPkts)
		q.count.Add(counter.SentBytes, uint64(n))
	}
	return n
}

// Answering reports whether the responder owes the peer a packet: such a QP is
// to send before those that only have requests. It needs the progress lock.
func (q *QP) Answering() bool { return q.rsp.fifo.n > 0 }

// NextDeadline returns when HandleDeadline wants to be called, false for never.
func (q *QP) NextDeadline() (Time, bool) {
	r := &q.req
	at := r.ackAt
	if r.rnrWait {
		at = r.rnrAt
	} else if q.stalled {
		at = clock.Sooner(at, r.rnrAt)
	}
	if q.rsp.pageWait {
		at = clock.Sooner(at, q.rsp.waitsUntil())
	}
	if r.paced {
		at = clock.Sooner(at, r.pace.Due())
	}
	if q.sel != nil {
		at = clock.Sooner(at, q.sel.deadline())
	}
	return at, at != 0
}

// HandleDeadline does what is due. Calling it early does nothing.
func (q *QP) HandleDeadline(now Time) {
	q.traceAt(now)
	if q.trace != nil {
		q.trace.add(TraceEvent{Kind: TraceDeadline})
	}
	if now >= q.req.pace.Due() {
		q.req.paced = false // NextPacket waits again if need be
	}
	if q.rsp.pageWait && now >= q.rsp.waitsUntil() {
		q.rsp.pageWait = false
	}
	q.requestDeadline(now)
	if q.sel != nil {
		q.selectiveDeadline(now)
	}
	q.settle(now)
}

// settle ends every step: a QP that lost a completion goes to ERR, one in ERR
// flushes what was posted meanwhile, one in SQE its sends.
func (q *QP) settle(now Time) {
	state := q.State()
	if q.overrun && !q.fatal {
		q.fatal = true
		q.raise(EventQPFatal)
		q.enterError(now)
		return
	}
	switch state {
	case StateErr:
		q.flush(now)
	case StateSQE:
		q.flushSends(now)
	case StateSQD:
		if q.tellDrained && !q.draining() {
			q.tellDrained = false
			q.raise(EventSQDrained)
		}
	}
}

// raise reports an asynchronous event.
func (q *QP) raise(e Event) {
	if q.onEvent != nil {
		q.onEvent(e)
	}
}

// complete adds a completion of this QP to a CQ. A QP that loses one goes to
// ERR at the end of the step, since nobody could tell any more what was done.
func (q *QP) complete(cq *CQ, wc *Completion, solicited bool) {
	q.deliver(cq, wc, solicited, nil)
}

// deliver is complete with the inline payload of the completion, nil for none.
func (q *QP) deliver(cq *CQ, wc *Completion, solicited bool, in *queue.InlinePayload) {
	wc.QPN = q.num
	if q.trace != nil {
		q.trace.completion(wc)
	}
	if !cq.PushInline(wc, solicited, in) {
		q.count.Inc(counter.CQOverrun)
		q.overrun = true
	}
}

// enterError moves to ERR. The work request at fault was completed before; all
// others are flushed, in order.
func (q *QP) enterError(now Time) {
	if q.State() == StateErr {
		return
	}
	q.setState(StateErr)
	q.stopRequests()
	if q.sel != nil {
		q.sel.clear()
	}
	q.flush(now)
	if q.srq != nil || q.typ == TypeXRCRecv {
		q.raise(EventQPLastWQEReached)
	}
}

// stopRequests turns the timers of the send queue off.
func (q *QP) stopRequests() {
	q.req.stop()
	q.stalled = false
}

// enterSQE stops the send queue of an unreliable QP after a local error; the
// receive queue keeps running (IBA 10.3.1.6).
func (q *QP) enterSQE(now Time) {
	if q.State() != StateErr {
		q.setState(StateSQE)
		q.stopRequests()
		q.req.cut()
		q.flushSends(now)
	}
}

// flush completes all work requests with a flush error.
func (q *QP) flush(now Time) {
	q.flushSends(now)
	if q.rsp.held {
		q.completeRecv(&Completion{Status: StatusWRFlushErr, Time: now}, true)
	}
	for i := q.rq.Head(); i != q.rq.Tail(); i++ {
		wc := Completion{WRID: q.rq.At(i).WRID, Status: StatusWRFlushErr, Time: now}
		q.rq.Pop()
		q.complete(q.recvCQ, &wc, true)
	}
}

// flushSends completes all sends with a flush error.
func (q *QP) flushSends(now Time) {
	for i := q.sq.Head(); i != q.sq.Tail(); i++ {
		wc := Completion{WRID: q.sq.At(i).wrID, Status: StatusWRFlushErr, Time: now}
		q.sq.Pop()
		q.complete(q.sendCQ, &wc, true)
	}
	q.req.cur, q.req.new = q.sq.Head(), q.sq.Head()
}

// setState changes the state such that no post sees half of the change.
func (q *QP) setState(s State) {
	if q.trace != nil {
		q.trace.add(TraceEvent{Kind: TraceState, State: s})
	}
	q.sq.Lock()
	q.rq.Lock()
	q.state.Store(uint32(s))
	q.rq.Unlock()
	q.sq.Unlock()
}
