package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/internal/timer"
	"xroce/roce/msg/match"
)

// MaxMessage is the longest message in bytes.
const MaxMessage = 1 << 40

// An Endpoint is the messages of an application and its peers: the connections, what is to be
// received from them, and what they sent that nobody wanted yet. It is not safe for concurrent
// use. The package comment says how it is driven.
type Endpoint struct {
	config Config
	match  *match.Matcher[Receive, arrival]

	ready      list.List[Conn]               // that may have work
	throttled  []*Conn                       // that wait for the pull window
	slots      *match.Matcher[Receive, Conn] // messages that wait there for a receive
	busy       list.List[Conn]               // whose messages wait there for their handler
	requests   list.List[Request]
	sent       list.List[Send]
	received   list.List[Receive]
	closed     []*Conn
	lost       list.List[Rail]
	rmas       list.List[RMA]
	sessions   map[Token]*Conn // that peers may add rails to
	moved      fifo[*Conn]     // streams that may go on
	timers     timer.Set
	pulling    int   // bytes of READs that are not complete
	registered int64 // bytes of slots for peers
	held       int64 // bytes that were asked for by Allocate and not given back
	spare      list.List[arrival]
	over       []*Conn // that have ended, with messages that nobody has received
	left       int64   // what these cost at most
	count      CounterSet
	handlers   map[uint16]Handler
	active     Active // what a handler is called with
	claims     uint64
	unmatched  uint64

	streamClasses [1]int
}

// New makes an endpoint without peers. The error is ErrInvalid.
func New(c Config) (*Endpoint, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	seed := [2]uint64{c.Rand.Uint64(), c.Rand.Uint64()}
	return &Endpoint{
		config: c, match: match.New[Receive, arrival](seed),
		slots: match.New[Receive, Conn](seed), streamClasses: [1]int{c.StreamSlot},
	}, nil
}

// Hear judges the private data of a peer that wants a connection, or of one that took one. The
// error is that of ParseHello or Agree, or a *StatusError with which the peer refuses; it is
// counted.
func (e *Endpoint) Hear(ours *Hello, private []byte) (theirs Hello, err error) {
	if theirs, err = ParseHello(private); err == nil && theirs.Status != StatusOK {
		err = &StatusError{Status: theirs.Status}
	}
	if err == nil {
		_, err = Agree(ours, &theirs)
	}
	if err != nil {
		e.count.Inc(HellosRefused)
	}
	return theirs, err
}

// Unmatched is how many messages came, or were announced, that no receive was there for: Probe
// finds those that none has taken since.
func (e *Endpoint) Unmatched() uint64 { return e.unmatched }

// NextSent returns a message that is complete, nil when there is none: Err says whether it
// was sent.
func (e *Endpoint) NextSent() *Send { return e.sent.Pop() }

// NextReceived returns a receive that is complete, nil when there is none.
func (e *Endpoint) NextReceived() *Receive { return e.received.Pop() }

// NextClosed returns a connection that is over, nil when there is none; its Err says why. Its
// queue pair may be closed.
func (e *Endpoint) NextClosed() *Conn {
	if len(e.closed) == 0 {
		return nil
	}
	c := e.closed[0]
	e.closed = e.closed[1:]
	return c
}

// ask wants something of memory.
func (e *Endpoint) ask(r *Request) {
	if r.Kind == Allocate {
		e.held += int64(r.Size)
	}
	e.requests.Push(&r.links, r)
}

// exceeds reports whether so many bytes more are beyond what there may be.
func (e *Endpoint) exceeds(n int64) bool { return e.held+n > e.config.Registered }

// NextRequest returns what is wanted of memory, nil when nothing is. It must be answered.
func (e *Endpoint) NextRequest() *Request {
	r := e.requests.Pop()
	if r != nil {
		r.asked = true
	}
	return r
}

// Answer answers a request: with memory, or why there is none. That of Release is no memory
// and no error.
func (e *Endpoint) Answer(now clock.Time, r *Request, m Memory, err error) {
	r.asked = false
	switch {
	case r.Kind == Release:
		e.held -= int64(len(r.Given.Bytes))
	case r.Kind == Allocate && err != nil:
		e.held -= int64(r.Size)
	}
	r.asker.answer(now, r, m, err)
}

// giveBack releases memory that nobody waits for.
func (e *Endpoint) giveBack(c *Conn, m Memory) {
	e.ask(&Request{Kind: Release, Conn: c, Given: m, asker: nobody{}})
}

// nobody waits for an answer.
type nobody struct{}

func (nobody) answer(clock.Time, *Request, Memory, error) {}

// NextDeadline returns when HandleDeadline wants to be called, false for never.
func (e *Endpoint) NextDeadline() (clock.Time, bool) { return e.timers.Next() }

// HandleDeadline does what is due. It may be called at any time.
func (e *Endpoint) HandleDeadline(now clock.Time) { e.timers.Expire(now) }

// Config returns the configuration with its defaults.
func (e *Endpoint) Config() Config { return e.config }
