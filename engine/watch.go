package engine

import (
	"slices"
	"strings"
	"sync"

	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A PacketTap sees packets with what came of them: after the decision about one that came,
// before one that leaves is given to the link. It is called with a progress lock held, and
// of several queues at once: it must be quick, copy what it keeps, and be safe for
// concurrent use. A capture.Writer is one.
type PacketTap interface {
	Packet(p *capture.Packet)
}

// Watch shows every packet of the device to a tap from now on, until stop is called. After
// stop has returned the tap is called no more. There may be several taps. While there is
// none, a packet costs one comparison more. One to a multicast group is dropped when nobody
// took it; what members on other queues do with it is not awaited.
func (d *Device) Watch(t PacketTap) (stop func()) {
	w := &watcher{t}
	d.rewatch(func(list []*watcher) []*watcher { return append(list, w) })
	return sync.OnceFunc(func() {
		d.rewatch(func(list []*watcher) []*watcher {
			return slices.DeleteFunc(list, func(other *watcher) bool { return other == w })
		})
	})
}

// A watcher is a call of Watch.
type watcher struct{ PacketTap }

// rewatch changes the watchers of every queue.
func (d *Device) rewatch(change func([]*watcher) []*watcher) {
	for i, q := range d.queues {
		q.lock()
		if q.watch == nil {
			q.watch = &watch{number: max(i, q.link.Info().Queue)}
		}
		q.watch.taps = change(q.watch.taps)
		if len(q.watch.taps) == 0 {
			q.watch = nil
		}
		q.mu.Unlock()
	}
}

// A watch is what a queue shows to its taps, under the progress lock.
type watch struct {
	taps   []*watcher
	number int // of the queue
	shown  capture.Packet
	sent   wire.Packet // the one that leaves
	shows  bool        // a packet of this burst was shown
}

// begin begins a burst.
func (w *watch) begin() {
	if w != nil {
		w.shows = false
	}
}

// A fate is what came of a frame that no QP of the queue took. It is set where that is
// decided.
type fate struct {
	kind   fateKind
	reason string // why it had no effect, "" where it had
}

type fateKind uint8

const (
	fateTaken     fateKind = iota // by a QP
	fateDropped                   // and counted
	fateForwarded                 // another queue tells
	fateGroup                     // by the members of a multicast group
	fateRaw                       // by the handler of its EtherType
)

// drop counts a frame that is dropped before it came to a QP.
func (q *queue) drop(id counter.ID) {
	q.count.Inc(id)
	q.dropped(dropReason(id))
}

// dropped notes why a frame is dropped that was counted elsewhere.
func (q *queue) dropped(reason string) { q.fate = fate{kind: fateDropped, reason: reason} }

// dropReason is the name of a counter of drops as that of a reason.
func dropReason(id counter.ID) string { return strings.TrimPrefix(id.String(), "drop_") }

// accepted is the verdict of most that come.
var accepted = roce.VerdictAccepted.String()

// received shows a frame that came, after demux.
func (w *watch) received(q *queue, f *xsk.RxFrame) {
	i := &w.shown.Info
	// Field by field: a value that is made elsewhere and then moved is read before it is written
	// through, which takes longer than all of this.
	i.QPN, i.Peer, i.HasWR, i.WRID = 0, 0, false, 0
	i.Queue, i.Verdict, i.Reason = w.number, accepted, ""
	p := &q.packet
	switch q.fate.kind {
	case fateForwarded:
		return
	case fateGroup:
		i.Peer = p.DETH().SrcQP
	case fateTaken:
		if qp := q.device.qps.Lookup(p.BTH.DestQP); qp != nil {
			o := qp.core.Outcome(p)
			i.QPN, i.Peer = qp.core.Num(), qp.core.Peer()
			if p.Spec.Service == wire.ServiceUD {
				i.Peer = p.DETH().SrcQP
			}
			i.HasWR, i.WRID = o.HasWR, o.WRID
			switch o.Verdict {
			case roce.VerdictAccepted: // as it is said
			case roce.VerdictDropped, roce.VerdictRefused:
				i.Verdict, i.Reason = o.Verdict.String(), o.Reason.String()
			default:
				i.Verdict = o.Verdict.String()
			}
		}
	}
	if q.fate.reason != "" {
		i.Verdict, i.Reason = roce.VerdictDropped.String(), q.fate.reason
	}
	w.show(capture.Inbound, f.Head, f.Tail)
}

// leaves shows a frame that a QP wrote, or why it is dropped.
func (w *watch) leaves(qp *QP, frame []byte, dropped string) {
	i, s := &w.shown.Info, qp.core.Sent()
	i.Queue, i.QPN, i.Peer, i.HasWR, i.WRID = w.number, qp.core.Num(), 0, s.Request, s.WRID
	i.Verdict, i.Reason = "sent", ""
	switch qp.core.Type() {
	case roce.TypeRC, roce.TypeUC, roce.TypeXRCSend, roce.TypeXRCRecv:
		i.Peer = qp.core.Peer() // all its packets are for that one
	default:
		if w.sent.Decode(frame, nil) == wire.OK {
			i.Peer = w.sent.BTH.DestQP
		}
	}
	switch {
	case dropped != "":
		i.Verdict, i.Reason = roce.VerdictDropped.String(), dropped
	case s.Again:
		i.Verdict = "sent again"
	}
	w.show(capture.Outbound, frame, nil)
}

// leavesNative shows a frame that a native port wrote, for which there is no QP.
func (w *watch) leavesNative(frame []byte) {
	i := &w.shown.Info
	i.Queue, i.QPN, i.Peer, i.HasWR, i.WRID = w.number, 0, 0, false, 0
	i.Verdict, i.Reason = "sent", ""
	w.show(capture.Outbound, frame, nil)
}

// show shows a frame, of which Info is known, to all taps, and keeps nothing of it.
func (w *watch) show(dir capture.Direction, head, tail []byte) {
	p := &w.shown
	p.Dir, p.Head, p.Tail = dir, head, tail
	p.Together, w.shows = w.shows, true
	for _, t := range w.taps {
		t.Packet(p)
	}
	p.Head, p.Tail = nil, nil
}
