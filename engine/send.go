package engine

import (
	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/xsk"
)

// send lets the ready QPs write packets, in the order of the scheduler, until frames or
// work run out.
func (q *queue) send(now roce.Time) bool {
	if q.ready.Empty() {
		if q.link.Pending() {
			q.flush()
		}
		return false
	}
	if q.holds {
		q.flush() // so that a QP may move
		return false
	}
	if q.outage != nil {
		q.flush() // it may be over
	}
	frames := q.reserve()
	q.loop.members = len(q.device.groups.load()) > 0
	used := 0
	for used < len(frames) && !q.loop.full() {
		qp := q.ready.Dequeue()
		if qp == nil {
			break
		}
		n, more := q.serve(now, qp, frames[used:])
		used += n
		q.armTimer(qp)
		if more {
			q.enqueue(qp)
		}
	}
	q.transmit(now, frames[:used])
	return used > 0 || q.loop.n > 0
}

// transmit gives frames that were reserved first to the link, and takes note of when packets
// were written.
func (q *queue) transmit(now roce.Time, frames []xsk.TxFrame) {
	if len(frames) > 0 || q.loop.n > 0 {
		q.txDelay.wrote(now)
	}
	if len(frames) > 0 {
		q.link.Transmit(frames)
		q.txFrom += len(frames)
	}
	if len(frames) > 0 || q.link.Pending() {
		q.flush()
	}
}

// How much a QP that is about to end may still send, in bytes of its quanta, and how often frames
// are waited for that the kernel has: nobody else makes progress meanwhile.
const (
	owedTurns = 256 // 4 MiB
	owedTries = 200
)

// sendOwed lets a QP that is about to end send what it owes, before its turn: it forgets that,
// and the peer would wait in vain for the acknowledgement of what the caller has seen already.
// An acknowledgement may be behind the response to a READ, and that behind a full ring.
func (q *queue) sendOwed(qp *QP) {
	q.ready.Remove(&qp.entity)
	tries := 0
	for turns := 0; turns < owedTurns && q.err == nil && qp.core.Responding(); {
		frames := q.reserve()
		if len(frames) == 0 {
			if tries++; tries > owedTries || q.outage != nil {
				return
			}
			q.flush() // which brings frames home
			continue
		}
		if !qp.entity.MaySend(true) {
			qp.entity.Renew()
			turns++
		}
		now := q.now()
		used, more := q.serve(now, qp, frames)
		q.transmit(now, frames[:used])
		if !more || q.loop.full() {
			return
		}
	}
}

// reserve returns the frames that there are to write to, and sees to it that they are
// half a burst at least, if the link has as many. To fill up each time would be to move
// many of them for each short answer.
func (q *queue) reserve() []xsk.TxFrame {
	if q.txHave-q.txFrom < burst/2 {
		q.txHave = copy(q.tx[:], q.tx[q.txFrom:q.txHave])
		q.txFrom = 0
		q.txHave += q.link.Reserve(q.tx[q.txHave:])
	}
	return q.tx[q.txFrom:q.txHave]
}

// serve lets a QP write packets until its quantum is used up or the frames run out. It
// returns how many are for the link, and whether there may be more.
func (q *queue) serve(now roce.Time, qp *QP, frames []xsk.TxFrame) (used int, more bool) {
	q.watch.begin()
	need := qp.core.FrameRoom()
	for used < len(frames) && !q.loop.full() && qp.entity.MaySend(qp.core.Responding()) {
		f := &frames[used]
		packet := q.roomFor(need, f.Data)
		if f.Len = qp.core.NextPacket(now, packet); f.Len == 0 {
			return used, false
		}
		packet = packet[:f.Len]
		qp.entity.Charge(f.Len)
		raw := qp.core.Type() == roce.TypeRawPacket // never to our own QPs
		if q.lost && !raw && !q.mayLeave(packet) {
			q.count.Inc(counter.DropNoGID)
			if q.watch != nil {
				q.watch.leaves(qp, packet, dropReason(counter.DropNoGID))
			}
			continue
		}
		if q.tap != nil {
			q.tap.Frame(capture.Outbound, packet, nil)
		}
		if q.watch != nil {
			q.watch.leaves(qp, packet, "")
		}
		if (raw || !q.loop.put(packet)) && q.fill(f, packet) {
			used++
		}
	}
	return used, true
}

// roomFor returns where a packet is written that may need so many bytes: to a frame of the link,
// or, where that is shorter, to memory aside. It is when the link was made anew after the MTU fell
// below the path MTU, and on a queue whose link is still that of a lower MTU.
func (q *queue) roomFor(need int, frame []byte) []byte {
	if len(frame) >= need {
		return frame
	}
	if q.aside == nil {
		q.aside = make([]byte, roce.LongestFrame)
	}
	return q.aside
}

// fill puts a packet that roomFor had written aside into the frame that it is for. One that does
// not fit is lost, as it would be on the way, and fill reports false.
func (q *queue) fill(f *xsk.TxFrame, packet []byte) bool {
	switch {
	case &packet[0] == &f.Data[0]:
	case len(packet) > len(f.Data):
		q.link.discards++
		return false
	default:
		copy(f.Data, packet)
	}
	return true
}

// flush gives the transmitted frames to the kernel.
func (q *queue) flush() {
	if q.stale() && q.lose(errStale) {
		return
	}
	if err := q.link.Flush(); err != nil {
		q.linkError(err)
		return
	}
	q.comeUp()
}
