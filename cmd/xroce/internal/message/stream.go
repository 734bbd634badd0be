package message

import (
	"context"
	"time"
)

// peakParts is into how many parts a stream is divided, the fastest of which is its peak.
const peakParts = 20

// pour sends messages, as many at once as the depth says, and waits until the peer has said that
// it has all.
func (l *link) pour(ctx context.Context) error {
	c := &l.run.config
	depth, total := l.depth(), c.total()
	sends := l.newSends(depth)
	for n := range total {
		s := &sends[n%depth]
		if n >= depth {
			if err := l.sent(ctx, s, n-depth); err != nil {
				return err
			}
		}
		if n == c.Warmup {
			l.begin = time.Now()
		}
		if err := l.send(s, n); err != nil {
			return err
		}
	}
	if err := l.drain(ctx, sends, total); err != nil {
		return err
	}
	r, err := l.hearReport(ctx)
	l.end, l.peak = time.Now(), r.Peak
	return err
}

// take takes the messages of the peer, and says what it has.
func (l *link) take(ctx context.Context) error {
	c := &l.run.config
	depth, total := l.depth(), c.total()
	receives := l.newReceives(depth, c.Size)
	for i := range receives {
		if err := l.receive(&receives[i]); err != nil {
			return err
		}
	}
	part := max(c.Iters/peakParts, 2)
	var mark time.Time
	for n := range total {
		v := &receives[n%depth]
		if err := l.received(ctx, v, n); err != nil {
			return err
		}
		if n+depth < total {
			if err := l.receive(v); err != nil {
				return err
			}
		}
		if n < c.Warmup {
			continue
		}
		if at := n - c.Warmup; at%part == 0 || at == c.Iters-1 {
			l.end = time.Now()
			if at == 0 {
				l.begin = l.end
			} else if took := l.end.Sub(mark).Seconds(); at%part == 0 && took > 0 {
				l.peak = max(l.peak, float64(part)/took)
			}
			mark = l.end
		}
	}
	return l.tellReport(ctx, report{total, l.peak})
}
