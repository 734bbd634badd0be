package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/oob"
	"xroce/roce"
	"xroce/roce/wire"
)

// protocol is the version of the control messages.
const protocol = 2

// controlLimit bounds what the other end may say on one connection, in bytes.
const controlLimit = 64 << 10

// ErrPeer says that the other end gave up. It is wrapped with its reason.
var ErrPeer = errors.New("the peer gave up")

// A message is what one end tells the other. Which fields are set depends on
// its place in the conversation; Error ends the conversation at any place.
type message struct {
	Error string `json:"error,omitempty"`

	// hello and challenge
	Protocol int    `json:"protocol,omitempty"`
	Nonce    []byte `json:"nonce,omitempty"`
	Token    bool   `json:"token,omitempty"` // what follows has codes

	// offer; the first two in accept, too
	Endpoint string   `json:"endpoint,omitempty"` // in the form of engine/oob
	MTU      wire.MTU `json:"mtu,omitempty"`      // largest of the sender; in accept: to be used
	Path     string   `json:"path,omitempty"`     // where to; in accept: where it will be
	Name     string   `json:"name,omitempty"`     // what it is called at the sender
	Size     int64    `json:"size,omitempty"`     // bytes
	Mode     uint32   `json:"mode,omitempty"`     // permission bits

	// Extensions are those that the sender can do; in accept: those to be used.
	// An end that knows none leaves them out.
	Extensions roce.Extensions `json:"extensions,omitempty"`

	// accept
	Addr      uint64 `json:"addr,omitempty"`
	RKey      uint32 `json:"rkey,omitempty"`
	ChunkSize int    `json:"chunk_size,omitempty"`
	Slots     int    `json:"slots,omitempty"`

	// finish and verdict
	SHA256 string `json:"sha256,omitempty"` // hexadecimal
}

// A control is the TCP connection as a stream of messages, a line of JSON each, with a
// code in front once there is a seal.
type control struct {
	conn net.Conn
	in   *bufio.Reader
	seal *seal // of what comes from now on, nil for none

	// trusted says that what leaves has codes, too. A receiver gives none to a peer
	// that did not show that it knows the token: they would help it to guess.
	// Who hears the peer sets it while others may send.
	trusted atomic.Bool
}

// How long the other end may keep us from writing by not reading.
const (
	sendTime      = 10 * time.Second
	sendErrorTime = time.Second
)

func newControl(conn net.Conn) *control {
	return &control{conn: conn, in: bufio.NewReader(io.LimitReader(conn, controlLimit))}
}

func (c *control) send(m message) error { return c.sendWithin(m, sendTime) }

func (c *control) sendWithin(m message, d time.Duration) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if c.trusted.Load() {
		text = append([]byte(c.seal.code(0, text)), text...)
	}
	// A deadline that cannot be set is that of a closed connection.
	_ = c.conn.SetWriteDeadline(time.Now().Add(d))
	if _, err := c.conn.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	return nil
}

// sendError tells the other end why this one gives up, when it still listens.
func (c *control) sendError(err error) {
	_ = c.sendWithin(message{Error: err.Error()}, sendErrorTime)
}

// receive reads the next message. An error that the other end reported is an
// ErrPeer, also without a code: all that a forged one does is to end the conversation,
// which can be had by cutting the connection.
func (c *control) receive() (message, error) {
	var m message
	line, err := c.in.ReadBytes('\n')
	switch {
	case oob.HungUp(err):
		return m, fmt.Errorf("%w: it closed the connection", ErrPeer)
	case err != nil:
		return m, fmt.Errorf("control connection: %w", err)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	text, sealed := line, true
	if c.seal != nil {
		if text, sealed = c.seal.open(line); !sealed {
			text = line
		}
	}
	if err := json.Unmarshal(text, &m); err != nil && sealed {
		return m, fmt.Errorf("control connection: not a message of xroce copy: %s",
			plain.Brief(err.Error()))
	}
	switch {
	case m.Error != "":
		return m, fmt.Errorf("%w: %s", ErrPeer, plain.Brief(m.Error))
	case !sealed:
		return message{}, fmt.Errorf("%w: that of the peer is another one: both ends need "+
			"the same --token-file", ErrToken)
	}
	c.trusted.Store(c.seal != nil)
	return m, nil
}

// A hearing waits for the other end's next message while data is moved.
type hearing struct {
	conn    net.Conn
	message chan message
	over    chan struct{} // closed when the message or an error came
}

// hear begins to wait. An error, also one that the other end reports, cancels
// the context with it.
func (c *control) hear(cancel context.CancelCauseFunc) *hearing {
	h := &hearing{conn: c.conn, message: make(chan message, 1), over: make(chan struct{})}
	go func() {
		defer close(h.over)
		m, err := c.receive()
		if err != nil {
			cancel(err)
			return
		}
		h.message <- m
	}()
	return h
}

// wait waits for the message, for so long at most.
func (h *hearing) wait(ctx context.Context, patience time.Duration) (message, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m := <-h.message:
		return m, nil
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	case <-timer.C:
	}
	select {
	case m := <-h.message: // it was there in time, and we were not scheduled
		return m, nil
	default:
		return message{}, fmt.Errorf("%w for %v", peer.ErrSilence, patience)
	}
}

// stop ends the waiting and returns when it is over.
func (h *hearing) stop() {
	_ = h.conn.SetReadDeadline(time.Unix(1, 0))
	<-h.over
}

// reasonTime is how long to wait for the other end's reason.
const reasonTime = time.Second

// reason is why something failed with err. What the other end says tells more than
// that its QP or the connection is gone, which may be noticed first; so does what
// ended the context.
func (h *hearing) reason(ctx context.Context, err error) error {
	if errors.Is(err, roce.ErrFailed) || oob.HungUp(err) {
		timer := time.NewTimer(reasonTime)
		defer timer.Stop()
		select {
		case <-h.over:
		case <-timer.C:
		}
	}
	return endOf(ctx, err)
}

// endOf is what ended the context, or err: what fails then is by that.
func endOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
