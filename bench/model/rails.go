package model

import (
	"errors"
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/msg"
)

// A track is one end of a rail: a queue pair.
type track struct {
	end    *end
	rail   *msg.Rail
	peer   *track
	posted int  // work requests that are not complete
	dead   bool // nothing passes any more
	gone   bool // and that was said
}

// errCut is why a rail is lost that was cut.
var errCut = errors.New("model: the rail was cut")

// hello is what an end says by one of its rails. The receiver draws the session.
func (e *end) hello(rail int) *msg.Hello {
	c := e.endpoint.Config()
	h := &msg.Hello{
		Version: msg.Version, MinVersion: msg.MinVersion, Service: msg.ServiceEndpoint,
		Capabilities: msg.CapabilityGet | msg.CapabilityPut | msg.CapabilityProvision,
		Payload:      uint32(c.EagerLimit), Slots: uint16(c.Slots),
		Rendezvous: uint16(c.Rendezvous),
	}
	if c.Rails > 1 {
		h.Capabilities |= msg.CapabilityRails
		h.Rail, h.Rails = uint8(rail), uint8(c.Rails)
		if e.index == 1 {
			h.Session = msg.Token{1}
		}
	}
	return h
}

// depth is how many work requests a queue pair takes.
const depth = 64

// connect adds a connection with all its rails.
func (w *Wire) connect() error {
	a, b := w.ends[0], w.ends[1]
	ours, theirs := a.hello(0), b.hello(0)
	ca, err := a.endpoint.Open(w.now, ours, theirs, depth)
	if err != nil {
		return err
	}
	cb, err := b.endpoint.Open(w.now, theirs, ours, depth)
	if err != nil {
		return err
	}
	a.conns, b.conns = append(a.conns, ca), append(b.conns, cb)
	w.lay(ca.First(), cb.First())
	ca.Start()
	cb.Start()
	for i := 1; i < w.costs.Rails; i++ {
		ours, theirs := a.hello(i), b.hello(i)
		rb, err := cb.AddRail(w.now, theirs, ours, depth)
		if err != nil {
			return fmt.Errorf("model: rail %d: %w", i, err)
		}
		ra, err := ca.AddRail(w.now, ours, theirs, depth)
		if err != nil {
			return fmt.Errorf("model: rail %d: %w", i, err)
		}
		w.lay(ra, rb)
		ra.Start(w.now)
		rb.Start(w.now)
	}
	return nil
}

// lay joins both ends of a rail.
func (w *Wire) lay(a, b *msg.Rail) {
	x, y := &track{end: w.ends[0], rail: a}, &track{end: w.ends[1], rail: b}
	x.peer, y.peer = y, x
	w.pairs[a], w.pairs[b] = x, y
}

// die has nothing pass any more; what is under way fails when it would have been complete.
func (t *track) die(w *Wire) {
	t.dead = true
	t.settle(w)
}

// settle says that no completion comes any more, once that is so.
func (t *track) settle(w *Wire) {
	if t.dead && !t.gone && t.posted == 0 {
		t.gone = true
		t.rail.Gone(w.now)
	}
}

// Pour sends n messages of so many bytes over the first connection, some of them under way at
// once, and returns how long after the begin each was there. Behind so many messages, unless that
// is 0, the last rail of the connection is cut. The errors are those of Send.
func (w *Wire) Pour(n, size, window int, by msg.Protocol, cut int) ([]clock.Time, error) {
	from, to := w.ends[0], w.ends[1]
	began := w.now
	var came []clock.Time
	posted := 0
	post := func() {
		posted++
		r := &msg.Receive{Pieces: [][]byte{make([]byte, size)}}
		s := &msg.Send{Pieces: [][]byte{make([]byte, size)}, Protocol: by}
		w.err = errors.Join(w.err, to.endpoint.Receive(w.now, r), from.conns[0].Send(w.now, s))
	}
	to.arrived = func(r *msg.Receive) {
		w.err = errors.Join(w.err, r.Err)
		if came = append(came, w.now-began); len(came) == cut {
			w.cutLast()
		}
		if posted < n {
			post()
		}
	}
	defer func() { to.arrived = nil }()
	for range min(n, window) {
		post()
	}
	err := w.rest(func() bool { return false })
	if err == nil && len(came) != n {
		err = fmt.Errorf("%w: %d of %d messages came", ErrEndless, len(came), n)
	}
	return came, err
}

// cutLast cuts the last rail of the first connection: both ends are told at once.
func (w *Wire) cutLast() {
	var last *msg.Rail
	for r := range w.ends[0].conns[0].Rails() {
		last = r
	}
	t := w.pairs[last]
	t.dead, t.peer.dead = true, true
	t.rail.Lose(w.now, errCut)
	t.peer.rail.Lose(w.now, errCut)
}
