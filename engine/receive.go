package engine

import (
	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// handle shows frames to the tap and to their QPs.
func (q *queue) handle(now roce.Time, frames []xsk.RxFrame) {
	q.watch.begin()
	for i := range frames {
		f := &frames[i]
		if q.tap != nil {
			q.tap.Frame(capture.Inbound, f.Head, f.Tail)
		}
		q.demux(now, f, false)
		if q.watch != nil {
			q.watch.received(q, f)
		}
	}
}

// handleForwarded hands frames to their QPs that another queue has shown to the tap.
func (q *queue) handleForwarded(now roce.Time, frames []xsk.RxFrame) {
	q.watch.begin()
	for i := range frames {
		q.demux(now, &frames[i], true)
		if q.watch != nil {
			q.watch.received(q, &frames[i])
		}
	}
}

// handleInbox handles what came by other queues, at most so many bursts, and returns how many
// frames that were.
func (q *queue) handleInbox(now roce.Time, bursts int) (handled int) {
	for range bursts {
		n := q.inbox.take(q.forwarded[:])
		if n == 0 {
			break
		}
		q.handleForwarded(now, q.forwarded[:n])
		q.inbox.release(n)
		handled += n
	}
	return handled
}

// demux decodes one frame and hands it to its QP, or forwards it to the queue of that. One
// that was forwarded already goes to QPs of this queue alone.
func (q *queue) demux(now roce.Time, f *xsk.RxFrame, forwarded bool) {
	q.fate = fate{}
	p := &q.packet
	if reason := p.Decode(f.Head, f.Tail); reason != wire.OK {
		q.fate.kind = fateRaw // unless the handler says otherwise
		if reason != wire.NotRoCE || !q.demuxEtherType(now, f, forwarded) {
			q.drops[reason]++
			q.dropped(reason.String())
		}
		return
	}
	if q.isForOtherHost(p) {
		q.drop(counter.DropNotLocal)
		return
	}
	if p.BTH.DestQP == wire.MulticastQP {
		q.demuxMulticast(now, p, f, forwarded)
		return
	}
	qp := q.device.qps.Lookup(p.BTH.DestQP)
	if qp == nil {
		q.drop(counter.DropUnknownQPN)
		return
	}
	if home := qp.home(); home != q {
		// A QP moves only when nothing is under way to it, so the number of one that was
		// forwarded to the wrong queue went to another QP meanwhile: the one that it was for
		// is gone.
		if forwarded {
			q.drop(counter.DropUnknownQPN)
		} else {
			q.forward(home, f)
		}
		return
	}
	if (q.lost || qp.core.Type() == roce.TypeUD) && !q.isLocal(p.Dst, p.Tags.VLAN()) {
		q.drop(counter.DropNotLocal)
		return
	}
	switch {
	case forwarded:
		q.stray(qp, int(f.Ref[0]))
	case q.strays != nil:
		q.strays.home(qp)
	}
	qp.core.AddRcvdBytes(f.Len())
	qp.core.HandlePacket(now, p)
	q.reschedule(qp)
}
