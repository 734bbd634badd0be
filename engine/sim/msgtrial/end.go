package msgtrial

import (
	"errors"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// receiveID marks the WRID of a receive.
const receiveID = 1 << 63

// A pair is two nodes that are connected, and connected anew when that ends.
type pair struct {
	w      *world
	index  int
	config *PairConfig
	ends   [2]*end
	lives  int
	todo   [2]int // messages that each end has still to send
}

// An end is one end of a connection.
type end struct {
	pair *pair
	side int
	life int
	node *node
	host uint64 // life of the node
	peer *end

	pd      *engine.PD
	qp      *engine.QP
	info    engine.Endpoint
	control *engine.MR // of the receives
	count   int        // of these
	core    *msg.Conn
	early   []roce.Completion // that came before core was there
	openAt  roce.Time         // when the machine is told of it
	hearAt  roce.Time         // when it is told that the peer has hung up, 0 for never
	closeAt roce.Time         // when the queue pair is closed, 0 for not yet
	broken  bool              // the queue pair takes no more work

	nextPost roce.Time
	messages []*message // that it sent, in order
	closing  bool       // Close was called
	refused  bool       // memory was
	harm     [2]uint64  // of both nodes, when it was made
	cause    string     // why it may end, "" while it may not
	over     bool       // the machine says so, or its host is down
	err      error
	gone     bool // its queue pair is closed
}

// String names it.
func (e *end) String() string {
	return fmt.Sprintf("pair %d.%d end %d (node %d)", e.pair.index, e.life, e.side, e.node.index)
}

// lost reports whether its host has gone down since.
func (e *end) lost() bool { return e.host != e.node.opened || !e.node.up }

// connect makes a queue pair at both ends, as a connection manager does.
func (p *pair) connect() {
	w := p.w
	for side := range p.ends {
		n := w.nodes[p.config.Nodes[side]]
		p.ends[side] = &end{pair: p, side: side, life: p.lives, node: n, host: n.opened}
	}
	p.ends[0].peer, p.ends[1].peer = p.ends[1], p.ends[0]
	for _, e := range p.ends {
		e.create()
	}
	for _, e := range p.ends {
		w.must(e.qp.Connect(w.ctx, e.info, e.peer.info, engine.ConnectOptions{
			SGIDIndex: 1, PathMTU: p.config.PathMTU, HopLimit: 64, Timeout: p.config.Timeout,
			RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 1, MaxRdAtomic: 16, Exact: true,
		}))
		e.harm = [2]uint64{e.node.harm, e.peer.node.harm}
		e.openAt = w.clock.Now() + roce.Time(w.rng.Int64N(int64(20*roce.Microsecond)))
		e.node.ends = append(e.node.ends, e)
	}
	p.lives++
	w.stats.Connections++
	w.say("pair %d.%d: queue pairs 0x%06x and 0x%06x", p.index, p.ends[0].life,
		p.ends[0].info.QPN, p.ends[1].info.QPN)
}

// create makes the queue pair and its receives.
func (e *end) create() {
	n, w := e.node, e.pair.w
	c := n.machine.Config()
	e.count = 2*c.Slots + 2*c.LargeSlots + 4*c.Rendezvous + 32
	n.admit(e.count + n.config.Depth)
	var err error
	e.pd = n.device.AllocPD()
	n.domains = append(n.domains, e.pd)
	e.qp, err = n.device.CreateQP(e.pd, engine.QPInit{
		SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: n.config.Depth, MaxRecvWR: e.count,
		MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: msg.MaxControlLen,
		Extensions: e.pair.config.Extensions,
	})
	w.must(err)
	w.must(e.qp.Init(mem.RemoteRead | mem.RemoteWrite))
	e.info, err = n.device.Endpoint(e.qp, 1)
	w.must(err)
	e.control, err = n.device.RegMR(e.pd, make([]byte, e.count*msg.MaxControlLen), mem.LocalWrite)
	w.must(err)
	for i := range e.count {
		w.must(e.receive(i))
	}
}

// receive posts a receive of the queue pair.
func (e *end) receive(i int) error {
	sge := e.control.SGE(i*msg.MaxControlLen, msg.MaxControlLen)
	return e.qp.PostRecv(&roce.RecvWR{WRID: receiveID | uint64(i), SGList: []roce.SGE{sge}})
}

// hello is what an end says of itself, as it travels.
func (e *end) hello() *msg.Hello {
	c := e.node.machine.Config()
	h := &msg.Hello{
		Version: msg.Version, MinVersion: msg.MinVersion, Capabilities: e.node.config.Caps,
		Service: msg.ServiceEndpoint, Payload: uint32(c.EagerLimit), Slots: uint16(c.Slots),
		Rendezvous: uint16(c.Rendezvous), Receives: uint32(e.count),
	}
	private := make([]byte, msg.HelloLen)
	h.Put(private)
	parsed, err := msg.ParseHello(private)
	e.pair.w.must(err)
	return &parsed
}

// open tells the machine of the connection.
func (e *end) open(now roce.Time) {
	var err error
	e.core, err = e.node.machine.Open(now, e.hello(), e.peer.hello(), e.node.config.Depth)
	e.pair.w.must(err)
	e.core.User = e
	e.pair.w.say("%s: open", e)
	for i := range e.early {
		e.complete(&e.early[i])
	}
	e.early = nil
	e.core.Start()
}

// complete hands a completion to the machine.
func (e *end) complete(wc *roce.Completion) {
	if e.core == nil {
		if wc.WRID&receiveID == 0 || wc.Status != roce.StatusSuccess {
			e.broken = true
		}
		e.early = append(e.early, *wc)
		return
	}
	now := e.pair.w.clock.Now()
	if wc.WRID&receiveID == 0 {
		e.node.machine.HandleWork(now, e.core.First(), wc)
		return
	}
	slot := int(wc.WRID &^ receiveID)
	var control []byte
	if wc.Status == roce.StatusSuccess {
		if wc.Opcode == roce.WCRecv {
			at := slot * msg.MaxControlLen
			control = append(control, e.control.Bytes()[at:at+int(wc.ByteLen)]...)
			if m, err := msg.ParseControl(control); err == nil {
				e.pair.w.say("%s: hears %v id %d len %d", e, m.Type, m.ID, m.Len)
			}
		}
		_ = e.receive(slot) // only the end of the queue pair can refuse it, which is told
	}
	e.node.machine.HandleArrival(now, e.core.First(), wc, control)
}

// tend does what is due, and reports whether there was anything.
func (e *end) tend(now roce.Time) bool {
	w := e.pair.w
	switch {
	case e.closeAt != 0 && (now >= e.closeAt || w.quiet):
		e.dismantle()
	case e.core == nil && now >= e.openAt:
		e.open(now)
	case e.hearAt != 0 && (now >= e.hearAt || w.quiet) && e.core != nil:
		e.hearAt = 0
		if e.over {
			return false
		}
		w.say("%s: hears that the peer has hung up", e)
		for e.node.poll() { // what had come before
		}
		e.core.Abort(now, errHungUp)
	case w.ending && e.core != nil && !e.closing && !e.over:
		e.close(now)
	default:
		return false
	}
	return true
}

// closed is told by the machine that the connection is over.
func (e *end) closed(now roce.Time) {
	w := e.pair.w
	e.err = e.core.Err()
	w.say("%s: over: %v", e, e.err)
	if e.over {
		w.fail(Once, "%s: it is over twice", e)
	}
	w.judgeEnd(e)
	e.finish(now)
	w.must(e.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
	e.broken = true
	e.closeAt = now + 1 + roce.Time(w.rng.Int64N(int64(50*roce.Microsecond)))
}

// lose is the end of the connection with its host.
func (e *end) lose() {
	if e.over {
		e.gone = true
		return
	}
	e.err, e.gone = errors.New("the host is down"), true
	e.finish(e.pair.w.clock.Now())
}

// finish ends an end, and has the peer hear of it.
func (e *end) finish(now roce.Time) {
	e.over = true
	e.pair.w.changes++
	e.peer.hearAt = now + 1 + roce.Time(e.pair.w.rng.Int64N(int64(100*roce.Microsecond)))
	e.peer.blame("the peer has ended it")
}

// blame says why the end may be over.
func (e *end) blame(why string) {
	if e.cause == "" {
		e.cause = why
	}
}

// dismantle gives back what is of the device.
func (e *end) dismantle() {
	n := e.node
	for n.poll() {
	}
	e.qp.Close()
	e.pair.w.must(e.control.Deregister())
	e.gone = true
	for i, other := range n.ends {
		if other == e {
			n.ends = append(n.ends[:i:i], n.ends[i+1:]...)
			break
		}
	}
	n.admit(-e.count - n.config.Depth)
}
