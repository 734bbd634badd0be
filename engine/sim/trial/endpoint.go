package trial

import (
	"bytes"
	"errors"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// receiveID marks the WRID of a receive.
const receiveID = 1 << 63

// A receive is a posted receive.
type receive struct {
	id    uint64
	slot  *slot
	arena *arena // that the slot is of
	at    int
	size  int
}

// An endpoint is one end of a connection: a queue pair and its application,
// with the model of both. What is in life ends with the queue pair.
type endpoint struct {
	w     *world
	conn  *conn
	side  int
	node  *node
	peer  *endpoint
	arena *arena

	todo     int // requests that the application has still to post
	ids      uint64
	nextPost roce.Time

	life
}

// A life is what one queue pair of an endpoint went through.
type life struct {
	qp     *engine.QP
	info   engine.Endpoint
	sendCQ *queue
	recvCQ *queue

	shared *sharedQueue // where receives come from instead of recvs, may be nil

	local, writable, readable *engine.MR
	ticket                    ticket

	sends       []*op      // posted and not known to be complete, in order
	recvs       []*receive // posted and not complete, in order
	expect      []*op      // of the peer: messages that must complete receives here
	failed      []*op      // completed with an error, or never
	failedRecvs []*receive // likewise

	heard      []*op // of the peer, on a UC: all that it sent to receives here
	lost       int   // of these, that did not arrive
	harmIn     int   // frames to this node that had faults
	movedIn    int   // of these, those that came behind others
	shuffled   bool  // one of these arrived twice, or out of order
	noRecvOnce bool  // a message may have found no receive

	paidUntil roce.Time // when the rate limit allows the next request

	wordLife map[*word]int // which life of each word this one is
	lastWQE  int           // events that no receive will be taken any more

	before     roce.Snapshot // as it was when last looked at
	progressAt roce.Time     // when the requester last made progress
	stallSince roce.Time     // when it last waited because the peer had no receive
	noRecvAt   roce.Time     // when there was last no receive
	notReadyAt roce.Time     // when it last sent an RNR NAK
	notReady   int           // how many it sent
	harm       uint64        // frames of this connection that had faults
	harmSeen   uint64        // its value when last looked at
	harmAt     uint64        // its value at progressAt, at the latest

	dead          bool      // in ERR, or destroyed
	diedAt        roce.Time // when
	diedHarm      uint64    // harm since the last progress, when it died
	diedAfter     roce.Time // how long after the last progress
	diedRefused   bool      // the peer had no receive since
	diedLate      bool      // it or the peer was frozen since the last progress
	sendStatus    roce.Status
	recvStatus    roce.Status
	excused       string // the cause that lets an error be
	forced        bool   // the application moved it to ERR
	destroyed     bool   // the application destroyed it, without completions
	deregisterAt  []byte // memory as it was when its regions were taken away
	overran       bool   // a CQ lost completions
	doomed        bool   // a request that must fail was posted
	smallest      int    // the shortest receive that was posted
	undone        int    // requests that the device had not completed, before
	drainedAtLast bool   // the last look at the CQs brought nothing
}

// deregistered reports whether regions of the endpoint were taken away.
func (e *endpoint) deregistered() bool { return e.deregisterAt != nil }

// create makes the queue pair with all it needs, in state INIT.
func (e *endpoint) create() {
	k, w, n := e.conn.config, e.w, e.node
	e.life = life{smallest: k.MaxSize + 8}
	receives := k.RecvDepth
	if k.SRQ[e.side] {
		e.shared = n.shared
		receives = n.shared.slots()
	}
	depth := k.SendDepth + receives
	if !e.conn.extended() {
		e.recvCQ = n.queue(max(k.CQDepth, 1), depth, k.CQDepth > 0)
		e.sendCQ = e.recvCQ
	}
	if k.SplitCQ && !e.conn.extended() || e.conn.extended() && e.side == 0 {
		e.sendCQ = n.queue(max(k.CQDepth, 1), k.SendDepth, k.CQDepth > 0)
	}
	register := func(from, to pool, access mem.Access) *engine.MR {
		mr, err := n.device.RegMR(n.pd, e.arena.region(from, to), access)
		w.must(err)
		return mr
	}
	e.local = register(poolSource, poolTarget, mem.LocalWrite)
	e.writable = register(poolWritable, poolWritable,
		mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead|mem.FlushGlobal)
	e.readable = register(poolReadable, poolReadable, mem.RemoteRead)
	e.issue()
	qp, err := n.device.CreateQP(n.pd, e.init())
	w.must(err)
	e.qp = qp
	w.must(qp.Init(mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic | mem.FlushGlobal))
	gid := 1
	if w.config.IPv6 {
		gid = 0
	}
	e.info, err = n.device.Endpoint(qp, gid)
	w.must(err)
	if e.conn.lives == 0 {
		e.info.PSN = k.PSN[e.side]
	}
	e.progressAt, e.noRecvAt = w.clock.Now(), w.clock.Now()
}

// init says what the queue pair is.
func (e *endpoint) init() engine.QPInit {
	k := e.conn.config
	if e.receives() {
		x := e.node.device.OpenXRCD()
		e.shared, e.node.listens = newExtendedQueue(e, x), true
		return engine.QPInit{Type: roce.TypeXRCRecv, XRCD: x}
	}
	init := engine.QPInit{
		Type: k.Type, SendCQ: e.sendCQ.cq, MaxSendWR: k.SendDepth,
		MaxRecvWR: k.RecvDepth, Window: k.Window, SignalAll: k.SignalAll,
		MaxInline: k.MaxInline, Extensions: k.Extensions[e.side],
	}
	if e.recvCQ != nil {
		init.RecvCQ = e.recvCQ.cq
	}
	if e.shared != nil {
		init.SRQ = e.shared.srq
	}
	return init
}

// connect brings the queue pair to RTS.
func (e *endpoint) connect() {
	k := e.conn.config
	gid := 1
	if e.w.config.IPv6 {
		gid = 0
	}
	o := engine.ConnectOptions{
		SGIDIndex: gid, PathMTU: k.PathMTU, HopLimit: 64, Timeout: k.Timeout,
		RetryCnt: k.RetryCnt, RNRRetry: k.RNRRetry, MinRNRTimer: k.MinRNR,
		MaxRdAtomic: k.MaxRd, RateLimit: k.RateLimit, Exact: true,
	}
	if e.receives() {
		o.RateLimit = 0 // it sends no requests
	}
	e.w.must(e.qp.Connect(e.w.ctx, e.info, e.peer.info, o))
	e.before = e.qp.Snapshot()
}

// addr is the address by which a region, whose first pool is given, names a
// byte of the arena.
func (e *endpoint) addr(mr *engine.MR, first pool, off int) uint64 {
	return mr.Addr() + uint64(off-e.arena.bound[first])
}

// pieces names memory of the local region in one or more pieces.
func (e *endpoint) pieces(off, n int) []roce.SGE {
	addr, lkey := e.addr(e.local, poolSource, off), e.local.LKey()
	if n == 0 && one(e.w.rng, 2) {
		return nil
	}
	var list []roce.SGE
	for range e.w.rng.IntN(3) {
		part := e.w.rng.IntN(n + 1)
		list = append(list, roce.SGE{Addr: addr, Length: uint32(part), LKey: lkey})
		addr, n = addr+uint64(part), n-part
	}
	return append(list, roce.SGE{Addr: addr, Length: uint32(n), LKey: lkey})
}

// act is the application's turn: it posts what it has to. It reports whether it
// did anything.
func (e *endpoint) act() bool {
	if e.dead || e.qp == nil {
		return false
	}
	acted := e.reissue()
	if e.shared != nil {
		acted = e.shared.fill() || acted
	}
	own := e.shared == nil && !e.conn.extended()
	for own && len(e.recvs) < e.conn.config.RecvDepth && e.postReceive() {
		acted = true
	}
	for !e.conn.breaking && e.todo > 0 && e.w.clock.Now() >= e.nextPost && e.postSend() {
		acted = true
		if gap := e.conn.config.Gap; gap > 0 && !e.w.quiet && !one(e.w.rng, 3) {
			e.nextPost = e.w.clock.Now() + roce.Time(e.w.rng.Int64N(int64(2*gap)))
		}
	}
	return acted
}

// postReceive posts a receive, and reports whether there was memory for it.
func (e *endpoint) postReceive() bool {
	k, r := e.conn.config, e.w.rng
	s := e.arena.pick(poolReceive, r.IntN(8))
	if s == nil {
		return false
	}
	if e.qp.Snapshot().RecvPosted == 0 {
		e.noRecvAt = e.w.clock.Now()
	}
	rv := &receive{
		id: receiveID | e.ids, slot: s, arena: e.arena, size: k.MaxSize, at: r.IntN(9),
	}
	if k.SmallRq > 0 && !e.w.quiet && r.Float64() < k.SmallRq {
		rv.size = r.IntN(k.MaxSize)
	}
	err := e.qp.PostRecv(&roce.RecvWR{WRID: rv.id, SGList: e.pieces(s.off+rv.at, rv.size)})
	if err != nil {
		e.w.fail(Conservation, "%s: receive %d of %d was refused: %v", e, len(e.recvs)+1,
			k.RecvDepth, err)
		return false
	}
	e.ids++
	s.taken = true
	e.smallest = min(e.smallest, rv.size)
	e.recvs = append(e.recvs, rv)
	return true
}

// sizeOf draws the size of a message.
func (e *endpoint) sizeOf() int {
	r, most, mtu := e.w.rng, e.conn.config.MaxSize, e.conn.config.PathMTU.Bytes()
	n := r.IntN(most + 1)
	if one(r, 2) {
		n = choose(r, 0, 1, 3, 4, 63, 64, mtu-1, mtu, mtu+1, 2*mtu, most)
	} else if one(r, 2) {
		n = r.IntN(min(most, 200) + 1)
	}
	return min(n, most)
}

// newOp draws a request and claims its memory. It returns nil when there is
// none left now.
func (e *endpoint) newOp() *op {
	k, r := e.conn.config, e.w.rng
	total := 0
	for _, weight := range k.Weights {
		total += weight
	}
	row := 0
	for n := r.IntN(total); n >= k.Weights[row]; row++ {
		n -= k.Weights[row]
	}
	o := &op{
		operation: &operations[row], id: e.ids, size: e.sizeOf(), value: r.Uint32(),
		key: messageKey(e.conn.index, e.side, e.ids), signaled: r.Float64() >= k.Unsig,
		afterwards: e.doomed,
	}
	if o.fixed != 0 {
		o.size = o.fixed
	}
	if !o.claim(e, o) {
		return nil
	}
	o.inline = o.inlines && o.size <= k.MaxInline && k.MaxInline > 0 && !one(r, 4)
	if k.Bad > 0 && !e.w.quiet && r.Float64() < k.Bad {
		o.bad = e.spoil(o)
	}
	return o
}

// request makes the work request of an op.
func (e *endpoint) request(o *op) *roce.SendWR {
	wr := &roce.SendWR{WRID: o.id, Opcode: o.code, InvalidateKey: o.key32}
	if e.conn.extended() {
		wr.RemoteSRQN = e.peer.shared.srq.SRQN()
	}
	switch {
	case o.bare:
		o.flush(e, wr)
	case o.inline && o.bad == fine:
		wr.Flags = roce.SendInline
		wr.Inline = bytes.Clone(e.arena.mem[o.local.off+o.localAt:][:o.size])
	default:
		wr.SGList = e.pieces(o.local.off+o.localAt, o.size)
	}
	if o.signaled {
		wr.Flags |= roce.SendSignaled
	}
	if one(e.w.rng, 8) {
		wr.Flags |= roce.SendFence
		o.fence = true
	}
	if one(e.w.rng, 8) {
		wr.Flags |= roce.SendSolicited
	}
	if o.imm {
		wr.Imm = o.value
	}
	if o.word {
		u, ws := o.at, e.peer.node.words
		wr.CompareAdd, wr.Swap = u.add, u.swap
		if o.code == roce.OpCmpSwap {
			wr.CompareAdd = u.compare
		}
		wr.RKey, wr.RemoteAddr = ws.mr.RKey(), ws.mr.Addr()+uint64(u.word.at)
	}
	if o.distant != nil {
		mr, first := e.peer.writable, poolWritable
		if o.gets && o.distant.off >= e.peer.arena.bound[poolReadable] {
			mr, first = e.peer.readable, poolReadable
		}
		wr.RKey = mr.RKey()
		if o.distant.off >= e.peer.arena.bound[poolTicket] {
			mr, first = e.peer.ticket.mr, poolTicket
			wr.RKey = e.peer.ticket.key
		}
		wr.RemoteAddr = e.peer.addr(mr, first, o.distant.off+o.distantAt)
		if o.size == 0 && !o.bare && one(e.w.rng, 2) {
			// A range of nothing needs neither key nor address (IBA C9-88).
			wr.RKey, wr.RemoteAddr = e.w.rng.Uint32(), e.w.rng.Uint64()
		}
	}
	if o.bad != fine {
		o.spoiled(e, wr)
	}
	return wr
}

// postSend posts a request, and reports whether there was room and memory for it.
func (e *endpoint) postSend() bool {
	if len(e.sends) >= e.conn.config.SendDepth {
		return false
	}
	o := e.newOp()
	if o == nil {
		return false
	}
	wr := e.request(o)
	if err := e.qp.PostSend(wr); err != nil {
		e.w.fail(Conservation, "%s: request %d of %d was refused: %v", e, len(e.sends)+1,
			e.conn.config.SendDepth, err)
		return false
	}
	clear(wr.Inline) // it was copied
	e.w.say("%s: post %s %d of %d bytes, %s", e, o.name, o.id, o.size, o.bad)
	if len(e.sends) == 0 {
		e.progressed()
	}
	e.ids++
	e.todo--
	e.doomed = e.doomed || o.bad != fine
	e.sends = append(e.sends, o)
	if o.consumes {
		e.peer.expect = append(e.peer.expect, o)
		if e.unreliable() {
			e.peer.heard = append(e.peer.heard, o)
		}
	}
	e.overfill()
	return true
}

// overfill posts to a send queue that is full: it must say so.
func (e *endpoint) overfill() {
	depth := 1
	for depth < e.conn.config.SendDepth {
		depth *= 2
	}
	if int(e.qp.Snapshot().SendPosted) < depth {
		return
	}
	if err := e.qp.PostSend(&roce.SendWR{WRID: 1<<63 - 1}); !errors.Is(err, roce.ErrQueueFull) {
		e.w.fail(Conservation, "%s: a request more than the send queue holds: %v", e, err)
	}
}

// progressed notes that the requester made progress. Faults since the last look may have
// come after it.
func (e *endpoint) progressed() { e.progressAt, e.harmAt = e.w.clock.Now(), e.harmSeen }
