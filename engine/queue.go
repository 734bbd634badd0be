package engine

import (
	"sync"
	"sync/atomic"

	"xroce/engine/host"
	"xroce/engine/internal/sched"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// burst is how many frames are taken or given at once: enough to spread the cost
// of a system call, few enough to keep answers prompt.
const burst = 64

// earlyPackets is how many early packets may wait, of all QPs together.
const earlyPackets = 1024

// A queue moves packets between one link and the QPs that live on it.
//
// One round of progress, in the order in which packets meet it:
//
//	doorbells  QPs that were posted to become ready
//	receive    a burst of frames, and what QPs here sent to each other: decode,
//	           find the QP, hand over, give back
//	deadlines  QPs whose timer expired; before one of them takes anything for lost,
//	           the frames that came by then are received, all of them
//	send       ready QPs write packets into free frames; one flush
//
// A round of a caller that received ends there, in direct mode and where the caller replies
// mostly, and what it then posts is sent in a round of its own.
//
// A device may have several. A QP lives on one of them, and a frame for it that comes
// to another one is forwarded to the inbox of its own.
//
// mu is the progress lock; everything below it is touched only with it held,
// except what says otherwise.
type queue struct {
	device *Device
	index  int // in Device.queues
	link   *linkSlot
	clock  Clock
	tap    Tap
	spins  bool // the clock moves by itself
	// direct says that progress is made by whoever polls.
	direct bool
	// common is what the queue pairs have in common: early packets wait there, under the
	// progress lock.
	common roce.Common

	doorbells doorbells
	inbox     inbox
	sleeping  atomic.Int32 // those who drive and are in, or about to enter, link.Wait
	dead      atomic.Bool  // err is set
	callers   atomic.Int32 // those who wait in lock
	turns     turns        // who drives, in the background mode
	members   int          // QPs that live here, under the device's life lock

	mu      sync.Mutex
	at      roce.Time // when it looked at the clock last
	ready   sched.DRR[QP]
	timers  sched.Wheel[QP]
	txDelay txDelay
	rx      [burst]xsk.RxFrame
	// forwarded are frames that another queue handed over.
	forwarded [burst]xsk.RxFrame
	handover  handover // what this one did
	strays    *strays  // nil where there is no other queue
	holds     bool     // nothing is sent, because a QP is about to move away
	tx        [burst]xsk.TxFrame
	txFrom    int // tx has reserved frames from here
	txHave    int // up to here
	loop      loopback
	aside     []byte // for packets that may be longer than a frame, nil while there was none
	packet    wire.Packet
	// local are the addresses of the device. It is replaced and never changed.
	local map[host.Addr]struct{}
	// stations are the MAC addresses that frames for us have, by VLAN. It is replaced, too.
	stations map[station]struct{}
	// lost says that the device once had an address that is not in local.
	lost bool
	// moderated are the CQs with moderation: their events may come later.
	moderated []*CQ
	err       error // why the link is of no more use

	watch *watch // who watches packets, nil while nobody does
	fate  fate   // of the frame under way

	count counter.Set
	// counted are the QPs that count by themselves, nil while there was none.
	counted map[*QP]*counter.Set
	drops   [wire.NumReasons]uint64
	// outage is the time in which the interface is down, nil while it is not.
	outage *outage
	// portDown says that the host has told so of the port, which may be before anybody sends.
	portDown bool
	// reset is how the link is made anew, nil while it works.
	reset *linkReset
	// past are the counters of links that were replaced.
	past [len(linkCounters)]uint64
	idle uint // rounds in which nothing was to be done
	// sendDeferred says that the last round received and, made by a caller, left sending to
	// the next.
	sendDeferred bool
	reply        reply
	// sleepsUntil is until when who sleeps in the link does, at most.
	sleepsUntil roce.Time
}

func newQueue(d *Device, index int, link xsk.Link, mac [6]byte) *queue {
	o := &d.options
	_, spins := o.Clock.(systemClock)
	q := &queue{
		loop:   loopback{mac: mac, room: link.Info().MaxFrame},
		device: d, index: index, link: newLinkSlot(link), spins: spins, clock: o.Clock, tap: o.Tap,
		direct: o.Direct,
		common: roce.Common{
			Keys: d.keys, PKeys: o.PKeys,
			EarlyPool: roce.NewEarlyPool(earlyPackets, link.Info().MaxFrame),
		},
	}
	q.turns.init()
	return q
}

// idleRounds is how many rounds in which nothing comes look at the timers once.
const idleRounds = 8

// enqueue puts qp on the active list of the scheduler. One that owes its peer an answer
// is urgent.
func (q *queue) enqueue(qp *QP) {
	if !qp.closed {
		q.ready.Enqueue(&qp.entity, qp.core.Responding())
	}
}

// reschedule notes that qp may want to send and may have a new deadline.
func (q *queue) reschedule(qp *QP) {
	q.enqueue(qp)
	q.armTimer(qp)
}

// armTimer arms the timer of qp.
func (q *queue) armTimer(qp *QP) {
	if at, ok := qp.core.NextDeadline(); ok {
		q.timers.Arm(&qp.timer, at)
	}
}

// forget takes a QP out of everything. The caller holds mu.
func (q *queue) forget(qp *QP) {
	q.timers.Remove(&qp.timer)
	q.ready.Remove(&qp.entity)
}

// close gives the link back. The caller holds mu, and nobody drives any more.
func (q *queue) close() error {
	q.link.Return(q.tx[q.txFrom:q.txHave])
	q.txFrom, q.txHave = 0, 0
	return q.link.Close()
}
