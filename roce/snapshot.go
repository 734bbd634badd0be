package roce

import (
	"fmt"

	"xroce/roce/wire"
)

// A Snapshot is the state of a QP as plain data, for tests and tools.
type Snapshot struct {
	QPN            uint32
	Type           QPType
	State          State
	DestQPN        uint32
	SendPosted     uint32   // send work requests not complete
	SendBegun      uint32   // of these, begun
	RecvPosted     uint32   // receive work requests not complete
	NextPSN        wire.PSN // requester: next PSN to send
	UnackedPSN     wire.PSN // requester: oldest unacknowledged PSN
	TopPSN         wire.PSN // requester: first PSN never sent
	Outstanding    uint32   // requester: READs, atomics and their like without response
	RetryLeft      uint8
	RNRLeft        uint8
	RNRWaiting     bool
	ExpectedPSN    wire.PSN // responder
	MSN            uint32   // responder
	Responses      int      // responder: responses that wait to be sent
	Limited        bool     // requester: the peer counts credits
	LSN            uint32   // requester: the last message with a credit, when limited
	SSN            uint32   // requester: the last message begun
	Paced          bool     // requester: waits for the rate limit
	Rate           uint32   // that congestion control allows, kbit/s, 0 for any
	Alpha          float64  // DCQCN: how congested the path is, 0 to 1, 0 without a limit
	PageWaiting    bool     // requester or responder: waits for a page
	EarlyRequests  int      // responder: requests kept behind a gap
	EarlyResponses int      // requester: READ responses kept behind a gap
	LastDrop       Reason   // why the last packet that was refused was
	BadKey         bool     // responder: a request with a wrong key has ended the QP
	LargeLost      bool     // requester: VendorLargeLost has ended the QP
}

// Snapshot copies the state. It needs the progress lock.
func (q *QP) Snapshot() Snapshot {
	r, s := &q.req, &q.rsp
	snap := Snapshot{
		QPN: q.num, Type: q.typ, State: q.State(), DestQPN: q.attr.DestQPN,
		SendPosted: uint32(q.req.sq.Posted()),
		SendBegun:  r.new - q.req.sq.Head(),
		RecvPosted: uint32(q.rsp.rq.Posted()),
		NextPSN:    r.psn, UnackedPSN: r.una, TopPSN: r.sentTop,
		Outstanding: r.out, RetryLeft: r.retry, RNRLeft: r.rnrRetry, RNRWaiting: r.rnrWait,
		ExpectedPSN: s.psn, MSN: s.msn, Responses: int(s.responses.n), LastDrop: q.lastDrop,
		BadKey: q.rsp.badKey, LargeLost: q.State() == StateErr && r.alive.state == smallAnswered,
		Limited: r.credit.limited, LSN: r.credit.lsn, SSN: r.credit.ssn, Paced: r.paced,
		PageWaiting: q.req.stalled || s.pageWait,
	}
	if q.congestion != nil {
		snap.Rate, snap.Alpha = q.congestion.rate(), q.congestion.alpha()
	}
	if q.rsp.early != nil {
		snap.EarlyRequests = q.rsp.early.buffer.Len()
	}
	if x, ok := q.req.recovery.(*selectiveRepeat); ok {
		snap.EarlyResponses = x.data.Len()
	}
	return snap
}

// String prints the snapshot in one line.
func (s Snapshot) String() string {
	return fmt.Sprintf("qp 0x%06x %s %s peer 0x%06x psn 0x%06x una 0x%06x expects 0x%06x "+
		"sends %d receives %d last drop %s", s.QPN, s.Type, s.State, s.DestQPN, s.NextPSN,
		s.UnackedPSN, s.ExpectedPSN, s.SendPosted, s.RecvPosted, s.LastDrop)
}
