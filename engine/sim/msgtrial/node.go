package msgtrial

import (
	"errors"
	"math/rand/v2"
	"slices"

	"xroce/engine"
	emsg "xroce/engine/msg"
	"xroce/roce"
	"xroce/roce/msg"
)

// Errors that the trial ends connections and requests with.
var (
	errAborted   = errors.New("msgtrial: aborted")
	errHungUp    = errors.New("msgtrial: the peer has hung up")
	errRefused   = errors.New("msgtrial: memory refused")
	errUnplugged = errors.New("msgtrial: the adapter is gone")
	errNoSession = errors.New("msgtrial: the peer knows no such session")
)

// A node is a host: devices, which restart now and then, the owner of a machine of messages,
// and an application.
type node struct {
	w        *world
	index    int
	config   *NodeConfig
	opened   uint64 // how often
	adapters []*adapter
	machine  *msg.Endpoint
	ends     []*end // whose queue pairs are not closed, in the order of their making
	asked    []question
	given    []msg.Memory // that was not released
	domains  []*engine.PD // of all connections
	wr       roce.SendWR
	wcs      [32]roce.Completion

	up     bool
	frozen int // so many causes hold it
	deaf   int
	harm   uint64 // faults that it took part in
	lookAt roce.Time

	application
}

// A question is a request for memory, and when it is answered.
type question struct {
	request *msg.Request
	at      roce.Time
}

// open makes the devices and the machine, for the first time or after a crash.
func (n *node) open() {
	w := n.w
	n.opened++
	random := rand.New(rand.NewPCG(w.config.Seed, uint64(n.index)<<32|n.opened))
	n.adapters = nil
	for i := range n.config.adapters() {
		n.adapters = append(n.adapters, n.openAdapter(i, random))
	}
	c := n.config.Machine
	c.Rand = random
	var err error
	n.machine, err = msg.New(c)
	w.must(err)
	n.up, n.ends, n.asked, n.given, n.domains = true, nil, nil, nil, nil
	n.application.begin(n)
	w.say("node %d: up", n.index)
}

// crash closes the devices under their connections, and forgets the machine and all it had.
func (n *node) crash() {
	n.w.say("node %d: down", n.index)
	for _, e := range n.ends {
		e.blame("its host went down")
		e.lose()
	}
	n.up = false
	n.count()
	for _, a := range n.adapters {
		a.close()
	}
	for _, m := range n.given { // which the kernel does when a process ends
		_, err := emsg.Provide(nil, &msg.Request{Kind: msg.Release, Given: m})
		n.w.must(err)
	}
	for _, a := range n.adapters {
		a.checkFrames()
	}
}

// count adds what the machine has counted of rails to what happened.
func (n *node) count() {
	s, c := &n.w.stats, n.machine.Snapshot()
	s.Resumed += c[msg.Resumed]
	s.SentAgain += c[msg.SentAgain]
	s.ChunksAgain += c[msg.ChunksAgain]
}

// running reports whether the node does anything at all.
func (n *node) running() bool { return n.up && n.frozen == 0 }

// turn lets the application, the owner and the engine do something, and reports whether there
// was anything to do.
func (n *node) turn() bool {
	if !n.running() {
		return false
	}
	now, worked := n.w.clock.Now(), false
	if now >= n.lookAt || n.w.quiet {
		worked = n.look(now)
		if gap := n.config.PollGap; gap > 0 {
			n.lookAt = now + 1 + roce.Time(n.w.rng.Int64N(int64(2*gap)))
		}
	}
	for _, a := range n.adapters {
		worked = a.up && a.device.Progress() || worked
	}
	return worked
}

// look is what the owner does.
func (n *node) look(now roce.Time) bool {
	worked := n.act(now)
	if at, ok := n.machine.NextDeadline(); ok && at <= now {
		n.machine.HandleDeadline(now)
		worked = true
	}
	worked = n.answer(now) || worked
	worked = n.poll() || worked
	worked = n.tend(now) || worked
	return n.progress() || worked
}

// poll takes what is complete.
func (n *node) poll() bool {
	got := false
	for _, a := range n.adapters {
		got = a.poll() || got
	}
	return got
}

// answer gives the machine the memory that is there by now.
func (n *node) answer(now roce.Time) bool {
	worked := false
	for i := 0; i < len(n.asked); {
		q := n.asked[i]
		if q.at > now && !n.w.quiet {
			i++
			continue
		}
		n.asked = append(n.asked[:i], n.asked[i+1:]...)
		worked = true
		n.provide(now, q.request)
	}
	return worked
}

// provide answers a request, some of them with a refusal.
func (n *node) provide(now roce.Time, r *msg.Request) {
	if r.Kind != msg.Release && n.w.rng.IntN(1000) < n.config.Refuse && !n.w.quiet {
		if e := r.Conn.User.(*end); r.Kind == msg.Allocate {
			e.noMemory = true
		}
		n.w.stats.Refused++
		n.machine.Answer(now, r, msg.Memory{}, errRefused)
		return
	}
	m, err := emsg.Provide(r.Conn.User.(*end).domains(), r)
	switch {
	case r.Kind == msg.Release:
		n.w.must(err)
		n.given = slices.DeleteFunc(n.given, func(m msg.Memory) bool {
			return m.Key == r.Given.Key && m.Further == r.Given.Further
		})
	case err == nil:
		n.given = append(n.given, m)
	}
	n.machine.Answer(now, r, m, err)
}

// progress does what the machine wants done, and takes what is complete of it.
func (n *node) progress() bool {
	worked, now := false, n.w.clock.Now()
	for r := n.machine.NextWork(now, &n.wr); r != nil; r = n.machine.NextWork(now, &n.wr) {
		worked = true
		if r := r.User.(*rail); !r.broken {
			n.w.Mix(0xd0, uint64(n.wr.Opcode), n.wr.WRID, uint64(len(n.wr.Inline)))
			if err := r.qp.PostSend(&n.wr); err != nil {
				n.w.fail(Excuse, "%s: posting %v: %v", r, n.wr.Opcode, err)
			}
		}
	}
	for r := n.machine.NextLost(); r != nil; r = n.machine.NextLost() {
		worked = true
		r.User.(*rail).lost(now)
	}
	for r := n.machine.NextRequest(); r != nil; r = n.machine.NextRequest() {
		worked = true
		at := now
		if n.config.Answer > 0 {
			at += roce.Time(n.w.rng.Int64N(int64(n.config.Answer)))
		}
		n.asked = append(n.asked, question{r, at})
	}
	for s := n.machine.NextSent(); s != nil; s = n.machine.NextSent() {
		worked = true
		n.w.sent(s.User.(*message))
	}
	for r := n.machine.NextReceived(); r != nil; r = n.machine.NextReceived() {
		worked = true
		n.w.received(r.User.(*receive))
	}
	for c := n.machine.NextClosed(); c != nil; c = n.machine.NextClosed() {
		worked = true
		c.User.(*end).closed(now)
	}
	return worked
}

// tend does what is due for the connections.
func (n *node) tend(now roce.Time) bool {
	worked := false
	for i := 0; i < len(n.ends); i++ {
		e := n.ends[i]
		worked = e.tend(now) || worked
		if e.gone {
			i--
		}
	}
	return worked
}

// nextTime is when the node has to do something of itself.
func (n *node) nextTime(at func(roce.Time)) {
	for _, a := range n.adapters {
		a.nextTime(at)
	}
	if n.lookAt > n.w.clock.Now() && !n.w.quiet {
		at(n.lookAt)
		return // until then the owner does nothing
	}
	if t, ok := n.machine.NextDeadline(); ok {
		at(t)
	}
	for _, q := range n.asked {
		at(q.at)
	}
	for _, e := range n.ends {
		at(e.nextPost)
		for _, r := range e.rails {
			at(r.openAt)
			at(r.hearAt)
			at(r.closeAt)
		}
		if e.several && e.side == 0 && !e.over {
			for i, a := range e.node.adapters {
				if a.up && !e.has(a) {
					at(e.nextDial[i])
				}
			}
		}
	}
	at(n.nextReceive)
}

// pick draws the adapter by which a connection begins, of those that are there.
func (n *node) pick() *adapter {
	var up []*adapter
	for _, a := range n.adapters {
		if a.up {
			up = append(up, a)
		}
	}
	if len(up) == 1 {
		return up[0]
	}
	return choose(n.w.rng, up...)
}
