package roce

import (
	"sync/atomic"

	"xroce/roce/clock"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// The responder executes the peer's request packets, in the order of PSNs and
// each once. A request passes named checks: PSN, opcode sequence, rights of the
// QP, resources, length, memory key, execution, acknowledgement (IBA 9.7.4).
type responder struct {
	*transport
	receiveState
	early  *earlyRequests // nil without Extensions
	srq    *SRQ           // fixed, or of the message under way on an XRC_RECV; may be nil
	rq     queue.WorkQueue[queue.RecvWQE]
	recvCQ *CQ
	xrcd   *XRCD
	// sges has room for the pieces of a shared receive. It is a pointer because most QPs have
	// none.
	sges *[]SGE
	// noCredits says that the peer was told that no receive is posted.
	noCredits atomic.Bool
	// badKey says that the QP ended because of the key of a request of the peer.
	badKey bool
	// tolerance is how many requests may overtake one that is missing; see
	// QPConfig.ReorderWindow.
	tolerance uint8
}

// receiveState is what RESET forgets of a responder.
type receiveState struct {
	responses responseQueue

	psn wire.PSN // the PSN expected next
	msn uint32   // messages completed, 24 bits
	// gap says that a NAK told the peer that psn is missing or was refused: a gap has
	// one NAK.
	gap bool
	// refused says that the expected packet came and met no receive: packets
	// behind it say nothing about a loss.
	refused      bool
	kind         msgKind // of the message that is under way
	recvTaken    bool    // a receive is in hand
	depth        uint8   // how many requests may be remembered
	nextResource uint8   // where the next one is
	pageWait     bool    // the response in front waits for a page
	missed       uint8   // how often in a row pages of psn were absent
	syncing      bool    // the newest request is a FLUSH that waits for persistence

	// The message that is under way, of first or middle packets received.
	placed uint32 // bytes of it already placed
	since  mem.Epoch
	va     uint64 // WRITE: where the next byte goes
	rkey   uint32 // WRITE: with which key
	left   uint32 // WRITE: bytes still to come

	// The receive in hand. One of the QP's own leaves its queue when it is
	// complete; one of a shared queue left it already, with its pieces.
	recv queue.RecvWQE

	resources []resource // the last READs, atomics and their like, a ring
}

// init makes the receive queue that a new QP is to have.
func (s *responder) init(t *transport, c *QPConfig) error {
	s.transport, s.recvCQ, s.srq, s.xrcd = t, c.RecvCQ, c.SRQ, c.XRCD
	s.tolerance = c.ReorderWindow
	switch {
	case c.SRQ != nil:
		s.makeRoom(c.SRQ)
	case c.Type.HasRecv():
		return s.rq.Init("receive queue", c.MaxRecvWR, c.MaxRecvSGE, 0)
	}
	return nil
}

// deadline returns when handleDeadline wants to be called, 0 for never.
func (s *responder) deadline() Time {
	at := Time(0)
	if s.pageWait {
		at = s.waitsUntil()
	}
	return clock.Sooner(at, s.gapDeadline())
}

// gapDeadline is when a gap before early requests becomes a loss, 0 for never.
func (s *responder) gapDeadline() Time {
	if s.early == nil {
		return 0
	}
	return s.early.gap.Deadline()
}

// handleDeadline ends waits whose time has come.
func (s *responder) handleDeadline(now Time) {
	if s.pageWait && now >= s.waitsUntil() {
		s.pageWait = false
	}
	if s.early != nil && s.early.gap.Expired(now) {
		s.tellGap()
	}
}

// stop gives back what waits for a gap to close, and gives up a FLUSH.
func (s *responder) stop() {
	s.cancelSync()
	s.dropData()
	if s.early != nil {
		s.early.clear()
	}
}

// flush completes all receives with a flush error.
func (s *responder) flush(now Time) {
	if s.recvTaken {
		s.failRecv(now, StatusWRFlushErr)
	}
	for i := s.rq.Head(); i != s.rq.Tail(); i++ {
		wc := Completion{
			WRID: s.rq.At(i).WRID, Status: StatusWRFlushErr, Opcode: WCRecv, Time: now,
		}
		s.rq.Pop()
		s.complete(s.recvCQ, &wc, true)
	}
}

// shared reports whether receives come from a shared queue.
func (s *responder) shared() bool { return s.srq != nil || s.typ == TypeXRCRecv }

// reset forgets all work and the connection, without completions.
func (s *responder) reset() {
	if s.early != nil {
		s.early.clear()
		s.early = nil
	}
	s.cancelSync()
	s.rq.Clear()
	if s.typ == TypeXRCRecv {
		s.xrcd.Purge(s.num)
		s.srq = nil
	}
	s.receiveState = receiveState{}
	s.noCredits.Store(false)
}

type msgKind uint8

const (
	msgNone msgKind = iota
	msgSend
	msgWrite
)
