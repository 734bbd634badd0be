package model

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"xroce/roce"
	"xroce/roce/clock"
	"xroce/roce/msg"
)

// Costs are what the steps take.
type Costs struct {
	Delay     clock.Time // from one end to the other
	Step      clock.Time // to post a work request and to handle what came, both ends together
	PerByte   float64    // nanoseconds on the wire
	Copy      float64    // nanoseconds a byte that a processor copies
	Register  clock.Time // to give a key to memory, or to make some
	PinByte   float64    // nanoseconds a byte more for that, of memory that has to be pinned
	Rails     int        // of each connection, 0 for one
	EndOfTime clock.Time // a run that is not over by then fails, 0 for an hour
}

// ErrEndless says that a machine does not come to rest.
var ErrEndless = errors.New("model: the run does not end")

// A Wire joins a sender and a receiver with any number of connections.
type Wire struct {
	costs Costs
	now   clock.Time
	ends  [2]*end
	due   agenda
	order int
	err   error
	pairs map[*msg.Rail]*track
	maps  [][]byte // all memory that either end ever had
}

// An end is one endpoint.
type end struct {
	wire     *Wire
	index    int
	endpoint *msg.Endpoint
	conns    []*msg.Conn
	memory   []block // what there is, in the order of addresses
	top      uint64  // of the addresses
	sent     *msg.Send
	received *msg.Receive
	arrived  func(*msg.Receive)       // is told of each, nil for nobody
	wires    [msg.MaxRails]clock.Time // until when the wire of each rail from here is taken
	// registered is what has a key now, and most what ever had at once.
	registered, most int64
	sizes            map[uint64]int64 // of what was exposed
}

// A block is memory of an end.
type block struct {
	addr  uint64
	bytes []byte
}

// An event is something that happens later.
type event struct {
	at    clock.Time
	order int
	do    func()
}

// An agenda is what happens, soonest first.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }

func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// New joins two machines of a configuration with so many connections, and lets them come to rest.
// Close gives back what they hold. The errors are those of msg.New, of msg.Endpoint.Open and of
// mmap, and ErrEndless.
func New(c msg.Config, costs Costs, connections int) (*Wire, error) {
	if costs.EndOfTime == 0 {
		costs.EndOfTime = 3600 * clock.Second
	}
	w := &Wire{costs: costs, now: clock.Second, pairs: map[*msg.Rail]*track{}}
	c.Rails = max(1, costs.Rails)
	c.Rand = rand.New(rand.NewPCG(1, 2)) // nothing is secret here
	for i := range w.ends {
		e, err := msg.New(c)
		if err != nil {
			return nil, err
		}
		w.ends[i] = &end{wire: w, index: i, endpoint: e, top: 1 << 20, sizes: map[uint64]int64{}}
	}
	for range connections {
		if err := w.connect(); err != nil {
			w.Close()
			return nil, err
		}
	}
	if err := w.rest(func() bool { return false }); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Send sends a message of n bytes over a connection and returns how long that took, from the call
// to the receive that is complete, by which protocol. Then it lets both ends come to rest.
func (w *Wire) Send(connection, n int, by msg.Protocol) (clock.Time, msg.Protocol, error) {
	from, to := w.ends[0], w.ends[1]
	from.sent, to.received = nil, nil
	r := &msg.Receive{Pieces: [][]byte{make([]byte, n)}}
	if err := to.endpoint.Receive(w.now, r); err != nil {
		return 0, 0, err
	}
	s := &msg.Send{Pieces: [][]byte{make([]byte, n)}, Protocol: by}
	began := w.now
	if err := from.conns[connection].Send(w.now, s); err != nil {
		return 0, 0, err
	}
	if err := w.rest(func() bool { return to.received != nil }); err != nil {
		return 0, 0, err
	}
	took := w.now - began
	if err := w.rest(func() bool { return false }); err != nil {
		return 0, 0, err
	}
	if to.received == nil || from.sent == nil {
		return 0, 0, fmt.Errorf("%w: a message of %d bytes did not come", ErrEndless, n)
	}
	return took, s.Choice.Protocol, errors.Join(s.Err, r.Err)
}

// Registered is how many bytes of the receiver have a key now, the slots of all connections among
// them.
func (w *Wire) Registered() int64 { return w.ends[1].registered }

// rest lets both go on until it is done or nothing more happens.
func (w *Wire) rest(done func() bool) error {
	for w.err == nil {
		for _, e := range w.ends {
			e.act()
		}
		if done() || len(w.due) == 0 {
			return w.err
		}
		next := heap.Pop(&w.due).(event)
		if w.now = max(w.now, next.at); w.now > w.costs.EndOfTime {
			return ErrEndless
		}
		next.do()
	}
	return w.err
}

// at has something happen at a time, behind all that does then.
func (w *Wire) at(t clock.Time, do func()) {
	w.order++
	heap.Push(&w.due, event{t, w.order, do})
}

// act does what the machine of an end wants done.
func (e *end) act() {
	w := e.wire
	for busy := true; busy; {
		busy = false
		for q := e.endpoint.NextRequest(); q != nil; q = e.endpoint.NextRequest() {
			e.answer(q)
			busy = true
		}
		for {
			var wr roce.SendWR // a list of its own for each
			rail := e.endpoint.NextWork(w.now, &wr)
			if rail == nil {
				break
			}
			e.post(rail, wr)
			busy = true
		}
	}
	for s := e.endpoint.NextSent(); s != nil; s = e.endpoint.NextSent() {
		e.sent = s
	}
	for r := e.endpoint.NextReceived(); r != nil; r = e.endpoint.NextReceived() {
		if e.received = r; e.arrived != nil {
			e.arrived(r)
		}
	}
	for r := e.endpoint.NextLost(); r != nil; r = e.endpoint.NextLost() {
		w.pairs[r].die(w)
	}
	for c := e.endpoint.NextClosed(); c != nil; c = e.endpoint.NextClosed() {
		w.err = errors.Join(w.err, c.Err())
	}
}

// answer gives memory once it is registered. What was exposed is never looked at.
func (e *end) answer(q *msg.Request) {
	w := e.wire
	m := msg.Memory{Key: msg.Key{Addr: e.top, LKey: 1, RKey: 1}}
	for i := range m.Further {
		m.Further[i] = m.Key
	}
	size := int64(q.Size)
	switch q.Kind {
	case msg.Allocate:
		var err error
		if m.Bytes, err = w.mapped(q.Size); err != nil {
			w.err = errors.Join(w.err, err)
			return
		}
		e.memory = append(e.memory, block{m.Addr, m.Bytes})
	case msg.Expose:
		size = 0
		for _, p := range q.Pieces {
			size += int64(len(p))
		}
	case msg.Release:
		e.registered -= e.sizes[q.Given.Addr]
		delete(e.sizes, q.Given.Addr)
		e.memory = slices.DeleteFunc(e.memory, func(b block) bool { return b.addr == q.Given.Addr })
		e.endpoint.Answer(w.now, q, msg.Memory{}, nil)
		return
	}
	e.top += uint64(size) + 1<<20
	e.sizes[m.Addr] = size
	e.registered += size
	e.most = max(e.most, e.registered)
	took := w.costs.Register + clock.Time(w.costs.PinByte*float64(size))
	w.at(w.now+took, func() { e.endpoint.Answer(w.now, q, m, nil) })
}

// find is the memory at an address, nil where nothing was allocated.
func (e *end) find(addr uint64, n int) []byte {
	i, found := slices.BinarySearchFunc(e.memory, addr, func(b block, addr uint64) int {
		switch {
		case b.addr > addr:
			return 1
		case b.addr < addr:
			return -1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	b := e.memory[i]
	if addr+uint64(n) > b.addr+uint64(len(b.bytes)) {
		return nil
	}
	return b.bytes[addr-b.addr:][:n]
}

// leave is when n bytes that are posted now have left, behind what left before them.
func (e *end) leave(rail *msg.Rail, n int, copied bool) clock.Time {
	w, wire := e.wire, &e.wires[rail.Number()]
	at := max(w.now+w.costs.Step, *wire)
	took := w.costs.PerByte * float64(n)
	if copied { // by the same processor that sends
		took += w.costs.Copy * float64(n)
	}
	*wire = at + clock.Time(took)
	return *wire
}

// post executes a work request.
func (e *end) post(rail *msg.Rail, wr roce.SendWR) {
	w, other, here := e.wire, e.wire.ends[1-e.index], e.wire.pairs[rail]
	here.posted++
	length := 0
	if len(wr.SGList) > 0 {
		length = int(wr.SGList[0].Length)
	}
	done := roce.Completion{WRID: wr.WRID}
	complete := func() {
		if here.dead {
			done.Status = roce.StatusWRFlushErr
		}
		e.endpoint.HandleWork(w.now, rail, &done)
		here.posted--
		here.settle(w)
	}
	came := roce.Completion{Imm: wr.Imm}
	arrive := func(control []byte) {
		if !here.dead && !here.peer.dead {
			other.endpoint.HandleArrival(w.now, here.peer.rail, &came, control)
		}
	}
	switch wr.Opcode {
	case roce.OpSend:
		control := slices.Clone(wr.Inline)
		came.Opcode, came.ByteLen = roce.WCRecv, uint32(len(control))
		arrival := e.leave(rail, len(control), false) + w.costs.Delay
		w.at(arrival, func() { arrive(control) })
		w.at(arrival+w.costs.Delay, complete)
	case roce.OpWriteImm:
		frame := slices.Clone(e.find(wr.SGList[0].Addr, length))
		came.Opcode, came.ByteLen = roce.WCRecvRDMAWithImm, uint32(length)
		arrival := e.leave(rail, length, true) + w.costs.Delay
		w.at(arrival, func() { copy(other.find(wr.RemoteAddr, length), frame) })
		w.at(arrival+clock.Time(w.costs.Copy*float64(length)), func() { arrive(nil) })
		w.at(arrival+w.costs.Delay, complete)
	case roce.OpRead: // the request, and the bytes behind it
		asked := e.leave(rail, 0, false) + w.costs.Delay
		w.at(asked, func() {
			w.at(other.leave(here.peer.rail, length, false)+w.costs.Delay, complete)
		})
	default:
		arrival := e.leave(rail, length, false) + w.costs.Delay
		w.at(arrival+w.costs.Delay, complete)
	}
}
