package engine

import (
	"errors"
	"time"

	"xroce/roce"
	"xroce/roce/counter"
)

// An outage is the time in which the interface is down: from when sending said so until it
// succeeds. What is in the transmit ring then stays there, and leaves when the interface is up
// again. Further frames go nowhere, so the ring holds no more than was under way, and QPs learn
// by their timers that the peer is out of reach. Of QPs that have ended meanwhile nothing may leave
// any more: then the ring is given up, and with it the link, see queue.lose.
type outage struct {
	failed int  // QPs that were in ERR when it began
	gone   bool // a QP was closed or reset since
}

// outageSleep is how soon to try again when the interface is down and nobody says that it came
// up, as a host that is a PortWatcher does.
const outageSleep = 100 * time.Millisecond

// errStale is why a link is made anew.
var errStale = errors.New("what waits in the transmit ring is of queue pairs that have ended")

// goDown begins an outage. The caller holds mu.
func (q *queue) goDown() {
	if q.outage != nil {
		return
	}
	q.count.Inc(counter.LinkDowned)
	q.link.Return(q.tx[q.txFrom:q.txHave])
	q.forgetFrames()
	q.outage = &outage{failed: q.failedQPs()}
	q.link.discarding = true
}

// comeUp ends an outage. The caller holds mu.
func (q *queue) comeUp() {
	if q.outage == nil {
		return
	}
	q.forgetFrames()
	q.outage = nil
	q.link.discarding = false
}

// noteGone notes that a QP was closed or reset. The caller holds mu.
func (q *queue) noteGone() {
	if q.outage != nil {
		q.outage.gone = true
	}
}

// stale reports whether the transmit ring may have frames of a QP that has ended since the
// interface went down. The caller holds mu.
func (q *queue) stale() bool {
	return q.outage != nil && q.link.Pending() &&
		(q.outage.gone || q.failedQPs() != q.outage.failed)
}

// failedQPs is how many QPs of the queue are in ERR.
func (q *queue) failedQPs() (n int) {
	for _, qp := range q.device.qps.All {
		if qp.home() == q && qp.core.State() == roce.StateErr {
			n++
		}
	}
	return n
}

// lookAgain is how soon the queue is to be driven again although nothing tells that there is
// something to do, negative for never. The caller holds mu.
func (q *queue) lookAgain() time.Duration {
	switch {
	case !q.ready.Empty():
		return blockedSleep
	case q.outage != nil:
		return outageSleep
	case q.link.Pending():
		return blockedSleep
	}
	return -1
}

// rests reports whether nothing can be sent or come, so that not even a driver that is to be busy
// has anything to do but wait. Who sends nothing learns of that from the host alone. The caller
// holds mu.
func (q *queue) rests() bool { return q.outage != nil || q.reset != nil || q.portDown }

// portState tells the queue whether the port is up. When it is, the queue tries again.
func (q *queue) portState(up bool) {
	q.lock()
	defer q.mu.Unlock()
	if q.portDown = !up; up {
		q.hurry()
		q.wake()
	}
}
