package msgtrial

import (
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// A rail is a queue pair of an end, and what stands for its connection manager.
type rail struct {
	end  *end
	on   *adapter
	peer *rail

	qp      *engine.QP
	info    engine.Endpoint
	control *engine.MR // of the receives
	count   int        // of these
	core    *msg.Rail
	early   []roce.Completion // that came before core was there
	openAt  roce.Time         // when the machine is told of it
	hearAt  roce.Time         // when it is told that the peer has hung up, 0 for never
	closeAt roce.Time         // when the queue pair is closed, 0 for not yet
	broken  bool              // the queue pair takes no more work
	left    bool              // it is being given back
	harm    [2]uint64         // of both nodes, when it was made
	cause   string            // why it may be lost, "" while it may not
}

// String names it.
func (r *rail) String() string { return fmt.Sprintf("%s rail %d", r.end, r.on.number) }

// join makes a queue pair at both ends, by adapters of theirs.
func (p *pair) join(on [2]*adapter) {
	w := p.w
	var rails [2]*rail
	for side, e := range p.ends {
		rails[side] = &rail{end: e, on: on[side]}
	}
	rails[0].peer, rails[1].peer = rails[1], rails[0]
	for _, r := range rails {
		r.create()
	}
	for _, r := range rails {
		w.must(r.qp.Connect(w.ctx, r.info, r.peer.info, engine.ConnectOptions{
			SGIDIndex: 1, PathMTU: p.config.PathMTU, HopLimit: 64, Timeout: p.config.Timeout,
			RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 1, MaxRdAtomic: 16, Exact: true,
		}))
		r.harm = r.end.harmNow()
		r.openAt = w.clock.Now() + roce.Time(w.rng.Int64N(int64(20*roce.Microsecond)))
		r.end.rails = append(r.end.rails, r)
	}
	w.stats.Rails++
	w.say("pair %d.%d: queue pairs 0x%06x and 0x%06x", p.index, p.ends[0].life,
		rails[0].info.QPN, rails[1].info.QPN)
}

// create makes the queue pair and its receives.
func (r *rail) create() {
	n, w, pd := r.end.node, r.end.pair.w, r.end.pds[r.on.number]
	c := n.machine.Config()
	r.count = 2*c.Slots + 2*c.LargeSlots + 4*c.Rendezvous + 32
	r.on.admit(r.count + n.config.Depth)
	var err error
	r.qp, err = r.on.device.CreateQP(pd, engine.QPInit{
		SendCQ: r.on.cq, RecvCQ: r.on.cq, MaxSendWR: n.config.Depth, MaxRecvWR: r.count,
		MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: msg.MaxControlLen,
		Extensions: r.end.pair.config.Extensions,
	})
	w.must(err)
	w.must(r.qp.Init(mem.RemoteRead | mem.RemoteWrite))
	r.info, err = r.on.device.Endpoint(r.qp, 1)
	w.must(err)
	r.control, err = r.on.device.RegMR(pd, make([]byte, r.count*msg.MaxControlLen), mem.LocalWrite)
	w.must(err)
	for i := range r.count {
		w.must(r.receive(i))
	}
}

// receive posts a receive of the queue pair.
func (r *rail) receive(i int) error {
	sge := r.control.SGE(i*msg.MaxControlLen, msg.MaxControlLen)
	return r.qp.PostRecv(&roce.RecvWR{WRID: receiveID | uint64(i), SGList: []roce.SGE{sge}})
}

// hello is what an end says of itself by this rail, as it travels.
func (r *rail) hello() *msg.Hello {
	e := r.end
	c := e.node.machine.Config()
	h := &msg.Hello{
		Version: msg.Version, MinVersion: msg.MinVersion, Capabilities: e.node.config.Caps,
		Service: msg.ServiceEndpoint, Payload: uint32(c.EagerLimit), Slots: uint16(c.Slots),
		Rendezvous: uint16(c.Rendezvous), Receives: uint32(r.count), Rail: uint8(r.on.number),
	}
	if len(e.node.adapters) > 1 {
		h.Capabilities |= msg.CapabilityRails
		h.Rails = uint8(len(e.node.adapters))
	}
	if e.side == 1 {
		h.Session = e.pair.session
	}
	private := make([]byte, msg.HelloLen)
	h.Put(private)
	parsed, err := msg.ParseHello(private)
	e.pair.w.must(err)
	return &parsed
}

// open tells the machine of the rail: the first one is the connection.
func (r *rail) open(now roce.Time) {
	e := r.end
	w, machine := e.pair.w, e.node.machine
	var err error
	switch {
	case e.core == nil:
		e.core, err = machine.Open(now, r.hello(), r.peer.hello(), e.node.config.Depth)
		w.must(err)
		e.core.User, r.core = e, e.core.First()
		e.several = e.core.Several()
	case e.over:
		r.leave(now)
		return
	default:
		r.core, err = e.core.AddRail(now, r.hello(), r.peer.hello(), e.node.config.Depth)
		if err != nil {
			w.say("%s: refused: %v", r, err)
			r.blame("it was refused")
			r.leave(now)
			return
		}
	}
	r.core.User = r
	w.say("%s: open", r)
	for i := range r.early {
		r.complete(&r.early[i])
	}
	r.early = nil
	r.core.Start(now)
}

// complete hands a completion to the machine.
func (r *rail) complete(wc *roce.Completion) {
	if r.core == nil {
		if wc.WRID&receiveID == 0 || wc.Status != roce.StatusSuccess {
			r.broken = true
		}
		r.early = append(r.early, *wc)
		return
	}
	e := r.end
	now, w := e.pair.w.clock.Now(), e.pair.w
	if wc.Status != roce.StatusSuccess && e.several && !r.core.Lost() && r.qp.Snapshot().BadKey {
		w.say("%s: a key that is out of use", r)
		e.node.machine.HandleBadKey(now, r.core)
	}
	if wc.WRID&receiveID == 0 {
		e.node.machine.HandleWork(now, r.core, wc)
		return
	}
	slot := int(wc.WRID &^ receiveID)
	var control []byte
	if wc.Status == roce.StatusSuccess {
		if wc.Opcode == roce.WCRecv {
			at := slot * msg.MaxControlLen
			control = append(control, r.control.Bytes()[at:at+int(wc.ByteLen)]...)
			if m, err := msg.ParseControl(control); err == nil {
				w.say("%s: hears %v id %d len %d", r, m.Type, m.ID, m.Len)
			}
			if w.tamper.heard != nil {
				w.tamper.heard(w, control)
			}
		}
		_ = r.receive(slot) // only the end of the queue pair can refuse it, which is told
	}
	e.node.machine.HandleArrival(now, r.core, wc, control)
}

// tend does what is due, and reports whether there was anything.
func (r *rail) tend(now roce.Time) bool {
	e := r.end
	switch {
	case r.closeAt != 0 && (now >= r.closeAt || e.pair.w.quiet):
		r.dismantle(now)
	case r.left:
		return false
	case r.core == nil && now >= r.openAt:
		r.open(now)
	case r.hearAt != 0 && (now >= r.hearAt || e.pair.w.quiet) && r.core != nil:
		if r.hearAt = 0; e.over {
			return false
		}
		e.pair.w.say("%s: hears that the peer has hung up", r)
		for e.node.poll() { // what had come before
		}
		r.core.Lose(now, errHungUp)
	default:
		return false
	}
	return true
}

// lost is told by the machine that the rail is out of use.
func (r *rail) lost(now roce.Time) {
	e := r.end
	w := e.pair.w
	w.say("%s: lost", r)
	w.Mix(0xe2, uint64(r.info.QPN))
	w.stats.RailsLost++
	if r.cause == "" && r.harm == e.harmNow() {
		w.fail(Excuse, "%s: it was lost for no reason", r)
	}
	r.leave(now)
	e.nextDial[r.on.number] = now + w.upTo(w.config.Phase/10)
	if !e.alive() {
		e.strandedAt = now
	}
}

// leave begins to give the rail back, and has the peer hear of it, unless the wire is cut.
func (r *rail) leave(now roce.Time) {
	w := r.end.pair.w
	if r.left {
		return
	}
	r.left, r.broken = true, true
	r.peer.blame("the peer has given it up")
	if r.on.up {
		w.must(r.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
	}
	if !r.end.several || r.on.up && w.reachable(r.on, r.peer.on) {
		r.peer.hearAt = now + 1 + w.upTo(100*roce.Microsecond)
	}
	r.closeAt = now + 1 + w.upTo(50*roce.Microsecond)
}

// blame says why the rail may be lost.
func (r *rail) blame(why string) {
	if r.cause == "" {
		r.cause = why
	}
}

// dismantle gives back what is of the device.
func (r *rail) dismantle(now roce.Time) {
	e := r.end
	for e.node.poll() {
	}
	r.qp.Close()
	e.pair.w.must(r.control.Deregister())
	for i, other := range e.rails {
		if other == r {
			e.rails = append(e.rails[:i:i], e.rails[i+1:]...)
			break
		}
	}
	if r.core != nil {
		r.core.Gone(now)
	}
	r.on.admit(-r.count - e.node.config.Depth)
	e.leaveIfGone()
}
