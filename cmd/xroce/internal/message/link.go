package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// A link is one connection of a test, and what was measured over it. It is for one goroutine.
type link struct {
	run  *run
	conn *msg.Conn

	samples []float64 // microseconds
	begin   time.Time // of what counts
	end     time.Time
	peak    float64 // messages a second
	ways    [8][32]int
}

// measure does this end's part of the test.
func (l *link) measure(ctx context.Context) error {
	server := l.run.config.Server
	switch l.run.config.Test {
	case Pingpong, RPC:
		if server {
			return l.answer(ctx)
		}
		return l.call(ctx)
	default:
		if server {
			return l.take(ctx)
		}
		return l.pour(ctx)
	}
}

// warm begins the time of a client, when nothing that does not count is under way any more, over
// no connection.
func (l *link) warm(ctx context.Context) error {
	if l.run.cold.Add(-1) == 0 {
		close(l.run.warm)
	}
	select {
	case <-l.run.warm:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.begin = time.Now()
	return nil
}

// depth is how many messages are under way at once.
func (l *link) depth() int {
	c := &l.run.config
	if c.Test == Pingpong {
		return 1
	}
	return min(c.Depth, c.total())
}

// newSends makes messages to be sent again and again.
func (l *link) newSends(n int) []msg.Send {
	s := make([]msg.Send, n)
	for i := range s {
		s[i].Buffers, s[i].Level = make([][]byte, 1), l.run.config.Level
	}
	return s
}

// newReceives makes receives of messages from the peer of the link, of some length.
func (l *link) newReceives(n, size int) []msg.Receive {
	v := make([]msg.Receive, n)
	for i := range v {
		v[i].Buffers = [][]byte{make([]byte, size)}
	}
	return v
}

// send posts message n of this end.
func (l *link) send(s *msg.Send, n int) error {
	s.Buffers[0] = l.run.out.of(n)
	if err := l.conn.PostSend(s); err != nil {
		return fmt.Errorf("message %d: %w", n+1, err)
	}
	return nil
}

// sent waits for message n of this end.
func (l *link) sent(ctx context.Context, s *msg.Send, n int) error {
	if err := s.Wait(ctx); err != nil {
		return fmt.Errorf("message %d: %w", n+1, cause(ctx, err))
	}
	l.ways[s.Choice.Protocol][s.Choice.Why]++
	l.run.done.Add(1)
	return nil
}

// receive posts a receive for the next message of the peer.
func (l *link) receive(v *msg.Receive) error {
	return l.run.endpoint.PostReceive(l.prepared(v))
}

// prepared is a receive for the next message of the peer.
func (l *link) prepared(v *msg.Receive) *msg.Receive {
	v.From, v.Tag, v.Mask = l.conn, 0, ^uint64(0)
	return v
}

// received waits for message n of the peer, and compares it.
func (l *link) received(ctx context.Context, v *msg.Receive, n int) error {
	if err := v.Wait(ctx); err != nil && !errors.Is(err, msg.ErrTruncated) {
		return fmt.Errorf("after %d messages of the peer: %w", n, cause(ctx, err))
	}
	l.run.done.Add(1)
	switch want := len(v.Buffers[0]); {
	case v.Whole != want:
		return fmt.Errorf("message %d of the peer has %d bytes, not %d", n+1, v.Whole, want)
	case l.run.config.Unverified:
		return nil
	}
	return l.run.in.check(n, v.Buffers[0][:v.Length])
}

// A report is what a server says of a stream at its end, as JSON.
type report struct {
	Messages int     `json:"messages"`
	Peak     float64 `json:"peak"` // messages a second
}

// maxPeak is more messages a second than there are.
const maxPeak = 1e12

// check compares the report of a peer with what it was sent. A peak that cannot be is not known.
func (r *report) check(total int) error {
	if r.Messages != total {
		return fmt.Errorf("the peer has %d messages of %d", r.Messages, total)
	}
	if r.Peak < 0 || r.Peak > maxPeak {
		r.Peak = 0
	}
	return nil
}

// tellReport sends the report.
func (l *link) tellReport(ctx context.Context, r report) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s := &msg.Send{Buffers: [][]byte{b}, Tag: termsTag, Level: rmsg.Delivered}
	if err := l.conn.PostSend(s); err != nil {
		return err
	}
	return cause(ctx, s.Wait(ctx))
}

// hearReport waits for the report, which says that the peer has all messages.
func (l *link) hearReport(ctx context.Context) (r report, err error) {
	v := &msg.Receive{
		Buffers: [][]byte{make([]byte, maxTerms)}, From: l.conn, Tag: termsTag, Mask: ^uint64(0),
	}
	if err := l.run.endpoint.PostReceive(v); err != nil {
		return r, err
	}
	if err := v.Wait(ctx); err != nil {
		return r, fmt.Errorf("the peer did not say that it has all messages: %w", cause(ctx, err))
	}
	b := v.Buffers[0][:v.Length]
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%w: its report begins with %s", ErrForeign,
			plain.Brief(fmt.Sprintf("%.60q", b)))
	}
	return r, r.check(l.run.config.total())
}
