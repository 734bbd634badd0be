package roce

import (
	"fmt"
	"sync/atomic"

	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Implementation constants of a QP.
const (
	// defaultWindow is how many PSNs may be unacknowledged: enough to keep a
	// link busy over the round trip of a burst, and small against the receive
	// ring of the peer, which has to hold all of it.
	defaultWindow = 256
	maxWindow     = 1 << 16
	// MaxRdAtomic is the largest number of READs outstanding on a QP.
	MaxRdAtomic = 128
)

// QPConfig says what a new QP is.
type QPConfig struct {
	Type           QPType
	Domain         *mem.Domain
	Keys           *mem.Keys    // the keys of the device
	SendCQ, RecvCQ *CQ          // may be the same
	MaxSendWR      int          // send work requests, 1 to MaxWR
	MaxRecvWR      int          // receive work requests, 1 to MaxWR
	MaxSendSGE     int          // pieces of a send, 1 to MaxSGE
	MaxRecvSGE     int          // pieces of a receive, 1 to MaxSGE
	SignalAll      bool         // every send makes a completion (sq_sig_all)
	Window         int          // PSNs in flight, 0 for the default
	Counters       *counter.Set // of the queue that drives the QP
}

func (c *QPConfig) check() error {
	switch {
	case c.Type != TypeRC:
		return fmt.Errorf("%w: QP type %s is not supported, only RC", ErrInvalid, c.Type)
	case c.Domain == nil || c.Keys == nil || c.Counters == nil:
		return fmt.Errorf("%w: a QP needs a protection domain, keys and counters", ErrInvalid)
	case c.SendCQ == nil || c.RecvCQ == nil:
		return fmt.Errorf("%w: a QP needs a send CQ and a receive CQ", ErrInvalid)
	case c.Window < 0 || c.Window > maxWindow:
		return fmt.Errorf("%w: window %d is not in 0..%d", ErrInvalid, c.Window, maxWindow)
	}
	return nil
}

// A QP is a queue pair. PostSend and PostRecv are safe for concurrent use;
// everything else needs the progress lock of the queue that owns the QP.
type QP struct {
	state  atomic.Uint32 // a State; written under both work queues' locks
	num    uint32
	domain *mem.Domain
	keys   *mem.Keys
	count  *counter.Set
	sendCQ *CQ
	recvCQ *CQ

	attr   Attr
	path   wire.Template
	ipID   uint16
	pmtu   uint32
	sigAll bool
	// yielded says that the ACK in front let a request pass.
	yielded bool
	// overrun says that a completion was lost: the QP must go to ERR.
	overrun bool
	// lastDrop is the step that refused the last packet that was refused.
	lastDrop Step

	sq  workQueue[sendWQE]
	rq  workQueue[recvWQE]
	req requester
	rsp responder
}

// sendWQE is an entry of the send queue. Its application part is written once
// when posted, the rest when the requester begins with it.
type sendWQE struct {
	wrID       uint64
	remoteAddr uint64
	rkey       uint32
	imm        uint32
	length     uint32
	opcode     Opcode
	flags      SendFlags
	numSGE     uint8

	first, last wire.PSN // valid once begun
}

// recvWQE is an entry of the receive queue.
type recvWQE struct {
	wrID   uint64
	length uint32
	numSGE uint8
}

// NewQP returns a QP in state RESET with this number (24 bits).
func NewQP(num uint32, c QPConfig) (*QP, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	q := &QP{
		num: num, domain: c.Domain, keys: c.Keys, count: c.Counters,
		sendCQ: c.SendCQ, recvCQ: c.RecvCQ, sigAll: c.SignalAll,
	}
	if err := q.sq.init("send queue", c.MaxSendWR, c.MaxSendSGE); err != nil {
		return nil, err
	}
	if err := q.rq.init("receive queue", c.MaxRecvWR, c.MaxRecvSGE); err != nil {
		return nil, err
	}
	q.req.window = uint32(c.Window)
	if c.Window == 0 {
		q.req.window = defaultWindow
	}
	return q, nil
}

// Num returns the QP number.
func (q *QP) Num() uint32 { return q.num }

// State returns the state. It is safe for concurrent use.
func (q *QP) State() State { return State(q.state.Load()) }

// PostSend adds a work request to the send queue, or returns ErrQueueFull,
// ErrState or ErrInvalid and changes nothing. In state ERR the request is taken
// and completes with a flush error.
func (q *QP) PostSend(wr *SendWR) error {
	if int(wr.Opcode) >= len(sendOps) {
		return fmt.Errorf("%w: %s on an RC QP", ErrInvalid, wr.Opcode)
	}
	if wr.Flags&^sendFlagsKnown != 0 {
		return fmt.Errorf("%w: send flags %#x", ErrInvalid, uint8(wr.Flags&^sendFlagsKnown))
	}
	length, err := q.sq.checkSGList(wr.SGList)
	if err != nil {
		return err
	}
	q.sq.mu.Lock()
	defer q.sq.mu.Unlock()
	if s := q.State(); !s.sends() && s != StateErr {
		return fmt.Errorf("%w: sending needs RTS, the QP is in %s", ErrState, s)
	}
	if sendOps[wr.Opcode].read && q.attr.MaxRdAtomic == 0 && q.State() != StateErr {
		return fmt.Errorf("%w: READ on a QP whose MAX_QP_RD_ATOMIC is 0", ErrInvalid)
	}
	return q.sq.push(sendWQE{
		wrID: wr.WRID, opcode: wr.Opcode, flags: wr.Flags, numSGE: uint8(len(wr.SGList)),
		length: length, imm: wr.Imm, remoteAddr: wr.RemoteAddr, rkey: wr.RKey,
	}, wr.SGList)
}

// PostRecv adds a work request to the receive queue, or returns ErrQueueFull,
// ErrState or ErrInvalid and changes nothing. In state ERR the request is taken
// and completes with a flush error.
func (q *QP) PostRecv(wr *RecvWR) error {
	length, err := q.rq.checkSGList(wr.SGList)
	if err != nil {
		return err
	}
	q.rq.mu.Lock()
	defer q.rq.mu.Unlock()
	if s := q.State(); s == StateReset {
		return fmt.Errorf("%w: receiving needs INIT, the QP is in %s", ErrState, s)
	}
	return q.rq.push(recvWQE{wr.WRID, length, uint8(len(wr.SGList))}, wr.SGList)
}

// HandlePacket takes a packet that was addressed to this QP. It borrows p.
func (q *QP) HandlePacket(now Time, p *wire.Packet) {
	if step := q.admit(p); step != stepAdmitted {
		q.lastDrop = step
		q.count.Inc(step.counter())
		return
	}
	q.count.Inc(counter.RcvdPkts)
	if p.Spec.Is(wire.ClassRequest) {
		q.handleRequest(now, p)
	} else {
		q.handleResponse(now, p)
	}
	q.settle(now)
}

// admit makes the checks whose failure is silent, in the order of IBA 9.6.
// The ICRC is last because it is the dearest.
func (q *QP) admit(p *wire.Packet) Step {
	state := q.State()
	switch {
	case !state.receives():
		return stepState
	case p.Spec.Service != wire.ServiceRC:
		return stepService
	case p.Src != q.attr.Path.Dst || p.Dst != q.attr.Path.Src ||
		p.Framing != q.attr.Path.Framing:
		return stepSource
	case !pkeyMatches(p.BTH.PKey):
		return stepPKey
	case !p.VerifyICRC():
		return stepICRC
	case !p.Spec.Is(wire.ClassRequest) && !state.sends():
		return stepState
	}
	return stepAdmitted
}

// pkeyMatches compares with the one P_Key of RoCE, a full member: the low 15
// bits must agree (IBA 10.9.3).
func pkeyMatches(pkey uint16) bool { return pkey&0x7fff == wire.DefaultPKey&0x7fff }

// NextPacket writes the next packet to send to frame, which must have room for
// the largest frame of the path MTU, and returns its length, 0 when nothing is
// to be sent now. Answers go before requests, but a mere ACK lets one request
// pass: nobody waits for the ACK as long as for the request.
func (q *QP) NextPacket(now Time, frame []byte) int {
	n := 0
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

// NextDeadline returns when HandleDeadline wants to be called, false for never.
func (q *QP) NextDeadline() (Time, bool) {
	if q.req.rnrWait {
		return q.req.rnrAt, true
	}
	return q.req.ackAt, q.req.ackAt != 0
}

// HandleDeadline does what is due. Calling it early does nothing.
func (q *QP) HandleDeadline(now Time) {
	q.requestDeadline(now)
	q.settle(now)
}

// settle ends every step: a QP in ERR flushes what was posted meanwhile, and a
// QP that lost a completion goes there.
func (q *QP) settle(now Time) {
	if q.overrun && q.State() != StateErr {
		q.enterError(now)
	}
	if q.State() == StateErr {
		q.flush(now)
	}
}

// complete adds a completion of this QP to a CQ.
func (q *QP) complete(cq *CQ, wc *Completion, solicited bool) {
	wc.QPN = q.num
	if !cq.push(wc, solicited) {
		q.count.Inc(counter.CQOverrun)
		q.overrun = true
	}
}

// enterError moves to ERR. The work request at fault was completed before; all
// others are flushed, in order.
func (q *QP) enterError(now Time) {
	q.setState(StateErr)
	q.req.stop()
	q.flush(now)
}

// flush completes all work requests with a flush error.
func (q *QP) flush(now Time) {
	for i := q.sq.head.Load(); i != q.sq.tail.Load(); i++ {
		wc := Completion{WRID: q.sq.at(i).wrID, Status: StatusWRFlushErr, Time: now}
		q.sq.head.Store(i + 1)
		q.complete(q.sendCQ, &wc, true)
	}
	q.req.cur, q.req.new = q.sq.head.Load(), q.sq.head.Load()
	q.rsp.held = false
	for i := q.rq.head.Load(); i != q.rq.tail.Load(); i++ {
		wc := Completion{WRID: q.rq.at(i).wrID, Status: StatusWRFlushErr, Time: now}
		q.rq.head.Store(i + 1)
		q.complete(q.recvCQ, &wc, true)
	}
}

// setState changes the state such that no post sees half of the change.
func (q *QP) setState(s State) {
	q.sq.mu.Lock()
	q.rq.mu.Lock()
	q.state.Store(uint32(s))
	q.rq.mu.Unlock()
	q.sq.mu.Unlock()
}
