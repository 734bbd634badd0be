package msg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// A world is endpoints, joined by queue pairs that never lose anything, and memory with real
// keys. What happens next is drawn: a work request is executed, a completion is told, a
// request for memory is answered or refused.
type world struct {
	t     *testing.T
	rand  *rand.Rand
	now   clock.Time
	nodes []*node
	pipes []*pipe
	said  []Control // all control messages
	// hold says of a work request that it is never executed, and so none behind it complete.
	hold    func(c *Conn, wr *verbs.SendWR) bool
	stored  func(c *Conn, imm Immediate) // a frame of c is in the peer's slot
	slow    func(r *Request) bool        // a request for memory that is not answered now
	idle    bool                         // now and then so much time goes by that timers run
	stingy  int                          // of 100 requests for memory, how many are refused
	unacked bool                         // nothing that was posted completes
}

// A node is an endpoint with the keys of its device.
type node struct {
	world    *world
	endpoint *Endpoint
	keys     *mem.Keys   // of the first adapter
	tables   []*mem.Keys // of all
	requests []*Request
	regions  map[*mem.Region]bool
}

// A pipe is one direction of a queue pair.
type pipe struct {
	from, to *node
	conn     *Conn          // of from
	rail     *Rail          // of that
	cut      bool           // nothing passes
	late     []verbs.SendWR // on the way, while from has given up
	peer     *pipe          // the other direction
	queue    []verbs.SendWR
	done     []verbs.Completion // of its work requests, not told yet
	came     []arrivedWC        // at to, not told yet
	dead     bool
	held     bool       // none of its work requests complete any more
	lies     bool       // its from is played by a test
	over     bool       // the peer has hung up, which was not told yet
	domain   mem.Domain // of from, for this peer alone
}

type arrivedWC struct {
	wc      verbs.Completion
	control []byte
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: clock.Second}
}

func (w *world) node(c Config) *node {
	w.t.Helper()
	c.Rand = w.rand
	if w.idle && c.Stall == 0 {
		c.Stall = clock.Second << 20 // it is as if peers took as long
	}
	e, err := New(c)
	must(w.t, err)
	n := &node{world: w, endpoint: e, regions: map[*mem.Region]bool{}}
	for range e.config.Rails {
		n.tables = append(n.tables, mem.NewKeys(w.rand))
	}
	n.keys = n.tables[0]
	w.nodes = append(w.nodes, n)
	return n
}

// hello is what the nodes of tests say.
func (n *node) hello(caps Capabilities) *Hello {
	c := &n.endpoint.config
	return &Hello{
		Version: Version, MinVersion: MinVersion, Capabilities: caps, Service: ServiceEndpoint,
		Payload: uint32(c.EagerLimit), Slots: uint16(c.Slots), Rendezvous: uint16(c.Rendezvous),
	}
}

const allCapabilities = CapabilityGet | CapabilityPut | CapabilityProvision

// join connects two nodes and returns both ends.
func (w *world) join(a, b *node, caps Capabilities) (*Conn, *Conn) {
	w.t.Helper()
	return w.joinWith(a, b, a.hello(caps), b.hello(caps))
}

// joinStream connects two nodes by a stream.
func (w *world) joinStream(a, b *node) (*Conn, *Conn) {
	w.t.Helper()
	ha, hb := a.hello(allCapabilities), b.hello(allCapabilities)
	ha.Service, hb.Service = ServiceStream, ServiceStream
	return w.joinWith(a, b, ha, hb)
}

func (w *world) joinWith(a, b *node, ha, hb *Hello) (*Conn, *Conn) {
	w.t.Helper()
	ca, err := a.endpoint.Open(w.now, ha, hb, 16)
	must(w.t, err)
	cb, err := b.endpoint.Open(w.now, hb, ha, 16)
	must(w.t, err)
	pa, _ := w.lay(ca.First(), cb.First(), a, b)
	ca.User, cb.User = pa, pa.peer
	ca.Start()
	cb.Start()
	return ca, cb
}

// lay joins two ends of a rail by a queue pair.
func (w *world) lay(ra, rb *Rail, a, b *node) (pa, pb *pipe) {
	pa = &pipe{from: a, to: b, conn: ra.conn, rail: ra}
	pb = &pipe{from: b, to: a, conn: rb.conn, rail: rb}
	pa.peer, pb.peer = pb, pa
	ra.User, rb.User = pa, pb
	w.pipes = append(w.pipes, pa, pb)
	return pa, pb
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}

// step does one thing that is there to be done, drawn, and reports whether there was any.
func (w *world) step() bool {
	var todo []func()
	for _, n := range w.nodes {
		for {
			var wr verbs.SendWR
			r := n.endpoint.NextWork(w.now, &wr)
			if r == nil {
				break
			}
			p := r.User.(*pipe)
			p.checkFence(&wr)
			if w.hold != nil && w.hold(r.conn, &wr) {
				p.held = true
				continue
			}
			wr.Inline = append([]byte(nil), wr.Inline...)
			p.queue = append(p.queue, wr)
		}
		for c := n.endpoint.NextClosed(); c != nil; c = n.endpoint.NextClosed() {
			w.hangUp(c)
		}
		for r := n.endpoint.NextLost(); r != nil; r = n.endpoint.NextLost() {
			r.User.(*pipe).kill()
		}
		for r := n.endpoint.NextRequest(); r != nil; r = n.endpoint.NextRequest() {
			if w.slow == nil || !w.slow(r) {
				n.requests = append(n.requests, r)
			}
		}
		for i := range n.requests {
			todo = append(todo, func() { n.answer(i) })
		}
	}
	for _, p := range w.pipes {
		// What is flushed is told behind what came before: there is one CQ.
		if len(p.queue) > 0 && !(p.dead && len(p.peer.came) > 0) {
			todo = append(todo, p.execute)
		}
		// What connection management tells comes behind what came before.
		if p.over && len(p.queue) == 0 && len(p.done) == 0 && len(p.peer.came) == 0 {
			todo = append(todo, func() {
				p.over = false
				p.rail.Lose(w.now, errHungUp)
			})
		}
		if len(p.late) > 0 {
			todo = append(todo, p.arriveLate)
		}
		if len(p.done) > 0 && !w.unacked {
			todo = append(todo, func() {
				wc := p.done[0]
				p.done = p.done[1:]
				p.from.endpoint.HandleWork(w.now, p.rail, &wc)
			})
		}
		if len(p.came) > 0 {
			todo = append(todo, func() {
				a := p.came[0]
				p.came = p.came[1:]
				p.to.endpoint.HandleArrival(w.now, p.peer.rail, &a.wc, a.control)
			})
		}
	}
	if len(todo) == 0 {
		return false
	}
	w.now += clock.Microsecond
	if w.idle && w.rand.IntN(100) == 0 {
		w.now += clock.Time(w.rand.IntN(20)) * clock.Second
		for _, n := range w.nodes {
			n.endpoint.HandleDeadline(w.now)
		}
	}
	todo[w.rand.IntN(len(todo))]()
	return true
}

// settle goes on until nothing more happens.
func (w *world) settle() {
	for n := 0; w.step(); n++ {
		if n > 100_000 {
			w.t.Fatal("it never ends")
		}
	}
}

var (
	errNoMemory = errors.New("no memory")
	errHungUp   = errors.New("hung up")
)

// answer answers a request.
func (n *node) answer(i int) {
	w := n.world
	r := n.requests[i]
	n.requests = append(n.requests[:i], n.requests[i+1:]...)
	switch r.Kind {
	case Release:
		n.free(r.Given.Owner)
		n.endpoint.Answer(w.now, r, Memory{}, nil)
		return
	case Load, Store:
		n.endpoint.Answer(w.now, r, Memory{}, r.Region.(*slab).move(r))
		return
	}
	if w.rand.IntN(100) < w.stingy && (r.Kind == Expose || r.Size > 40_000) {
		n.endpoint.Answer(w.now, r, Memory{}, errNoMemory)
		return
	}
	access := mem.LocalWrite
	if r.Remote {
		access |= mem.RemoteWrite
	}
	if r.ToRead {
		access = mem.RemoteRead
	}
	var b []byte
	if r.Kind == Allocate {
		b = make([]byte, r.Size)
	} else if r.Region != nil {
		b = r.Region.(*slab).b[:r.Size]
	} else if len(r.Pieces) == 1 {
		b = r.Pieces[0]
	} else {
		n.endpoint.Answer(w.now, r, Memory{}, errNoMemory)
		return
	}
	m := n.register(r.Conn, b, access)
	if r.Kind == Allocate {
		m.Bytes = b
	}
	n.endpoint.Answer(w.now, r, m, nil)
}

// execute does what the next work request of a queue pair says.
func (p *pipe) execute() {
	wr := p.queue[0]
	p.queue = p.queue[1:]
	if p.peer.lies { // what goes to a liar goes nowhere
		if wr.Opcode == verbs.OpSend {
			m, err := ParseControl(wr.Inline)
			must(p.from.world.t, err)
			p.from.world.said = append(p.from.world.said, m)
		}
		p.done = append(p.done, verbs.Completion{WRID: wr.WRID, Opcode: wr.Opcode.Op().WC})
		return
	}
	if p.dead || p.lies {
		p.done = append(p.done, verbs.Completion{WRID: wr.WRID, Status: verbs.StatusWRFlushErr})
		return
	}
	if p.cut || p.peer.dead {
		p.giveUp(wr)
		return
	}
	if wc := p.pass(wr); !p.held {
		p.done = append(p.done, wc)
	}
}

// pass has the peer take a work request, and returns its completion.
func (p *pipe) pass(wr verbs.SendWR) verbs.Completion {
	here, there := p.tables()
	own := p.home().domain.Local()
	data := wr.Inline
	for _, s := range wr.SGList {
		b := make([]byte, s.Length)
		if wr.Opcode != verbs.OpRead {
			p.check(&wr, here.Load(own, s.LKey, s.Addr, b, 0))
		}
		data = append(data, b...)
	}
	peer := mem.Accessor{Domain: &p.peer.home().domain}
	wc := verbs.Completion{WRID: wr.WRID, Opcode: wr.Opcode.Op().WC}
	came := verbs.Completion{ByteLen: uint32(len(data)), Imm: wr.Imm}
	switch wr.Opcode {
	case verbs.OpSend:
		came.Opcode = verbs.WCRecv
		m, err := ParseControl(data)
		must(p.from.world.t, err)
		p.from.world.said = append(p.from.world.said, m)
		p.came = append(p.came, arrivedWC{came, data})
	case verbs.OpWriteImm:
		p.check(&wr, there.Store(peer, wr.RKey, wr.RemoteAddr, data, mem.RemoteWrite))
		came.Opcode = verbs.WCRecvRDMAWithImm
		if stored := p.from.world.stored; stored != nil {
			stored(p.conn, ParseImmediate(wr.Imm))
		}
		p.came = append(p.came, arrivedWC{wc: came})
	case verbs.OpWrite:
		if len(data) > 0 {
			p.check(&wr, there.Store(peer, wr.RKey, wr.RemoteAddr, data, mem.RemoteWrite))
		}
	case verbs.OpRead:
		p.check(&wr, there.Load(peer, wr.RKey, wr.RemoteAddr, data, mem.RemoteRead))
		s := wr.SGList[0]
		p.check(&wr, here.Store(own, s.LKey, s.Addr, data, mem.LocalWrite))
	case verbs.OpFetchAdd, verbs.OpCmpSwap:
		old, fault := uint64(0), mem.OK
		if wr.Opcode == verbs.OpFetchAdd {
			old, fault = there.FetchAdd(peer, wr.RKey, wr.RemoteAddr, wr.CompareAdd)
		} else {
			old, fault = there.CompareSwap(peer, wr.RKey, wr.RemoteAddr, wr.CompareAdd, wr.Swap)
		}
		p.check(&wr, fault)
		binary.NativeEndian.PutUint64(data, old)
		for _, s := range wr.SGList { // there is none of one that was given up
			p.check(&wr, here.Store(own, s.LKey, s.Addr, data, mem.LocalWrite))
		}
	default:
		p.from.world.t.Fatalf("%v", wr.Opcode)
	}
	return wc
}

func (p *pipe) check(wr *verbs.SendWR, f mem.Fault) {
	if f != mem.OK {
		panic(fmt.Sprint("fault ", f, " ", wr.Opcode, ParseImmediate(wr.Imm), wr.RKey))
	}
}
