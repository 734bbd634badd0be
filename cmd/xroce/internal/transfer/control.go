package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/msg"
)

// A control is a link as a conversation: messages of JSON, with a code in front once there is
// a seal, and chunks of files between them. It is for one goroutine.
type control struct {
	*Link
	patience patience
	seal     *seal // of what comes from now on, nil for none

	// trusted says that what leaves has codes, too. A receiver gives none to a peer
	// that did not show that it knows the token: they would help it to guess.
	trusted bool

	// proven says that the peer has shown that it knows the token: what has no code then is
	// somebody else's.
	proven bool

	waits  func() // for tests, may be nil
	hashes func() // for tests, may be nil: what is held is about to be read
	now    func() time.Time

	// began is how much of a file was there when its data began, negative before that.
	began int64

	// compared is the time in which the ends made digests of what one has from before.
	compared time.Duration

	said  *msg.Send    // what was said last, nil for nothing
	next  *msg.Receive // for the next message of the peer, nil when none is posted
	early *message     // that came while chunks were on their way
	slow  bool         // the peer may say that it waits for what it is to send
	out   []outgoing   // chunks that leave, made when the first does
	in    incoming
}

func newControl(l *Link, p patience) *control {
	return &control{Link: l, patience: p.orOrdinary(), now: time.Now}
}

// comparing asks the other end what comes of comparing so many bytes that one has from before. Of
// the time, as much counts as such as it may take to read them, and none when the other end just
// said nothing.
func (c *control) comparing(held int64, ask func() error) error {
	began := c.now()
	err := ask()
	if !errors.Is(err, peer.ErrSilence) {
		c.compared += min(c.now().Sub(began), c.patience.reading(held))
	}
	return err
}

// digestOf counts what this end has from before in a digest, as long as there is somebody to tell.
func (c *control) digestOf(
	ctx context.Context, from io.Reader, size int64, digest hash.Hash,
) error {
	began := c.now()
	if c.hashes != nil {
		c.hashes()
	}
	err := digestOf(func() error { return c.over(ctx) }, from, size, digest)
	c.compared += c.now().Sub(began)
	return err
}

// over is why there is nobody to talk to any more, nil as long as there is.
func (c *control) over(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), lost(c.Conn.Err()))
}

// send says something, and does not wait until the other end has heard it.
func (c *control) send(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if c.trusted {
		text = append([]byte(c.seal.code(0, text)), text...)
	}
	c.said = &msg.Send{Buffers: [][]byte{text}}
	return c.post(c.said, tagControl)
}

// heard waits until the other end has room for what was said last: who asks and does not
// listen to the answers would have them pile up here.
func (c *control) heard(ctx context.Context) error {
	if c.said == nil {
		return nil
	}
	return await(ctx, c.said.Done(), nil, c.patience.exchange)
}

// sendError tells the other end why this one gives up, when it still listens.
func (c *control) sendError(err error) {
	// Who does not listen any more needs no reason.
	_ = c.send(message{
		Error: plain.Brief(err.Error()), Again: again(err), Wait: errors.Is(err, errWriting),
	})
}

// listen returns a channel that is closed when there is a message to take.
func (c *control) listen() (<-chan struct{}, error) {
	if c.next == nil {
		r := &msg.Receive{Buffers: [][]byte{make([]byte, maxMessage)}}
		if err := c.expect(r, tagControl); err != nil {
			return nil, err
		}
		c.next = r
	}
	return c.next.Done(), nil
}

// errForged is of a message that says nothing of the peer. What it does can be had by cutting the
// connection: more it must not do.
var errForged = fmt.Errorf("%w: a message came in the name of the peer, without the code that "+
	"the token makes", ErrLost)

// errAltered is of chunks, which have no codes, that are not what the peer says that it sent, with
// its code. Somebody else may have put something into them: it is for another connection, and
// without what has come.
var errAltered = fmt.Errorf("%w: what came is not what the peer says that it sent", ErrLost)

// altered is the error of chunks that are not what they should be. Without a token all of it is
// the peer's.
func (c *control) altered(err error) error {
	if !c.proven {
		return err
	}
	return fmt.Errorf("%w: %w", errAltered, err)
}

// take takes the message that listen told of. An error that the other end reported is an
// ErrPeer, also without a code as long as it has not shown that it knows the token: it may have
// another one, and say so.
func (c *control) take() (message, error) {
	r := c.next
	c.next = nil
	switch {
	case errors.Is(r.Err, msg.ErrTruncated) && c.proven: // no code can be looked at
		return message{}, errForged
	case errors.Is(r.Err, msg.ErrTruncated):
		return message{}, fmt.Errorf("%w: a message of %d bytes, and one has at most %d", ErrPeer,
			r.Whole, maxMessage)
	case r.Err != nil:
		return message{}, lost(r.Err)
	}
	return c.read(r.Buffers[0][:r.Length])
}

// read reads a message.
func (c *control) read(line []byte) (m message, err error) {
	text, sealed := line, true
	if c.seal != nil {
		text, sealed = c.seal.open(line)
		switch {
		case !sealed && c.proven:
			return message{}, errForged
		case !sealed:
			text = line
		}
	}
	if err := json.Unmarshal(text, &m); err != nil && sealed {
		return m, fmt.Errorf("%w: not a message of xroce copy: %s", ErrPeer,
			plain.Brief(err.Error()))
	}
	switch {
	case m.Error != "":
		return m, &peerError{plain.Brief(m.Error), m.Again, m.Again && m.Wait}
	case !sealed:
		return message{}, fmt.Errorf("%w: that of the peer is another one: both ends need "+
			"the same --token-file", ErrToken)
	}
	c.proven = c.seal != nil
	c.trusted = c.proven
	return m, nil
}

// receive waits for the next message, for so long at most.
func (c *control) receive(ctx context.Context, most time.Duration) (message, error) {
	if m := c.early; m != nil {
		c.early = nil
		return *m, nil
	}
	for end := time.Now().Add(most); ; {
		over, err := c.listen()
		if err != nil {
			return message{}, err
		}
		if err := await(ctx, over, nil, time.Until(end)); err != nil {
			return message{}, err
		}
		m, err := c.take()
		switch {
		case err != nil || !m.Wait:
			return m, err
		case !c.slow:
			return message{}, fmt.Errorf("%w: it says that it waits, and has nothing to send",
				ErrPeer)
		case time.Now().After(end): // what comes in time may be late, but not for ever
			return message{}, fmt.Errorf("%w for %v", peer.ErrSilence, most)
		}
	}
}

// ask says something and waits for the answer, for so long at most.
func (c *control) ask(ctx context.Context, m message, most time.Duration) (message, error) {
	if err := c.send(m); err != nil {
		return message{}, c.reason(err)
	}
	return c.receive(ctx, most)
}

// reason is why something failed with err: what the other end said before it hung up tells
// more than that it did.
func (c *control) reason(err error) error {
	if !errors.Is(err, ErrLost) || c.next == nil {
		return err
	}
	// The end of the connection ends it, and all came before that.
	if await(context.Background(), c.next.Done(), nil, reasonTime) != nil {
		return err
	}
	if _, said := c.take(); errors.Is(said, ErrPeer) {
		return said
	}
	return err
}

// reasonTime is how long to wait for the other end's reason. Tests on a busy host wait longer.
var reasonTime = 3 * time.Second

// await waits until over or also is closed, for so long at most. What is over in time counts,
// however late it is looked at.
func await(ctx context.Context, over, also <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	return awaitBy(ctx, over, also, most, func(d time.Duration) <-chan time.Time {
		timer.Reset(d)
		return timer.C
	})
}

// awaitParts is how many short waits a wait is made of.
const awaitParts = 8

// awaitBy is await by a timer. It waits for one part of the time after the other, so that time in
// which this process was not scheduled counts as one part at most: what came then is yet to be
// looked at, and who was to say something may not have been scheduled either.
func awaitBy(
	ctx context.Context, over, also <-chan struct{}, most time.Duration,
	timer func(time.Duration) <-chan time.Time,
) error {
	for range awaitParts {
		select {
		case <-over:
			return nil
		case <-also:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer(most / awaitParts):
		}
		if isOver(over) || isOver(also) {
			return nil
		}
	}
	return fmt.Errorf("%w for %v", peer.ErrSilence, most.Round(time.Millisecond))
}

// isOver reports whether a channel is closed.
func isOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
