package msg

import (
	"errors"
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/internal/timer"
	"xroce/roce/msg/match"
)

// MinDepth is how many work requests the send queue of a connection has room for, at least.
const MinDepth = 4

// A Conn is a peer of an endpoint. Its methods are called as the endpoint's are.
type Conn struct {
	endpoint *Endpoint
	User     any // the owner's

	links  list.Link[Conn] // of those that may have work
	source match.Peer[Receive, arrival]
	ours   Hello
	agreed Agreement
	state  connState
	err    error
	slot   inSlot

	// The rails, see rail.go.
	rails      []*Rail
	first      *Rail
	control    *Rail // that of frames and control messages, nil while there is none
	several    bool  // there may be more than one
	leads      bool  // this end has dialled
	theirRails uint8
	resume     resume
	stranded   timer.Timer // until when one has to come back
	strandedBy error

	// What goes out.
	pending      list.List[Send] // in the order of their posts
	puts         list.List[Send]
	fragments    list.List[Send]
	marks        list.List[Send] // of Flush, in the order of their posts
	order        uint64          // of the last that was posted
	sends        []*Send         // that were announced, by ID
	lastID       uint32
	generation   uint32
	syncs        map[uint64]*Send
	tooLong      int // messages that did not fit a small slot
	out          fifo[item]
	unseen       fifo[item] // of several rails: what was posted and is not complete
	posted       uint64     // work requests
	frames       uint32     // that were begun
	controls     uint32     // that were posted
	framesOut    int        // that are in out
	framesFlying int
	gathered     bool // the last frame had several records, too many for a small slot
	open         openFrame
	lanes        [2]lane
	announced    bool // the peer's slots are there
	offered      *offer
	asking       asking
	local        *localRing // of mode LocalOnly
	localUsed    clock.Time
	costs        costs
	crowd        timer.Timer // when the message at the head has waited too long for a slot
	scratch      [MaxControlLen]byte
	wire         Control // in the form of the rail by which it goes

	// What comes in.
	in            []*inRing
	epoch         uint32 // of the newest small slots
	asked         uint32 // epoch of the newest large slots that the peer wants
	arrivals      fifo[arrived]
	announcements int        // of these
	muted         bool       // they wait for what is to be said
	incoming      []*arrival // that were announced, by ID
	pulls         list.List[arrival]
	rma           rmas
	throttled     bool // they wait for the pull window
	pulling       int  // bytes of READs that are not complete
	peerFrames    uint32
	peerControls  uint32
	consumed      [2]uint32 // frames that were taken out
	told          [2]uint32 // of these, those that the peer was told of
	credit        bool      // a message that tells it waits
	tell          bool      // the peer wants to be told soon
	heardLast     bool      // the peer has said that it sends no more
	finished      bool      // and what it sent was looked at
	saidLast      bool      // and we neither
	heard         clock.Time
	keepalive     timer.Timer
	farewell      bool        // BYE waits
	why           Status      // what it says
	goodbye       timer.Timer // until when it has to be there
	stall         timer.Timer // when messages that are received are looked after

	stream stream
}

// peer is the connection as a source of messages, nil for any.
func (c *Conn) peer() *match.Peer[Receive, arrival] {
	if c == nil {
		return nil
	}
	return &c.source
}

// A connState is where a connection stands.
type connState uint8

const (
	connOpen   connState = iota
	connEnding           // Close was called
	connBroken           // the peer broke the protocol, and is being told
	connDead
)

// over reports whether nothing is taken from the peer any more, and nothing given to it.
func (c *Conn) over() bool { return c.state >= connBroken }

// Open adds a peer with which hellos were exchanged. Its queue pair has room for depth work
// requests in its send queue, and is used for nothing else; it is the first of Conn.Rails. The
// small slots are asked for at once, without a call of the application. The error is ErrInvalid,
// ErrRails for hellos with rails that cannot be, or that of Agree.
func (e *Endpoint) Open(now clock.Time, ours, theirs *Hello, depth int) (*Conn, error) {
	if depth < MinDepth {
		return nil, fmt.Errorf("%w: a send queue of %d: want %d", ErrInvalid, depth, MinDepth)
	}
	agreed, err := Agree(ours, theirs)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		endpoint: e, ours: *ours, agreed: agreed, heard: now,
		sends:    make([]*Send, clamp(int(theirs.Rendezvous), e.config.Rendezvous)),
		incoming: make([]*arrival, e.config.Rendezvous),
		syncs:    map[uint64]*Send{},
	}
	if err := c.firstRail(now, theirs, depth); err != nil {
		return nil, err
	}
	c.asking.conn = c
	c.asking.patience.Run = func(now clock.Time) { c.asking.giveUp(now, 0) }
	c.asking.idle.Run = c.shrink
	c.keepalive.Run = c.keepAlive
	c.crowd.Run = c.announceCrowded
	c.stall.Run = c.lookAfter
	c.stranded.Run = func(now clock.Time) { c.fail(now, c.strandedBy) }
	c.goodbye.Run = func(now clock.Time) { c.fail(now, c.err) }
	if ours.Service == ServiceStream {
		c.stream.init(c)
	} else if err := errors.Join(e.match.Add(&c.source), c.slot.init(c)); err != nil {
		return nil, err
	}
	slots := e.config.Slots
	c.makeRing(0, 0, slots, int(SlotLen(uint32(e.config.EagerLimit))))
	if e.config.Keepalive > 0 {
		e.timers.Set(&c.keepalive, now+e.config.Keepalive)
	}
	return c, nil
}

// clamp is what a peer allows, within 1 and what we would use.
func clamp(allowed, own int) int { return max(1, min(allowed, own)) }

// firstRail makes the rail by which the hellos came.
func (c *Conn) firstRail(now clock.Time, theirs *Hello, depth int) error {
	r := Rail{}
	c.several = c.agreed.Capabilities&CapabilityRails != 0
	if c.several {
		c.leads, c.theirRails = c.ours.Session == Token{}, max(theirs.Rails, 1)
		switch {
		case c.theirRails > MaxRails, theirs.Rail >= c.theirRails,
			c.leads == (theirs.Session == Token{}):
			return ErrRails
		}
		if !c.leads {
			c.endpoint.join(c.ours.Session, c)
		}
		r.theirs = theirs.Rail // else the peer has one key for anything
	}
	if r.ours = c.ours.Rail; int(r.ours) >= c.endpoint.config.Rails {
		return ErrRails
	}
	c.first = c.addRail(now, r.ours, r.theirs, depth)
	c.control, c.first.ordered = c.first, true
	return nil
}

// Start says that the queue pair of the first rail can send.
func (c *Conn) Start() { c.first.Start(c.heard) }

// First returns the rail by which the hellos came, also when it is lost.
func (c *Conn) First() *Rail { return c.first }

// Adapters says which adapters the memory of the connection is for, a bit each from the lowest
// on: all when it may have several rails, else that of its own.
func (c *Conn) Adapters() uint8 {
	if c.several {
		return 1<<c.endpoint.config.Rails - 1
	}
	return 1 << c.ours.Rail
}

// Err returns why the connection is over, nil while it is not.
func (c *Conn) Err() error { return c.err }

// Send posts a message. It goes behind those that were posted before, whatever protocol each
// takes. The error is ErrQueued when s is under way, ErrInvalid, or why the connection is over.
func (c *Conn) Send(now clock.Time, s *Send) error {
	if err := c.maySend(s); err != nil {
		return err
	}
	s.measure()
	if s.length > MaxMessage {
		return fmt.Errorf("%w: a message of %d bytes: at most %d", ErrInvalid, s.length, MaxMessage)
	}
	c.prepare(now, s)
	if s.length > c.endpoint.config.EagerLimit {
		c.tooLong++
	}
	if c.pending.Len() == 0 && c.fragments.Len() == 0 && c.launch(now, s) {
		c.wake() // which is most of them, and nothing else has changed
		return nil
	}
	c.pending.Push(&s.links, s)
	if c.pending.Len() == 1 {
		c.pump(now)
	}
	return nil
}

// maySend says why a message cannot be posted, nil if it can.
func (c *Conn) maySend(s *Send) error {
	switch {
	case c.over():
		return c.err
	case c.state == connEnding:
		return ErrClosed
	case c.stream.on:
		return fmt.Errorf("%w: a stream takes no messages", ErrInvalid)
	case s.state != sendIdle || s.links.In():
		return ErrQueued
	}
	return nil
}

// prepare makes a message one that was posted now.
func (c *Conn) prepare(now clock.Time, s *Send) {
	c.order++
	s.conn, s.state, s.posted, s.order = c, sendPending, now, c.order
	s.Err, s.Choice, s.Sent, s.mark = nil, Choice{}, 0, false
	s.off, s.window, s.flying, s.answered, s.hasKey = 0, 0, 0, false, false
	s.loaded, s.loadedAt = s.loaded[:0], 0
	s.again = s.again[:0]
	s.cancelled, s.crowded, s.way, s.status = false, false, 0, StatusOK
}

// keepAlive asks a silent peer whether it is there.
func (c *Conn) keepAlive(now clock.Time) {
	if c.over() {
		return
	}
	interval := c.endpoint.config.Keepalive
	next := now + interval
	for r := range c.live() {
		if due := r.heard + interval; now < due {
			next = min(next, due)
			continue
		}
		r.probe = true
		c.wake()
	}
	c.endpoint.timers.Set(&c.keepalive, next)
}
