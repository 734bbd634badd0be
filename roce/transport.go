package roce

import (
	"sync/atomic"

	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// A transport is what the two halves of a QP share: who it is, how it reaches its peer,
// on whose behalf it gets at memory, and where it tells what happened. It knows neither
// of the halves.
type transport struct {
	state   atomic.Uint32 // a State; written with posts held
	num     uint32
	ipID    uint16
	typ     QPType
	service uint8 // wire.Service in the place where an opcode has it
	// inline is how many bytes of payload a completion may carry.
	inline uint8
	// overrun says that a completion was lost: the QP must go to ERR.
	overrun bool
	// lastDrop is why the last packet that was refused was.
	lastDrop Reason
	outcome  received  // what came of the last packet
	party    mem.Party // what windows bound by this QP are for
	flags    qpFlags

	// What is not made of 8 bytes comes first: with a hole in between, a QP is 8 bytes
	// larger than a size that the allocator has.
	attr Attr
	path wire.Template

	wrote  uint64 // the ID of the work request that was written last: see Sent
	count  *counter.Set
	trace  *Trace
	domain *mem.Domain
	common *Common

	congestion *congestion // nil without QPConfig.Congestion

	onEvent func(Event)
	posts   *postLock
}

// pmtu is the payload of a full packet in bytes: the path MTU.
func (t *transport) pmtu() uint32 { return uint32(t.attr.FullPacket()) }

// keys are those of the device.
func (t *transport) keys() *mem.Keys { return t.common.Keys }

// pkey is the P_Key, that of the table at PKeyIndex.
func (t *transport) pkey() uint16 { return t.common.PKeys[t.attr.PKeyIndex] }

// A postLock locks out every post to a QP. A post holds the lock of one work queue and
// reads the state and the attributes, so a change of these holds both.
type postLock QP

// Lock keeps others from posting until Unlock.
func (q *postLock) Lock() {
	q.req.sq.Lock()
	q.rsp.rq.Lock()
}

// Unlock lets others post again.
func (q *postLock) Unlock() {
	q.rsp.rq.Unlock()
	q.req.sq.Unlock()
}

// State returns the state. It is safe for concurrent use.
func (t *transport) State() State { return State(t.state.Load()) }

// setState changes the state such that no post sees half of the change.
func (t *transport) setState(s State) {
	if t.trace != nil {
		t.trace.add(TraceEvent{Kind: TraceState, State: s})
	}
	t.posts.Lock()
	t.state.Store(uint32(s))
	t.posts.Unlock()
}

// setAttr replaces the attributes. PostSend looks at them with its lock held.
func (t *transport) setAttr(a *Attr) {
	t.posts.Lock()
	t.attr = *a
	t.posts.Unlock()
}

// enterError moves to ERR. The halves stop, and flush, when the call that found the
// error ends.
func (t *transport) enterError() {
	if t.State() != StateErr {
		t.setState(StateErr)
	}
}

// drop counts a packet that is dropped for a reason, without a NAK.
func (t *transport) drop(p *wire.Packet, reason Reason) {
	t.count.Inc(reason.counter())
	t.note(p, VerdictDropped, reason)
}

// note keeps why a packet was dropped or refused.
func (t *transport) note(p *wire.Packet, v Verdict, reason Reason) {
	t.lastDrop = reason
	t.outcome.judge(v, reason)
	if t.trace != nil {
		t.trace.dropped(p, reason)
	}
}

// raise reports an asynchronous event.
func (t *transport) raise(e Event) {
	if t.onEvent != nil {
		t.onEvent(e)
	}
}

// complete adds a completion of this QP to a CQ. A QP that loses one goes to
// ERR at the end of the call, since what was done could not be told any more.
func (t *transport) complete(cq *CQ, wc *Completion, solicited bool) {
	t.deliver(cq, wc, solicited, nil)
}

// deliver is complete with the inline payload of the completion, nil for none.
// It reports whether there was room.
func (t *transport) deliver(
	cq *CQ, wc *Completion, solicited bool, in *queue.InlinePayload,
) bool {
	t.sign(wc)
	if !cq.PushInline(wc, solicited, in) {
		t.loseCompletion()
		return false
	}
	return true
}

// deliverWith is complete, without solicitation, by way of a batch.
func (t *transport) deliverWith(b *queue.Batch, wc *Completion) {
	t.sign(wc)
	if !b.Add(wc, false) {
		t.loseCompletion()
	}
}

// sign makes a completion one of this QP.
func (t *transport) sign(wc *Completion) {
	wc.QPN = t.num
	if t.trace != nil {
		t.trace.completion(wc)
	}
}

// loseCompletion notes that a CQ had no room.
func (t *transport) loseCompletion() {
	t.count.Inc(counter.CQOverrun)
	t.overrun = true
}
