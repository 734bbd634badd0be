package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"xroce/engine/oob"
	"xroce/roce"
	"xroce/roce/wire"
)

// protocol is the version of the control messages.
const protocol = 1

// Chunks of the sender and the slots of the receiver.
const (
	ChunkSize = 1 << 20 // bytes of a chunk, but the last of a file
	Slots     = 8       // chunks that each end holds

	maxChunkSize = 16 << 20 // that a sender takes from a receiver
	maxSlots     = 64
)

// controlLimit bounds what the other end may say on one connection.
const controlLimit = 64 << 10

// ErrPeer says that the other end gave up. It is wrapped with its reason.
var ErrPeer = errors.New("the peer gave up")

// A message is what one end tells the other. Which fields are set depends on
// its place in the conversation; Error ends the conversation at any place.
type message struct {
	Error string `json:"error,omitempty"`

	// offer
	Protocol int      `json:"protocol,omitempty"`
	Path     string   `json:"path,omitempty"` // where to; in accept: where it will be
	Name     string   `json:"name,omitempty"` // what it is called at the sender
	Size     int64    `json:"size,omitempty"` // bytes
	Mode     uint32   `json:"mode,omitempty"` // permission bits
	MTU      wire.MTU `json:"mtu,omitempty"`  // largest of the sender; in accept: to be used

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

// A control is the TCP connection as a stream of messages.
type control struct {
	conn net.Conn
	out  *json.Encoder
	in   *json.Decoder
}

// How long the other end may keep us from writing by not reading.
const (
	sendTime      = 10 * time.Second
	sendErrorTime = time.Second
)

func newControl(conn net.Conn) *control {
	return &control{
		conn: conn, out: json.NewEncoder(conn),
		in: json.NewDecoder(io.LimitReader(conn, controlLimit)),
	}
}

func (c *control) send(m message) error { return c.sendWithin(m, sendTime) }

func (c *control) sendWithin(m message, d time.Duration) error {
	// A deadline that cannot be set is that of a closed connection.
	_ = c.conn.SetWriteDeadline(time.Now().Add(d))
	if err := c.out.Encode(m); err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	return nil
}

// sendError tells the other end why this one gives up, when it still listens.
func (c *control) sendError(err error) {
	_ = c.sendWithin(message{Error: err.Error()}, sendErrorTime)
}

// receive reads the next message. An error that the other end reported is an
// ErrPeer.
func (c *control) receive() (message, error) {
	var m message
	err := c.in.Decode(&m)
	switch {
	case oob.HungUp(err):
		return m, fmt.Errorf("%w: it closed the connection", ErrPeer)
	case err != nil:
		return m, fmt.Errorf("control connection: %w", err)
	case m.Error != "":
		return m, fmt.Errorf("%w: %s", ErrPeer, m.Error)
	}
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

// stop ends the waiting and returns when it is over.
func (h *hearing) stop() {
	_ = h.conn.SetReadDeadline(time.Unix(1, 0))
	<-h.over
}

// reasonTime is how long to wait for the other end's reason.
const reasonTime = time.Second

// reason is why moving the data failed with err. What the other end says tells
// more than that its QP is gone, which may be noticed first; so does what ended
// the context.
func (h *hearing) reason(ctx context.Context, err error) error {
	if errors.Is(err, roce.ErrFailed) {
		timer := time.NewTimer(reasonTime)
		defer timer.Stop()
		select {
		case <-h.over:
		case <-timer.C:
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// chunksOf is the number of chunks of a file, the last of which may be shorter.
func chunksOf(size int64, chunk int) int64 { return (size + int64(chunk) - 1) / int64(chunk) }

// chunkLen is the length of chunk n of a file.
func chunkLen(size int64, chunk int, n int64) int {
	return int(min(int64(chunk), size-n*int64(chunk)))
}
