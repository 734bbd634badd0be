package roce

import (
	"fmt"

	"xroce/roce/wire"
)

// A Snapshot is the state of a QP as plain data, for tests and tools.
type Snapshot struct {
	QPN         uint32
	State       State
	DestQPN     uint32
	SendPosted  uint32   // send work requests not complete
	SendBegun   uint32   // of these, begun
	RecvPosted  uint32   // receive work requests not complete
	NextPSN     wire.PSN // requester: next PSN to send
	UnackedPSN  wire.PSN // requester: oldest PSN without an answer
	TopPSN      wire.PSN // requester: first PSN never sent
	ReadsOut    uint32   // requester: READs without their data
	RetryLeft   uint8
	RNRLeft     uint8
	RNRWaiting  bool
	ExpectedPSN wire.PSN // responder
	MSN         uint32   // responder
	Answers     int      // responder: answers that wait to be sent
	LastDrop    Step     // step that refused the last packet that was refused
}

// Snapshot copies the state. It needs the progress lock.
func (q *QP) Snapshot() Snapshot {
	r, s := &q.req, &q.rsp
	return Snapshot{
		QPN: q.num, State: q.State(), DestQPN: q.attr.DestQPN,
		SendPosted: q.sq.tail.Load() - q.sq.head.Load(),
		SendBegun:  r.new - q.sq.head.Load(),
		RecvPosted: q.rq.tail.Load() - q.rq.head.Load(),
		NextPSN:    r.psn, UnackedPSN: r.una, TopPSN: r.sentTop,
		ReadsOut: r.reads, RetryLeft: r.retry, RNRLeft: r.rnrRetry, RNRWaiting: r.rnrWait,
		ExpectedPSN: s.psn, MSN: s.msn, Answers: s.fifo.n, LastDrop: q.lastDrop,
	}
}

// String prints the snapshot in one line.
func (s Snapshot) String() string {
	return fmt.Sprintf("qp 0x%06x %s peer 0x%06x psn 0x%06x una 0x%06x expects 0x%06x "+
		"sends %d receives %d last drop %s", s.QPN, s.State, s.DestQPN, s.NextPSN, s.UnackedPSN,
		s.ExpectedPSN, s.SendPosted, s.RecvPosted, s.LastDrop)
}
