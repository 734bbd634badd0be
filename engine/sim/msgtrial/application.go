package msgtrial

import (
	"errors"

	"xroce/roce"
	"xroce/roce/msg"
)

// An application is what uses messages on a node: what it has posted since the host came up.
type application struct {
	todo        int // receives that it posts while there are faults
	nextReceive roce.Time
	receives    []*receive // all of this life, in the order of their posts
	pending     []*receive // of these, those that did not come back
	caughtUp    uint64     // changes that catchUp has seen
}

// begin is the application after its host came up.
func (a *application) begin(n *node) { *a = application{todo: n.config.Receives} }

// act posts what is due, and reports whether that was anything.
func (n *node) act(now roce.Time) bool {
	worked := false
	for i := 0; i < len(n.ends); i++ {
		e := n.ends[i]
		if e.core == nil || e.over || e.closing || e.pair.todo[e.side] == 0 || now < e.nextPost {
			continue
		}
		e.pair.todo[e.side]--
		e.send(now)
		e.nextPost = now + n.w.gap(e.pair.config.Messages[e.side])
		worked = true
		e.meddle(now)
	}
	if n.w.quiet {
		return n.catchUp() || worked
	}
	if n.deaf == 0 && n.todo > 0 && now >= n.nextReceive {
		n.todo--
		n.receive(now, n.draw())
		n.nextReceive = now + n.w.gap(n.config.Receives)
		n.maybeCancel()
		worked = true
	}
	return worked
}

// gap is a time between two posts of so many.
func (w *world) gap(posts int) roce.Time {
	if w.quiet || one(w.rng, 3) {
		return 0
	}
	return roce.Time(w.rng.Int64N(int64(w.config.Phase) / int64(posts+1)))
}

// meddle closes the connection or has it renew its slots, now and then.
func (e *end) meddle(now roce.Time) {
	w, k := e.pair.w, e.pair.config
	switch {
	case w.quiet || e.over:
	case k.Close && one(w.rng, 10):
		w.say("%s: closes", e)
		e.close(now)
	case k.Renew && one(w.rng, 5):
		slots := choose(w.rng, 2, 4, e.node.machine.Config().Slots)
		w.say("%s: renews %d slots: %v", e, slots, e.core.Renew(slots))
	}
}

// close closes an end in order.
func (e *end) close(now roce.Time) {
	e.closing = true
	e.pair.w.changes++
	e.blame("it was closed")
	e.peer.blame("the peer has closed it")
	e.core.Close(now)
}

// send posts a message.
func (e *end) send(now roce.Time) {
	w, k := e.pair.w, e.pair.config
	w.posts++
	m := &message{
		id: w.posts, end: e, index: len(e.messages), before: none,
		data: make([]byte, choose(w.rng, k.Sizes...)),
	}
	pattern(m.id).Fill(m.data)
	m.size = len(m.data)
	m.op = msg.Send{
		Pieces: w.pieces(m.data),
		Tag:    m.id<<tagBits | w.rng.Uint64N(uint64(k.Tags)),
		Level:  msg.Level(w.rng.IntN(4)), User: m,
	}
	if one(w.rng, 3) {
		m.op.Protocol = k.Force
	}
	w.say("%s: sends %d: %d bytes, tag %d, level %d, %v", e, m.id, m.size, m.op.Tag&(1<<tagBits-1),
		m.op.Level,
		m.op.Protocol)
	if err := e.core.Send(now, &m.op); err != nil {
		if errors.Is(err, msg.ErrQuota) && e.node.hasQuota() {
			return // the connection ends once the peer was told
		}
		w.fail(Excuse, "%s: send: %v", e, err)
		return
	}
	m.out = true
	e.messages = append(e.messages, m)
	w.messages = append(w.messages, m)
	w.changes++
	if w.tamper.posted != nil {
		w.tamper.posted(w, m)
	}
}

// pieces cuts memory into pieces, some of them empty.
func (w *world) pieces(b []byte) [][]byte {
	if !one(w.rng, 4) {
		return [][]byte{b}
	}
	var list [][]byte
	for range w.rng.IntN(3) {
		n := w.rng.IntN(len(b) + 1)
		list = append(list, b[:n:n])
		b = b[n:]
	}
	return append(list, b)
}

// draw draws a receive.
func (n *node) draw() *receive {
	w := n.w
	r := &receive{size: maxSize}
	if w.rng.IntN(10) < n.config.Exact {
		r.op.Mask = choose[uint64](w.rng, 1<<tagBits-1, 1, 2)
		r.op.Tag = w.rng.Uint64N(8)
	}
	if w.rng.IntN(10) < n.config.From && len(n.ends) > 0 {
		if e := n.ends[w.rng.IntN(len(n.ends))]; e.core != nil {
			r.from, r.op.From = e, e.core
		}
	}
	if w.rng.IntN(10) < n.config.Short {
		r.size = choose(w.rng, 0, 1, 100, 1500, 9000)
	} else {
		r.size = n.longest()
	}
	return r
}

// maxSize is longer than any message.
const maxSize = 200_000

// longest is as long as the longest message that may come.
func (n *node) longest() int {
	most := 0
	for i := range n.w.config.Pairs {
		p := &n.w.config.Pairs[i]
		if p.Nodes[0] == n.index || p.Nodes[1] == n.index {
			for _, size := range p.Sizes {
				most = max(most, size)
			}
		}
	}
	return most
}

// receive posts a receive.
func (n *node) receive(now roce.Time, r *receive) {
	w := n.w
	w.posts++
	r.node, r.index, r.posted = n, len(n.receives), w.posts
	r.life = n.opened
	r.memory = make([]byte, guard+r.size+guard)
	wipe(r.memory)
	r.op.Pieces, r.op.User = w.pieces(r.memory[guard:][:r.size:r.size]), r
	r.mustHave = none
	w.say("node %d: receive %d: %d bytes, tag %d of mask %#x, from %v", n.index, r.index, r.size,
		r.op.Tag, r.op.Mask, r.from)
	if err := n.machine.Receive(now, &r.op); err != nil {
		if r.from == nil || !r.from.over {
			w.fail(Excuse, "node %d: receive: %v", n.index, err)
		}
		return
	}
	n.receives = append(n.receives, r)
	n.pending = append(n.pending, r)
}

// maybeCancel takes a receive back, or tries to.
func (n *node) maybeCancel() {
	if n.w.rng.IntN(100) >= n.config.Cancel || len(n.pending) == 0 {
		return
	}
	r := n.pending[n.w.rng.IntN(len(n.pending))]
	n.w.say("node %d: cancels receive %d", n.index, r.index)
	r.cancelled = n.machine.Cancel(&r.op)
}

// catchUp posts receives for what was sent and not received, and reports whether there was
// anything to post.
func (n *node) catchUp() bool {
	if n.caughtUp == n.w.changes {
		return false
	}
	n.caughtUp = n.w.changes
	missing := 0
	for _, m := range n.w.messages {
		if m.due() && m.end.peer.node == n {
			missing++
		}
	}
	for _, r := range n.pending {
		if r.op.Mask == 0 && r.from == nil {
			missing--
		}
	}
	for range missing {
		n.receive(n.w.clock.Now(), &receive{size: n.longest()})
	}
	return missing > 0
}
