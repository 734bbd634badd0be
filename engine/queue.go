package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"xroce/engine/capture"
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

// heldPackets is how many early packets may wait, of all QPs together.
const heldPackets = 1024

// A queue moves packets between one link and the QPs that live on it.
//
// One round of progress, in the order in which packets meet it:
//
//	doorbells  QPs that were posted to become ready
//	receive    a burst of frames, and what QPs here sent to each other: decode,
//	           find the QP, hand over, give back
//	deadlines  QPs whose timer expired; before one of them takes anything for lost,
//	           the frames that came by then are received, all of them
//	send       ready QPs in turn write packets into free frames; one flush
//
// In direct mode a round that received ends there, and what its caller then posts is
// sent in a round of its own.
//
// mu is the progress lock; everything below it is touched only with it held,
// except what says otherwise.
type queue struct {
	link  xsk.Link
	clock Clock
	tap   Tap
	spins bool // the clock moves by itself
	// direct says that progress is made by whoever polls.
	direct bool
	qps    *roce.NumberTable[QP] // looked up without the lock
	holds  *roce.HoldPool        // where early packets wait, under the progress lock

	// bell is where posters leave their QP; see ring.
	bell struct {
		sync.Mutex
		count atomic.Int32
		qps   []*QP
		spare []*QP
	}
	sleeping atomic.Bool // the driver is in, or about to enter, link.Wait
	dead     atomic.Bool // err is set
	// settling are those who wait for the progress lock in Device.settle.
	settling atomic.Int32

	mu     sync.Mutex
	ready  sched.DRR[QP]
	timers sched.Wheel[QP]
	sent   handover
	rx     [burst]xsk.RxFrame
	tx     [burst]xsk.TxFrame
	txFrom int // tx has reserved frames from here
	txHave int // up to here
	own    loopback
	packet wire.Packet
	groups map[wire.GID][]*QP // members of multicast groups, nil for none
	raw    map[uint16]*QP     // RAW_PACKET QPs by EtherType, nil for none
	// local are the addresses of the device. It is replaced and never changed.
	local map[host.Addr]struct{}
	// lost says that the device once had an address that is not in local.
	lost bool
	// moderated are the CQs whose events may be held back.
	moderated []*CQ
	paging    *paging
	err       error // why the link is of no more use
	onFail    func(error)

	count counter.Set
	drops [wire.NumReasons]uint64
	down  bool // the interface was down at the last flush
	idle  uint // rounds in which nothing was to be done
	held  bool // the last round received and, in direct mode, left sending to the next
}

func newQueue(link xsk.Link, mac [6]byte, o *Options) *queue {
	_, spins := o.Clock.(systemClock)
	return &queue{
		own:  loopback{mac: mac, room: link.Info().MaxFrame},
		link: link, spins: spins, clock: o.Clock, tap: o.Tap, direct: o.Direct,
		// QPNs 0 and 1 are those of management, 0xffffff that of multicast;
		// rxe gives none below 16 either.
		qps:   roce.NewNumberTable[QP](firstQPN, wire.MulticastQP-1, o.Rand),
		holds: roce.NewHoldPool(heldPackets, link.Info().MaxFrame),
	}
}

// ring tells the queue that qp has new work. It is safe for concurrent use.
func (q *queue) ring(qp *QP) {
	if !qp.rung.CompareAndSwap(false, true) {
		return
	}
	q.bell.Lock()
	q.bell.qps = append(q.bell.qps, qp)
	q.bell.count.Store(int32(len(q.bell.qps)))
	q.bell.Unlock()
	if q.sleeping.Load() {
		q.link.Wake()
	}
	if q.dead.Load() {
		// Nobody drives any more: flush on the poster's thread.
		q.mu.Lock()
		q.progress()
		q.mu.Unlock()
	}
}

// wake makes whoever drives the queue look at it again, after something changed
// that no doorbell tells. Unlike ring it cannot rely on sleeping: who drives looks
// at the deadlines first and announces its sleep afterwards. The caller holds mu,
// so the link is open.
func (q *queue) wake() {
	if q.err == nil {
		q.link.Wake()
	}
}

// answer takes the doorbells and reports whether there were any. The caller holds mu.
func (q *queue) answer() bool {
	if q.bell.count.Load() == 0 {
		return false
	}
	q.bell.Lock()
	rung := q.bell.qps
	q.bell.qps, q.bell.spare = q.bell.spare[:0], rung
	q.bell.count.Store(0)
	q.bell.Unlock()
	for i, qp := range rung {
		// A post after this rings again, one before it is seen by the send
		// step of this round.
		qp.rung.Store(false)
		q.enqueue(qp)
		rung[i] = nil
	}
	return true
}

// progress makes one round and reports whether there was anything to do. The
// caller holds mu.
func (q *queue) progress() bool {
	rung := q.answer()
	if q.err != nil {
		return q.flushReady(q.clock.Now())
	}
	if q.held && rung {
		// The caller answered what it saw. That leaves before anything else is
		// looked at.
		q.held = false
		q.send(q.now())
		return true
	}
	own, n := q.own.take(), q.link.Receive(q.rx[:])
	if len(own) == 0 && n == 0 && q.idles() {
		return false
	}
	now := q.now()
	q.paging.tick(now)
	q.handle(now, own)
	if n > 0 {
		q.handle(now, q.rx[:n])
		q.link.Release(q.rx[:n])
	}
	expired, late := q.expire(now)
	received := n > 0 || len(own) > 0 || late
	notified := q.notifyDue(now)
	if q.direct && received && !q.held {
		// Let the caller see what came before anything is sent: its own reply
		// then leaves with our acknowledgement, in one system call.
		q.held = true
		return true
	}
	q.held = false
	sent := q.send(now)
	return received || expired || notified || sent
}

// idles reports whether a round in which nothing came may end here. Reading the
// clock is most of such a round, and a frame that comes meanwhile waits for its
// end, so the timers are looked at in every eighth alone: some hundred nanoseconds
// late at most. A clock that is not the machine's moves by rounds, and gets all.
func (q *queue) idles() bool {
	if !q.ready.Empty() || !q.spins || q.link.Pending() {
		return false
	}
	q.idle++
	return q.idle%8 != 0
}

// handle shows frames to the tap and to their QPs.
func (q *queue) handle(now roce.Time, frames []xsk.RxFrame) {
	for i := range frames {
		f := &frames[i]
		if q.tap != nil {
			q.tap.Frame(capture.Inbound, f.Head, f.Tail)
		}
		q.demux(now, f)
	}
}

// demux decodes one frame and hands it to its QP.
func (q *queue) demux(now roce.Time, f *xsk.RxFrame) {
	p := &q.packet
	if reason := p.Decode(f.Head, f.Tail); reason != wire.OK {
		if reason != wire.NotRoCE || !q.demuxRaw(now, f) {
			q.drops[reason]++
		}
		return
	}
	if p.BTH.DestQP == wire.MulticastQP {
		q.demuxMulticast(now, p)
		return
	}
	qp := q.qps.Lookup(p.BTH.DestQP)
	if qp == nil {
		q.count.Inc(counter.DropUnknownQPN)
		return
	}
	if (q.lost || qp.machine.Type() == roce.TypeUD) && !q.isLocal(p.Dst, p.VLANID()) {
		q.count.Inc(counter.DropNotLocal)
		return
	}
	q.count.Add(counter.RcvdBytes, uint64(f.Len()))
	qp.machine.HandlePacket(now, p)
	q.touched(qp)
}

// enqueue puts qp on the active list of the scheduler. One that owes its peer an answer
// is urgent.
func (q *queue) enqueue(qp *QP) {
	if !qp.closed {
		q.ready.Enqueue(&qp.turn, qp.machine.Answering())
	}
}

// touched notes that qp may want to send and may have a new deadline.
func (q *queue) touched(qp *QP) {
	q.enqueue(qp)
	q.await(qp)
}

// await arms the timer of qp.
func (q *queue) await(qp *QP) {
	if at, ok := qp.machine.NextDeadline(); ok {
		q.timers.Arm(&qp.timer, at)
	}
}

// send lets the ready QPs write packets, each in its turn, until frames or work
// run out.
func (q *queue) send(now roce.Time) bool {
	if q.ready.Empty() {
		if q.link.Pending() {
			q.flush()
		}
		return false
	}
	frames := q.reserve()
	used := 0
	for used < len(frames) && !q.own.full() {
		qp := q.ready.Dequeue()
		if qp == nil {
			break
		}
		n, more := q.turn(now, qp, frames[used:])
		used += n
		q.await(qp)
		if more {
			q.enqueue(qp)
		}
	}
	if used > 0 || q.own.n > 0 {
		q.sent.wrote(now)
	}
	if used > 0 {
		q.link.Transmit(frames[:used])
		q.txFrom += used
	}
	if used > 0 || q.link.Pending() {
		q.flush()
	}
	return used > 0 || q.own.n > 0
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

// turn lets a QP write packets until its turn is over or the frames run out. It
// returns how many are for the link, and whether there may be more.
func (q *queue) turn(now roce.Time, qp *QP, frames []xsk.TxFrame) (used int, more bool) {
	for used < len(frames) && !q.own.full() && qp.turn.MaySend(qp.machine.Answering()) {
		f := &frames[used]
		if f.Len = qp.machine.NextPacket(now, f.Data); f.Len == 0 {
			return used, false
		}
		qp.turn.Charge(f.Len)
		raw := qp.machine.Type() == roce.TypeRawPacket // never to our own QPs
		if q.lost && !raw && !q.mayLeave(f.Data[:f.Len]) {
			q.count.Inc(counter.DropNoGID)
			continue
		}
		if q.tap != nil {
			q.tap.Frame(capture.Outbound, f.Data[:f.Len], nil)
		}
		if raw || !q.own.put(f.Data[:f.Len], len(q.groups) > 0) {
			used++
		}
	}
	return used, true
}

// flush gives the transmitted frames to the kernel.
func (q *queue) flush() {
	if err := q.link.Flush(); err != nil {
		q.linkError(err)
		return
	}
	q.down = false
}

// linkError takes an error of the link. An interface that is down keeps what
// is queued and comes back; any other error ends the queue and all its QPs.
func (q *queue) linkError(err error) {
	if !errors.Is(err, unix.ENETDOWN) {
		q.fail(fmt.Errorf("engine: the link failed: %w", err))
		return
	}
	if !q.down {
		q.count.Inc(counter.LinkDowned)
	}
	q.down = true
}

// fail ends all QPs because the link is gone. The caller holds mu.
func (q *queue) fail(err error) {
	if q.err != nil {
		return
	}
	q.err = err
	q.dead.Store(true)
	q.onFail(err)
	now := q.clock.Now()
	for _, qp := range q.qps.All {
		// From any state to ERR: this cannot be refused.
		_ = qp.machine.Modify(now, &roce.Attr{State: roce.StateErr}, roce.AttrState)
	}
	q.unmoderate()
}

// flushReady lets QPs in ERR flush what was posted to them. They send nothing,
// so they need no frame.
func (q *queue) flushReady(now roce.Time) bool {
	any := false
	for qp := q.ready.Dequeue(); qp != nil; qp = q.ready.Dequeue() {
		qp.machine.NextPacket(now, nil)
		any = true
	}
	return any
}

// forget takes a QP out of everything. The caller holds mu.
func (q *queue) forget(qp *QP) {
	q.timers.Remove(&qp.timer)
	q.ready.Remove(&qp.turn)
}

// close gives the link back. The caller holds mu, and nobody drives any more.
func (q *queue) close() error {
	q.link.Return(q.tx[q.txFrom:q.txHave])
	q.txFrom, q.txHave = 0, 0
	return q.link.Close()
}
