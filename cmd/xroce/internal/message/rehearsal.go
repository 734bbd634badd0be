package message

import (
	"errors"
	"math/rand/v2"

	"xroce/roce"
	"xroce/roce/clock"
	"xroce/roce/msg"
)

// A rehearsal is two machines of messages in memory, joined by a wire on which every way takes
// one step of time. What a message costs is what they do there: no rule of theirs is known here.
type rehearsal struct {
	ends  [2]*actor // the sender, the receiver
	wire  []passage // in the order of time
	now   clock.Time
	count *Cost // nil while nothing is counted
	err   error

	arrived func() // a receive is complete
}

// An actor is one end.
type actor struct {
	of       *rehearsal
	other    *actor
	sends    bool // it is the sender
	endpoint *msg.Endpoint
	conn     *msg.Conn
	memory   map[uint64][]byte // what was allocated, by its address
	top      uint64            // of the addresses that were given
	sent     *msg.Send         // that is complete
	received *msg.Receive
}

// A passage is something on the wire.
type passage struct {
	at clock.Time
	do func()
}

// step is the time that a way takes. So many of them are more than any message needs.
const (
	step     = clock.Nanosecond
	maxSteps = 1 << 24
)

// errEndless says that a machine does not come to rest.
var errEndless = errors.New("message: the rehearsal does not end")

// newRehearsal joins two machines of a configuration.
func newRehearsal(c msg.Config) (*rehearsal, error) {
	r := &rehearsal{now: clock.Second}
	c.Rand = rand.New(rand.NewPCG(1, 2)) // nothing is secret here
	for i := range r.ends {
		e, err := msg.New(c)
		if err != nil {
			return nil, err
		}
		r.ends[i] = &actor{
			of: r, sends: i == 0, endpoint: e, memory: map[uint64][]byte{}, top: 1 << 20,
		}
	}
	config := r.ends[0].endpoint.Config()
	hello := msg.Hello{
		Version: msg.Version, MinVersion: msg.MinVersion, Service: msg.ServiceEndpoint,
		Capabilities: msg.CapabilityGet | msg.CapabilityPut | msg.CapabilityProvision,
		Payload:      uint32(config.EagerLimit), Slots: uint16(config.Slots),
		Rendezvous: uint16(config.Rendezvous),
	}
	for i, a := range r.ends {
		a.other = r.ends[1-i]
		conn, err := a.endpoint.Open(r.now, &hello, &hello, 64)
		if err != nil {
			return nil, err
		}
		a.conn = conn
	}
	for _, a := range r.ends {
		a.conn.Start()
	}
	return r, nil
}

// run lets both go on until nothing more happens. What is timed out by a clock does not.
func (r *rehearsal) run() error {
	for range maxSteps {
		for _, a := range r.ends {
			a.act()
		}
		if r.err != nil {
			return r.err
		}
		if len(r.wire) == 0 {
			return nil
		}
		p := r.wire[0]
		r.wire = r.wire[1:]
		r.now = max(r.now, p.at)
		p.do()
	}
	return errEndless
}

// later puts something on the wire, behind all that is there for that time.
func (r *rehearsal) later(ways int, do func()) {
	p := passage{r.now + clock.Time(ways)*step, do}
	i := len(r.wire)
	for i > 0 && r.wire[i-1].at > p.at {
		i--
	}
	r.wire = append(r.wire, passage{})
	copy(r.wire[i+1:], r.wire[i:])
	r.wire[i] = p
}

// act does what the machine of an end wants done.
func (a *actor) act() {
	for busy := true; busy; {
		busy = false
		for q := a.endpoint.NextRequest(); q != nil; q = a.endpoint.NextRequest() {
			a.answer(q)
			busy = true
		}
		for {
			var wr roce.SendWR // a list of its own for each
			if a.endpoint.NextWork(a.of.now, &wr) == nil {
				break
			}
			a.post(wr)
			busy = true
		}
	}
	for s := a.endpoint.NextSent(); s != nil; s = a.endpoint.NextSent() {
		a.sent = s
	}
	for v := a.endpoint.NextReceived(); v != nil; v = a.endpoint.NextReceived() {
		a.received = v
		a.of.arrived()
	}
	for c := a.endpoint.NextClosed(); c != nil; c = a.endpoint.NextClosed() {
		a.of.err = errors.Join(a.of.err, c.Err())
	}
}

// answer gives memory at once. What was exposed is never looked at.
func (a *actor) answer(q *msg.Request) {
	m := msg.Memory{Key: msg.Key{Addr: a.top, LKey: 1, RKey: 1}}
	switch q.Kind {
	case msg.Allocate:
		m.Bytes = make([]byte, q.Size)
		a.memory[m.Addr] = m.Bytes
		a.of.count.allocated(a.sends, q.Size)
	case msg.Expose:
		a.of.count.exposed(a.sends, q.Pieces)
	case msg.Release:
		delete(a.memory, q.Given.Addr)
		m = msg.Memory{}
	}
	a.top += uint64(q.Size) + 1<<20
	a.endpoint.Answer(a.of.now, q, m, nil)
}

// at is the memory at an address, nil where nothing is.
func (a *actor) at(addr uint64, n int) []byte {
	for base, b := range a.memory {
		if addr >= base && addr+uint64(n) <= base+uint64(len(b)) {
			return b[addr-base:][:n]
		}
	}
	return nil
}

// post executes a work request: it is there after one way, and complete after another.
func (a *actor) post(wr roce.SendWR) {
	r, op := a.of, wr.Opcode
	length := 0
	if len(wr.SGList) > 0 {
		length = int(wr.SGList[0].Length)
	}
	came := roce.Completion{Imm: wr.Imm}
	var control []byte
	switch op {
	case roce.OpSend:
		control = append([]byte(nil), wr.Inline...)
		came.Opcode, came.ByteLen = roce.WCRecv, uint32(len(control))
		r.count.said(a.sends, control)
	case roce.OpWriteImm:
		frame := append([]byte(nil), a.at(wr.SGList[0].Addr, length)...)
		came.Opcode, came.ByteLen = roce.WCRecvRDMAWithImm, uint32(length)
		r.count.framed(frame)
		r.later(1, func() { copy(a.other.at(wr.RemoteAddr, length), frame) })
	case roce.OpRead:
		r.count.read(length)
	default:
		r.count.wrote(length)
	}
	if came.Opcode != 0 {
		r.later(1, func() {
			a.other.endpoint.HandleArrival(r.now, a.other.conn.First(), &came, control)
		})
	}
	done := roce.Completion{WRID: wr.WRID}
	r.later(2, func() { a.endpoint.HandleWork(r.now, a.conn.First(), &done) })
}
