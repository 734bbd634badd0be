package msgtrial

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"xroce/engine"
	emsg "xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/msg"
)

// Errors that the trial ends connections and requests with.
var (
	errAborted = errors.New("msgtrial: aborted")
	errHungUp  = errors.New("msgtrial: the peer has hung up")
	errRefused = errors.New("msgtrial: memory refused")
)

// A node is a host: a device, which restarts now and then, the owner of a machine of messages,
// and an application.
type node struct {
	w       *world
	index   int
	config  *NodeConfig
	opened  uint64 // how often
	port    *sim.Port
	device  *engine.Device
	cq      *engine.CQ
	entries int // of the CQ that connections may need
	machine *msg.Endpoint
	ends    []*end // whose queue pairs are not closed, in the order of their making
	asked   []question
	given   []msg.Memory // that was not released
	domains []*engine.PD // of all connections
	wr      roce.SendWR
	wcs     [32]roce.Completion

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

// open makes the device and the machine, for the first time or after a crash.
func (n *node) open() {
	w := n.w
	var err error
	n.port, err = w.network.NewPort(sim.PortConfig{
		Name: fmt.Sprintf("node%d", n.index), MAC: campaign.MAC(n.index), MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(n.index + 1)})},
	})
	w.must(err)
	n.opened++
	random := rand.New(rand.NewPCG(w.config.Seed, uint64(n.index)<<32|n.opened))
	n.device, err = engine.OpenLink(n.port, n.port, engine.Options{
		Clock: w.clock, Direct: true, Rand: random,
	})
	w.must(err)
	c := n.config.Machine
	c.Rand = random
	n.machine, err = msg.New(c)
	w.must(err)
	n.cq, err = n.device.CreateCQ(1)
	w.must(err)
	n.up, n.entries, n.ends, n.asked, n.given, n.domains = true, 0, nil, nil, nil, nil
	n.application.begin(n)
	w.say("node %d: up", n.index)
}

// crash closes the device under its connections, and forgets the machine and all it had.
func (n *node) crash() {
	n.w.say("node %d: down", n.index)
	for _, e := range n.ends {
		e.blame("its host went down")
		e.lose()
	}
	n.up = false
	n.w.must(n.device.Close())
	for _, m := range n.given { // which the kernel does when a process ends
		_, err := emsg.Provide(nil, &msg.Request{Kind: msg.Release, Given: m})
		n.w.must(err)
	}
	n.checkFrames()
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
	return n.device.Progress() || worked
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
	got, err := n.cq.Poll(n.wcs[:])
	if err != nil {
		n.w.fail(Ready, "node %d: its CQ: %v", n.index, err)
		return false
	}
	for i := range n.wcs[:got] {
		wc := &n.wcs[i]
		n.w.Mix(0xc0, uint64(wc.Time), wc.WRID, uint64(wc.Status), uint64(wc.ByteLen),
			uint64(wc.QPN))
		for _, e := range n.ends {
			if e.info.QPN == wc.QPN {
				e.complete(wc)
				break
			}
		}
	}
	return got > 0
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
			e.refused = true
		}
		n.w.stats.Refused++
		n.machine.Answer(now, r, msg.Memory{}, errRefused)
		return
	}
	m, err := emsg.Provide([]emsg.Domain{{Device: n.device, PD: r.Conn.User.(*end).pd}}, r)
	switch {
	case r.Kind == msg.Release:
		n.w.must(err)
		n.given = slices.DeleteFunc(n.given, func(m msg.Memory) bool {
			return m.LKey == r.Given.LKey
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
		if e := r.Conn().User.(*end); !e.broken {
			n.w.Mix(0xd0, uint64(n.wr.Opcode), n.wr.WRID, uint64(len(n.wr.Inline)))
			if err := e.qp.PostSend(&n.wr); err != nil {
				n.w.fail(Excuse, "%s: posting %v: %v", e, n.wr.Opcode, err)
			}
		}
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
	if t, ok := n.port.NextArrival(); ok {
		at(t)
	}
	if t, ok := n.device.NextDeadline(); ok {
		at(t)
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
		at(e.openAt)
		at(e.hearAt)
		at(e.closeAt)
		at(e.nextPost)
	}
	at(n.nextReceive)
}

// admit has room made in the CQ for one more connection.
func (n *node) admit(entries int) {
	n.entries += entries
	n.w.must(n.cq.Resize(max(1, n.entries)))
}

// checkFrames wants every frame back from a device that was closed.
func (n *node) checkFrames() {
	if tx, rx := n.port.Held(); tx != 0 || rx != 0 {
		n.w.fail(Residue, "node %d: %d transmit and %d receive frames are gone", n.index, tx, rx)
	}
}
