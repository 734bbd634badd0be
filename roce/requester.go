package roce

import (
	"xroce/roce/cc"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// The requester turns work requests into request packets.
//
//	            head          cur           new           tail
//	send queue   | unacknowledged | to send again | not begun |
//	PSNs        una             psn             max
//
// A work request is begun when its first packet can go: it then gets its PSNs,
// max moves behind them, and whatever happens later, the same PSN always
// carries the same bytes. To send again is to move psn and cur back. On a
// service without acknowledgements a work request is complete when its last
// packet is written, and una follows psn.
type requester struct {
	*transport
	requestState
	recovery   lossRecovery
	sq         queue.WorkQueue[sendWQE]
	sendCQ     *CQ
	configured uint32 // the window of QPConfig
	sigAll     bool
	portMTU    wire.MTU
	mostMTU    wire.MTU // the highest that it was
	alive      keepalive
}

// requestState is what RESET forgets of a requester.
type requestState struct {
	psn wire.PSN // the next PSN to send
	max wire.PSN // the first PSN that no begun work request has
	una wire.PSN // the oldest unacknowledged PSN
	cur uint32   // send queue entry that psn belongs to; new when psn == max
	new uint32   // the first send queue entry that is not begun

	// asked is the PSN behind the newest packet that asked for an answer, of those that
	// go out since the requester last went back. What lies between it and psn was sent
	// because something would follow that asks.
	asked wire.PSN

	window  uint32 // limit of psn - una for SEND and WRITE packets
	sentTop wire.PSN
	out     uint32 // READs, atomics and their like begun and not complete
	credit  credit
	pace    cc.Pacer

	// mark is the end of the wait after an RNR NAK, or for a page; without one, and with a
	// keepalive, when the peer was heard last, or asked.
	mark      Time
	ackAt     Time  // when the local ACK timer expires, 0 when it is off
	retry     uint8 // left of RETRY_CNT
	rnrRetry  uint8 // left of RNR_RETRY
	postponed uint8 // how often ackAt was; see PostponeAckTimer
	sinceAck  uint8 // packets since the last one that asked for an ACK
	rnrWait   bool
	paced     bool // a request waits for the rate limit

	// stalled says that no request is sent until mark, for want of a page here; stalls
	// is how often in a row.
	stalled bool
	stalls  uint8

	// retried says that everything from una on was sent again for a NAK and
	// nothing was acknowledged since: more NAKs for the same loss are old.
	retried bool
	// resent says the same of any reason. While it is set, an acknowledge behind a READ
	// whose data has not come tells of no other loss.
	resent bool
	// failed says that entry failAt cannot be sent, or not to its end. It
	// completes with failStatus when all before it have completed.
	failed     bool
	failStatus Status
	failAt     uint32
}

// init makes the send queue that a new QP is to have.
func (r *requester) init(t *transport, c *QPConfig) error {
	window := uint32(c.Window)
	if window == 0 {
		window = defaultWindow
	}
	r.transport, r.sendCQ, r.sigAll = t, c.SendCQ, c.SignalAll
	if r.setPortMTU(c.MTU); c.MTU == 0 {
		r.setPortMTU(wire.MTU4096)
	}
	r.configured, r.window = window, window
	r.recovery = goBackN{r}
	if !c.Type.HasSend() {
		return nil
	}
	return r.sq.Init("send queue", c.MaxSendWR, c.MaxSendSGE, c.MaxInline)
}

// restart begins a connection at a PSN.
func (r *requester) restart(psn wire.PSN) {
	r.jump(psn)
	r.recovery.restart(psn)
}

// jump moves to a PSN before which nothing is under way.
func (r *requester) jump(psn wire.PSN) {
	r.psn, r.max, r.una, r.sentTop, r.asked = psn, psn, psn, psn, psn
}

// halt turns the timers off, and gives back what waits.
func (r *requester) halt() {
	r.rnrWait, r.ackAt, r.failed, r.out = false, 0, false, 0
	r.paced, r.stalled = false, false
	r.recovery.stop()
}

// stop is halt for good: the connection has ended, and with it what was known of its path.
func (r *requester) stop() {
	r.halt()
	if r.congestion != nil {
		r.congestion.stop()
	}
}

// reset forgets all work and the connection, without completions.
func (r *requester) reset() {
	r.recovery.stop()
	r.recovery = goBackN{r}
	r.sq.Clear()
	head := r.sq.Head()
	r.requestState = requestState{window: r.configured, cur: head, new: head}
	r.alive = keepalive{}
	if r.congestion != nil {
		r.congestion.reset()
	}
}

// ahead is how far p lies ahead of una.
func (r *requester) ahead(p wire.PSN) uint32 { return uint32(p.Sub(uint32(r.una))) }

// oldest is the work request that una belongs to, if any is begun.
func (r *requester) oldest() *sendWQE { return r.sq.At(r.sq.Head()) }

// localAccess returns on whose behalf a work request accesses local memory.
func (r *requester) localAccess(w *sendWQE) mem.Accessor {
	return mem.Accessor{Domain: r.domain, Since: w.since}
}

// draining reports whether what was begun is not finished, in SQD.
func (r *requester) draining() bool { return r.sq.Head() != r.new }
