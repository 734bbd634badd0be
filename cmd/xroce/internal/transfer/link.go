package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/engine/msg"
)

// ErrLost says that the connection broke: another one may go on where it ended.
var ErrLost = errors.New("the connection is lost")

// A Link is a connection that carries messages, with the endpoint that it is of.
type Link struct {
	Endpoint *msg.Endpoint
	Conn     *msg.Conn
}

// Tags of messages: what the ends say, and what is in files.
const (
	tagControl = 1
	tagData    = 2
)

// closeTime is how long the other end may take to hear what was said last, and to hang up. It is
// waited for whoever does not answer any more, and a busy host needs some of it. Tests may wait
// longer.
var closeTime = 3 * time.Second

// Close hangs up when the other end has heard what was said, or closeTime later.
func (l *Link) Close() { l.close(context.Background()) }

// close is Close until a context ends.
func (l *Link) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	_ = l.Conn.Close(ctx) // what there is to know was said before
}

// while is a context that ends with the connection, too. It must be ended.
func (l *Link) while(ctx context.Context) (there context.Context, end func()) {
	there, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.Conn.Done():
			cancel(lost(l.Conn.Err()))
		case <-there.Done():
		}
	}()
	return there, func() { cancel(nil) }
}

// post sends a message, whose memory is not to be changed until it is done.
func (l *Link) post(s *msg.Send, tag uint64) error {
	s.Tag = tag
	return lost(l.Conn.PostSend(s))
}

// expect asks for a message.
func (l *Link) expect(r *msg.Receive, tag uint64) error {
	r.From, r.Tag, r.Mask = l.Conn, tag, ^uint64(0)
	return lost(l.Endpoint.PostReceive(r))
}

// lost is an error of the connection. No error stays none.
func lost(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, msg.ErrClosed):
		return fmt.Errorf("%w: the peer closed it", ErrLost)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}
