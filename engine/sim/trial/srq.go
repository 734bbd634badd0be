package trial

import (
	"fmt"
	"math/rand/v2"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// A sharedQueue is the shared receive queue of a node, with the memory of its
// receives. It lives as long as the device.
type sharedQueue struct {
	node  *node
	on    *engine.Device
	rng   *rand.Rand
	depth int
	size  int // of a receive
	small float64
	limit bool // events are asked for
	arena *arena
	mr    *engine.MR
	srq   *engine.SRQ

	recvs      []*receive // posted and not complete, in order
	ids        uint64
	smallest   int
	armed      bool // an event is to come when it runs low
	unreported int  // receives that closed queue pairs may have taken and not completed
	emptied    roce.Time
}

// newSharedQueue makes the model of the SRQ of a node.
func newSharedQueue(n *node) *sharedQueue {
	s := &sharedQueue{
		node: n, depth: n.config.SRQDepth, limit: n.config.SRQLimit,
		rng: rand.New(rand.NewPCG(n.w.config.Seed, 0x737271<<8|uint64(n.index))),
	}
	for i := range n.w.config.Conns {
		k := &n.w.config.Conns[i]
		for side := range k.SRQ {
			if k.SRQ[side] && k.Nodes[side] == n.index {
				s.size, s.small = max(s.size, k.MaxSize), max(s.small, k.SmallRq)
			}
		}
	}
	return s
}

// slots is how many receives there is memory for: that of some stays taken when their
// queue pair is closed.
func (s *sharedQueue) slots() int { return s.depth + 8 }

// newExtendedQueue makes the SRQ of the receiving end of an XRC, with its CQ.
func newExtendedQueue(e *endpoint, x *engine.XRCD) *sharedQueue {
	n, k := e.node, e.conn.config
	s := &sharedQueue{
		node: n, depth: k.RecvDepth, size: k.MaxSize, small: k.SmallRq,
		rng: rand.New(rand.NewPCG(n.w.config.Seed, 0x787263<<16|e.ids)),
	}
	e.recvCQ = n.queue(max(k.CQDepth, 1), s.slots(), k.CQDepth > 0)
	s.open(engine.SRQInit{XRCD: x, CQ: e.recvCQ.cq})
	return s
}

// open makes the SRQ on a device that was opened.
func (s *sharedQueue) open(init engine.SRQInit) {
	n := s.node
	s.on = n.device
	s.depth = min(s.depth, max(2, 256<<10/(s.size+1)))
	s.arena = newReceiveArena(s.slots(), s.size+8)
	s.recvs, s.armed, s.smallest, s.unreported = nil, false, s.size+8, 0
	var err error
	s.mr, err = n.device.RegMR(n.pd, s.arena.region(poolReceive, poolReceive), mem.LocalWrite)
	n.w.must(err)
	init.MaxWR = s.depth
	s.srq, err = n.device.CreateSRQ(n.pd, init)
	n.w.must(err)
}

// posted is how many receives nobody has taken.
func (s *sharedQueue) posted() int {
	_, posted := s.srq.Query()
	return posted
}

// fill posts receives and arms the limit. It reports whether it did anything.
func (s *sharedQueue) fill() bool {
	acted := false
	posted := s.posted()
	if posted == 0 {
		s.emptied = s.node.w.clock.Now()
	}
	for ; posted < s.depth && s.post(); posted++ {
		acted = true
	}
	if !s.armed && s.limit && posted > 0 {
		limit := 1 + s.rng.IntN(posted)
		s.node.w.must(s.srq.Modify(roce.SRQAttr{Limit: limit}, roce.SRQAttrLimit))
		s.armed = true
	}
	return acted
}

// post posts a receive, and reports whether there was memory for it.
func (s *sharedQueue) post() bool {
	slot := s.arena.pick(poolReceive, s.rng.IntN(8))
	if slot == nil {
		return false
	}
	r := &receive{
		id: receiveID | s.ids, slot: slot, arena: s.arena, size: s.size, at: s.rng.IntN(9),
	}
	if s.small > 0 && !s.node.w.quiet && s.rng.Float64() < s.small {
		r.size = s.rng.IntN(s.size)
	}
	half := s.rng.IntN(r.size + 1)
	at := s.mr.Addr() + uint64(slot.off+r.at-s.arena.bound[poolReceive])
	err := s.srq.PostRecv(&roce.RecvWR{WRID: r.id, SGList: []roce.SGE{
		{Addr: at, Length: uint32(half), LKey: s.mr.LKey()},
		{Addr: at + uint64(half), Length: uint32(r.size - half), LKey: s.mr.LKey()},
	}})
	if err != nil {
		s.node.w.fail(Conservation, "node %d: a receive of %d for the SRQ was refused: %v",
			s.node.index, s.depth, err)
		return false
	}
	s.ids++
	slot.taken = true
	s.smallest = min(s.smallest, r.size)
	s.recvs = append(s.recvs, r)
	return true
}

// take finds the receive of a completion. Each queue pair works on one at most, so of the
// older ones no more may be without completion than there are queue pairs.
func (s *sharedQueue) take(id uint64) (*receive, string) {
	for i, r := range s.recvs {
		if r.id != id {
			continue
		}
		holders := s.unreported
		for _, e := range s.node.endpoints {
			if e.shared == s {
				holders++
			}
		}
		s.recvs = append(s.recvs[:i:i], s.recvs[i+1:]...)
		// Completions that nobody polled yet are of receives that were taken.
		if taken := len(s.recvs) + 1 - s.posted(); i >= max(taken, holders) {
			return nil, fmt.Sprintf("receive %d was taken before %d older ones", id&^receiveID, i)
		}
		return r, ""
	}
	return nil, fmt.Sprintf("receive %d of the SRQ is not outstanding", id&^receiveID)
}

// qpGone notes that a queue pair was closed, without completions for the receives that it
// took: the one that it worked on, and those that nobody polled. When no other queue pair
// is left, these are all that were taken, and their memory is free again.
func (s *sharedQueue) qpGone(dead *endpoint) {
	taken := len(s.recvs) - s.posted()
	for _, e := range s.node.endpoints {
		if e != dead && e.shared == s {
			s.unreported = max(s.unreported, taken)
			return
		}
	}
	for _, r := range s.recvs[:taken] {
		copy(s.arena.want[r.slot.off+r.at:][:r.size], s.arena.mem[r.slot.off+r.at:])
		r.slot.taken = false
	}
	s.recvs, s.unreported = s.recvs[taken:], 0
}

// event takes an event of the device that is about the SRQ or one of its users.
func (n *node) event(ev engine.AsyncEvent) {
	n.w.stats.Events[ev.Type]++
	switch ev.Type {
	case roce.EventSRQLimitReached:
		if n.shared == nil || ev.SRQ != n.shared.srq || !n.shared.armed {
			n.w.fail(Completion, "node %d: an event of a limit that is not armed", n.index)
			return
		}
		n.shared.armed = false
	case roce.EventQPLastWQEReached:
		for _, e := range n.endpoints {
			if e.qp == ev.QP {
				e.lastWQE++
				return
			}
		}
		n.w.fail(Completion, "node %d: the last receive of a queue pair that is gone", n.index)
	}
}

// events takes the events that there are; then the SRQ and the model agree on
// whether the limit is armed.
func (n *node) events() {
	for n.listens {
		ev, ok := n.device.PollEvent()
		if !ok {
			break
		}
		n.event(ev)
	}
	if n.shared == nil {
		return
	}
	if a, posted := n.shared.srq.Query(); (a.Limit > 0) != n.shared.armed {
		n.w.fail(Completion, "node %d: the limit of the SRQ is %d with %d receives, armed %t",
			n.index, a.Limit, posted, n.shared.armed)
	}
}

// checkRest wants every receive to be posted, or taken by a queue pair, which may be
// closed.
func (s *sharedQueue) checkRest() string {
	if gone := len(s.recvs) - s.posted(); gone < 0 || gone > s.unreported+s.inHand() {
		return fmt.Sprintf("%d receives are out, %d are posted, %d queue pairs may hold one",
			len(s.recvs), s.posted(), s.unreported+s.inHand())
	}
	// A queue pair may have written to the oldest.
	for _, r := range s.recvs[:len(s.recvs)-s.posted()] {
		copy(s.arena.want[r.slot.off+r.at:][:r.size], s.arena.mem[r.slot.off+r.at:])
	}
	return s.arena.compare(0, len(s.arena.mem))
}

// inHand is how many queue pairs may have taken a receive and not completed it with
// nothing under way: a UC keeps that of a message whose end was lost.
func (s *sharedQueue) inHand() int {
	n := 0
	for _, e := range s.node.endpoints {
		if e.shared == s && e.unreliable() {
			n++
		}
	}
	return n
}
