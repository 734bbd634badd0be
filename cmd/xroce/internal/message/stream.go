package message

import (
	"context"
	"fmt"
	"time"

	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// peakParts is into how many parts a stream is divided, the fastest of which is its peak.
const peakParts = 20

// pour sends messages, as many at once as the depth says, and waits until the peer has said that
// it has all.
func (l *link) pour(ctx context.Context) error {
	c := &l.run.config
	sends := l.newSends(l.depth())
	for i := range sends { // what is still under way would be in the time, and does not count
		sends[i].Level = max(c.Level, rmsg.Delivered)
	}
	if err := l.pourPart(ctx, sends, 0, c.Warmup); err != nil {
		return err
	}
	for i := range sends {
		sends[i].Level = c.Level
	}
	if err := l.warm(ctx); err != nil {
		return err
	}
	if err := l.pourPart(ctx, sends, c.Warmup, c.total()); err != nil {
		return err
	}
	r, err := l.hearReport(ctx)
	l.end, l.peak = time.Now(), r.Peak
	return err
}

// pourPart sends the messages from one to before another, and waits until they are complete.
func (l *link) pourPart(ctx context.Context, sends []msg.Send, first, end int) error {
	depth := len(sends)
	list := make([]*msg.Send, 0, l.posted())
	for n := first; n < end; {
		list = list[:0]
		for stop := min(n+cap(list), end); n < stop; n++ {
			s := &sends[n%depth]
			if n-depth >= first {
				if err := l.sent(ctx, s, n-depth); err != nil {
					return err
				}
			}
			s.Buffers[0] = l.run.out.of(n)
			list = append(list, s)
		}
		if _, err := l.conn.PostSends(list); err != nil {
			return fmt.Errorf("message %d: %w", n-len(list)+1, err)
		}
	}
	return l.drain(ctx, sends, first, end)
}

// posted is how many messages of a stream are posted at once.
func (l *link) posted() int {
	n := l.run.config.PostList
	if n == 0 {
		n = l.depth() / 4 // that the others are under way meanwhile
	}
	return max(1, min(n, l.depth()))
}

// take takes the messages of the peer, and says what it has.
func (l *link) take(ctx context.Context) error {
	c := &l.run.config
	depth, total := l.depth(), c.total()
	receives := l.newReceives(depth, c.Size)
	list := make([]*msg.Receive, 0, depth)
	for i := range receives {
		list = append(list, l.prepared(&receives[i]))
	}
	if _, err := l.run.endpoint.PostReceives(list); err != nil {
		return fmt.Errorf("after 0 messages of the peer: %w", cause(ctx, err))
	}
	m := meter{link: l, part: max(c.Iters/peakParts, 2)}
	list = list[:0]
	for n := range total {
		v := &receives[n%depth]
		if err := l.received(ctx, v, n); err != nil {
			return err
		}
		if n+depth < total {
			list = append(list, l.prepared(v))
		}
		if len(list) == l.posted() || n+depth == total-1 {
			if _, err := l.run.endpoint.PostReceives(list); err != nil {
				return fmt.Errorf("after %d messages of the peer: %w", n+1, cause(ctx, err))
			}
			list = list[:0]
		}
		if n >= c.Warmup {
			m.count(n - c.Warmup)
		}
	}
	return l.tellReport(ctx, report{total, l.peak})
}

// A meter measures how fast messages come.
type meter struct {
	link *link
	part int // messages
	mark time.Time
}

// count is told of message n of those that count.
func (m *meter) count(n int) {
	l := m.link
	if n%m.part != 0 && n != l.run.config.Iters-1 {
		return
	}
	l.end = time.Now()
	if n == 0 {
		l.begin = l.end
	} else if took := l.end.Sub(m.mark).Seconds(); n%m.part == 0 && took > 0 {
		l.peak = max(l.peak, float64(m.part)/took)
	}
	m.mark = l.end
}
