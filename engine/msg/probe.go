package msg

import (
	"context"
	"slices"

	"xroce/roce/msg"
)

// A Message is one that came, or was announced, and that no receive has asked for.
type Message struct {
	Tag    uint64
	Length int // bytes
	From   *Conn

	core msg.Message
}

// Probe waits for a message that a receive with these values would take, and leaves it there:
// another receive, or claim, may take it before who probed (MPI_Probe). from is nil for any peer.
// The error is that of the context, or why the connection or the endpoint is over. A message that
// waits in its slot because too many are unexpected is not seen before those are received.
func (e *Endpoint) Probe(
	ctx context.Context, tag, mask uint64, from *Conn,
) (Message, error) {
	return e.probe(ctx, &probe{tag: tag, mask: mask, from: from})
}

// TryProbe is Probe that does not wait: it reports whether there is such a message (MPI_Iprobe).
func (e *Endpoint) TryProbe(tag, mask uint64, from *Conn) (Message, bool) {
	return e.tryProbe(&probe{tag: tag, mask: mask, from: from})
}

// Claim is Probe that takes the message out: it is for Message.Receive, PostReceive or Discard
// alone, and must be given to one of them (MPI_Mprobe). Its sender cannot take it back any more.
// Of those who wait, the first one gets the first message.
func (e *Endpoint) Claim(ctx context.Context, tag, mask uint64, from *Conn) (Message, error) {
	return e.probe(ctx, &probe{tag: tag, mask: mask, from: from, claim: true})
}

// TryClaim is Claim that does not wait (MPI_Improbe).
func (e *Endpoint) TryClaim(tag, mask uint64, from *Conn) (Message, bool) {
	return e.tryProbe(&probe{tag: tag, mask: mask, from: from, claim: true})
}

// PostReceive receives a message that was claimed, and does not wait. Tag, Mask and From of r do
// not matter. It returns ErrQueued when r is under way, msg.ErrInvalid of package roce/msg for a
// message that was not claimed, or was received, or why the connection is over that took
// it with it.
func (m *Message) PostReceive(r *Receive) error {
	switch {
	case m.From == nil:
		return msg.ErrInvalid
	case !r.progress.begin():
		return ErrQueued
	}
	e := m.From.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	err := r.post(e, func() error { return e.machine.ReceiveClaimed(&m.core, &r.core) })
	if err != nil {
		return err
	}
	e.progress(e.dev.Now())
	return nil
}

// Receive receives a message that was claimed into buf: see Conn.Receive and PostReceive.
func (m *Message) Receive(ctx context.Context, buf []byte) (int, error) {
	r := &Receive{Buffers: [][]byte{buf}}
	if err := m.PostReceive(r); err != nil {
		return 0, err
	}
	err := r.Wait(ctx)
	return r.Length, err
}

// Discard receives a message that was claimed into nothing, and does not wait: to its sender it is
// as if it had been received, and cut off. The errors are those of PostReceive.
func (m *Message) Discard() error { return m.PostReceive(&Receive{}) }

// A probe is somebody who looks for a message.
type probe struct {
	tag, mask uint64
	from      *Conn
	claim     bool

	found    Message
	err      error
	progress waiting
}

func (e *Endpoint) tryProbe(p *probe) (Message, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	over := p.look(e)
	e.progress(e.dev.Now()) // a claim makes room
	return p.found, over && p.err == nil
}

func (e *Endpoint) probe(ctx context.Context, p *probe) (Message, error) {
	e.mu.Lock()
	p.progress.begin()
	e.probes = append(e.probes, p)
	e.progress(e.dev.Now())
	e.mu.Unlock()
	if err := e.await(ctx, &p.progress); err != nil {
		e.mu.Lock()
		e.probes = slices.DeleteFunc(e.probes, func(x *probe) bool { return x == p })
		e.mu.Unlock()
		if !p.progress.over() { // else it has a message
			return Message{}, err
		}
	}
	return p.found, p.err
}

// look reports whether there is a message, or will be none. The caller holds mu.
func (p *probe) look(e *Endpoint) bool {
	var from *msg.Conn
	if p.from != nil {
		from = p.from.core
	}
	var ok bool
	if p.claim {
		p.found.core, ok = e.machine.Claim(e.dev.Now(), p.tag, p.mask, from)
	} else {
		p.found.core, ok = e.machine.Probe(p.tag, p.mask, from)
	}
	switch m := &p.found; {
	case ok:
		m.Tag, m.Length, m.From = m.core.Tag, m.core.Length, m.core.From.User.(*Conn)
	case e.err != nil:
		p.err = e.err
	case from != nil:
		p.err = p.from.Err() // not before it says so itself
	}
	return ok || p.err != nil
}

// answerProbes tells those who look for messages, in the order in which they came. The caller
// holds mu.
func (e *Endpoint) answerProbes() {
	e.probes = slices.DeleteFunc(e.probes, func(p *probe) bool {
		over := p.look(e)
		if over {
			p.progress.end()
		}
		return over
	})
}
