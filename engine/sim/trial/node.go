package trial

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/counter"
)

// A node is a host: a device, which restarts now and then, and an application.
type node struct {
	w         *world
	index     int
	config    *NodeConfig
	port      *sim.Port
	device    *engine.Device
	pd        *engine.PD
	queues    []*queue
	endpoints []*endpoint // with a queue pair
	opened    uint64      // how often
	words     *words
	shared    *sharedQueue // may be nil
	listens   bool         // to events of the device

	up       bool
	frozen   int // so many causes hold it
	thawedAt roce.Time
	lookAt   roce.Time // when the application looks next
}

// A queue is a completion queue, for one queue pair or for its sends only.
type queue struct {
	cq    *engine.CQ
	depth int  // that is enough
	tiny  bool // too small for what may complete
}

// open makes the device, for the first time or after a crash.
func (n *node) open() {
	c := n.config
	var err error
	n.port, err = n.w.network.NewPort(sim.PortConfig{
		Name: fmt.Sprintf("node%d", n.index), MAC: campaign.MAC(n.index, 0), MTU: n.w.config.MTU,
		Addrs:    []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(n.index + 1)})},
		TxFrames: c.TxFrames, RxBurst: c.RxBurst, RxQueue: c.RxQueue, Chunk: c.Chunk,
	})
	n.w.must(err)
	n.opened++
	n.device, err = engine.OpenLink(n.port, n.port, engine.Options{
		Clock: n.w.clock, Direct: true,
		Rand: rand.NewPCG(n.w.config.Seed, uint64(n.index)<<32|n.opened),
	})
	n.w.must(err)
	n.pd, n.up = n.device.AllocPD(), true
	if n.config.Words > 0 && n.words == nil {
		n.words = newWords(n.config.Words, n.w.config.Seed<<32|uint64(n.index)<<16)
	}
	if n.words != nil {
		n.words.register(n)
	}
	if n.config.SRQDepth > 0 {
		n.shared = newSharedQueue(n)
		n.shared.open(engine.SRQInit{})
	}
	n.listens = n.shared != nil
	n.w.say("node %d: up", n.index)
}

// crash closes the device under its queue pairs. What was posted must come back
// flushed, and every frame must be given back.
func (n *node) crash() {
	n.w.say("node %d: down", n.index)
	n.events()
	err := n.device.Close()
	n.w.must(err)
	for _, e := range n.endpoints {
		e.excused = "its device was closed"
		e.observe()
	}
	for n.poll(1 << 10) {
	}
	n.checkResidue()
	n.checkCounters()
	n.up, n.endpoints, n.queues = false, nil, nil
}

// running reports whether the node does anything at all.
func (n *node) running() bool { return n.up && n.frozen == 0 }

// queue makes a completion queue: tiny, or with room for depth completions.
func (n *node) queue(small, depth int, tiny bool) *queue {
	if tiny {
		depth = small
	}
	cq, err := n.device.CreateCQ(depth)
	n.w.must(err)
	q := &queue{cq: cq, depth: depth, tiny: tiny}
	n.queues = append(n.queues, q)
	return q
}

// turn lets the application and then the engine do something, and reports
// whether there was anything to do.
func (n *node) turn() bool {
	if !n.running() {
		return false
	}
	now, acted := n.w.clock.Now(), false
	if n.thawedAt == now {
		defer n.checkHaste(n.timeouts())
	}
	if now >= n.lookAt || n.w.quiet {
		acted = n.poll(n.config.PollBatch)
		for _, e := range n.endpoints {
			acted = e.act() || acted
		}
		if n.config.Resize && one(n.w.rng, 20) {
			n.resize()
		}
		if gap := n.config.PollGap; gap > 0 {
			n.lookAt = now + 1 + roce.Time(n.w.rng.Int64N(int64(2*gap)))
		}
	}
	worked := n.device.Progress()
	n.observe()
	n.events()
	return acted || worked
}

// timeouts is how often the device took something for lost because a timer ran out.
func (n *node) timeouts() uint64 {
	list, err := n.device.Counters()
	n.w.must(err)
	for _, c := range list {
		if c.Name == counter.LocalAckTimeout.String() {
			return c.Value
		}
	}
	return 0
}

// checkHaste wants a device that was stopped, and then has taken something for lost, to
// have looked at all that came meanwhile.
func (n *node) checkHaste(before uint64) {
	at, waits := n.port.NextArrival()
	if n.timeouts() > before && waits && at <= n.w.clock.Now() {
		n.w.fail(Liveness, "node %d: a timer ran out before what had come was looked at", n.index)
	}
}

// observe looks at every queue pair.
func (n *node) observe() {
	for _, e := range n.endpoints {
		e.observe()
	}
	if n.words != nil {
		n.words.observe()
	}
}

// resize changes the depth of a CQ, to one that is enough still, and to one that
// is none.
func (n *node) resize() {
	if len(n.queues) == 0 {
		return
	}
	q := n.queues[n.w.rng.IntN(len(n.queues))]
	if q.tiny {
		return
	}
	if q.cq.Resize(0) == nil {
		n.w.fail(Conservation, "node %d: a CQ of depth 0", n.index)
	}
	n.w.must(q.cq.Resize(q.depth + n.w.rng.IntN(q.depth+1)))
}

// poll takes at most so many completions from each CQ and hands them to their
// endpoints. It reports whether there were any.
func (n *node) poll(batch int) bool {
	any, events := false, n.w.Events()
	for _, e := range n.endpoints {
		// Looking at one CQ may complete requests of another, which was looked
		// at before: only what is done by now must show.
		e.drainedAtLast, e.undone = true, int(e.qp.Snapshot().SendPosted)
	}
	for _, q := range n.queues {
		wcs := n.w.completions[:min(batch, len(n.w.completions))]
		got, err := q.cq.Poll(wcs)
		if err != nil {
			n.overrun(q)
			continue
		}
		wcs = wcs[:got]
		// Looking at an empty CQ drives the device.
		n.observe()
		if n.w.tamper.completions != nil {
			wcs = n.w.tamper.completions(n.w, wcs)
		}
		for i := range wcs {
			any = true
			n.dispatch(q, &wcs[i])
		}
	}
	for _, e := range n.endpoints {
		if e.drainedAtLast && e.qp != nil {
			e.retireSilent()
		}
		any = any || int(e.before.SendPosted) < e.undone
		// On a UC nobody waits for what may have come to a CQ looked at before.
		any = any || e.unreliable() && n.w.Events() != events
	}
	return any
}

// overrun notes that a CQ lost completions: its queue pairs must end.
func (n *node) overrun(q *queue) {
	if !q.tiny {
		n.w.fail(Completion, "node %d: a CQ with room for all completions overran", n.index)
		return
	}
	for _, e := range n.endpoints {
		if e.sendCQ == q || e.recvCQ == q {
			e.overran, e.excused = true, "its CQ overran"
		}
	}
}

// dispatch hands a completion to the endpoint that it is for.
func (n *node) dispatch(q *queue, wc *roce.Completion) {
	n.w.Mix(0xc0, uint64(wc.Time), wc.WRID, uint64(wc.Status), uint64(wc.ByteLen), uint64(wc.QPN))
	for _, e := range n.endpoints {
		if e.sendCQ != q && e.recvCQ != q {
			continue
		}
		if wc.QPN != e.info.QPN {
			n.w.fail(Completion, "%s: a completion of queue pair 0x%06x", e, wc.QPN)
			return
		}
		e.drainedAtLast = false
		if n.w.Log != nil {
			n.w.say("%s: %s %d: %s", e, wc.Opcode, wc.WRID&^receiveID, wc.Status)
		}
		if wc.WRID&receiveID != 0 {
			e.receiveDone(wc)
		} else {
			e.sendDone(wc)
		}
		return
	}
	n.w.fail(Completion, "node %d: a completion of nobody: %+v", n.index, *wc)
}

// leave takes an endpoint and its CQs out.
func (n *node) leave(e *endpoint) {
	for i, other := range n.endpoints {
		if other == e {
			n.endpoints = append(n.endpoints[:i:i], n.endpoints[i+1:]...)
			break
		}
	}
	var kept []*queue
	for _, q := range n.queues {
		if q != e.sendCQ && q != e.recvCQ {
			kept = append(kept, q)
		}
	}
	n.queues = kept
}
