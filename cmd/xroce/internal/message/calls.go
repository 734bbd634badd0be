package message

import (
	"context"
	"time"

	"xroce/engine/msg"
)

// call sends messages, each of which is answered, as many at once as the depth says, and measures
// how long each takes: a ping-pong is calls of depth 1.
func (l *link) call(ctx context.Context) error {
	c := &l.run.config
	sends, receives := l.newSends(l.depth()), l.newReceives(l.depth(), c.Reply)
	l.samples = make([]float64, 0, c.Iters)
	if err := l.callPart(ctx, sends, receives, 0, c.Warmup); err != nil {
		return err
	}
	if err := l.warm(ctx); err != nil {
		return err
	}
	return l.callPart(ctx, sends, receives, c.Warmup, c.total())
}

// callPart makes the calls from one to before another, and waits until all are answered.
func (l *link) callPart(
	ctx context.Context, sends []msg.Send, receives []msg.Receive, first, end int,
) error {
	depth := len(sends)
	posted := make([]time.Time, depth)
	for n := first; n < end+depth; n++ {
		i := n % depth
		if n-depth >= first {
			if err := l.answered(ctx, sends, receives, n-depth); err != nil {
				return err
			}
			l.end = time.Now()
			if n-depth >= l.run.config.Warmup {
				l.samples = append(l.samples, float64(l.end.Sub(posted[i]))/1e3)
			}
		}
		if n >= end {
			continue
		}
		if err := l.receive(&receives[i]); err != nil {
			return err
		}
		posted[i] = time.Now()
		if err := l.send(&sends[i], n); err != nil {
			return err
		}
	}
	return nil
}

// answered waits for the answer to call n, and until what asked for it may be used again.
func (l *link) answered(
	ctx context.Context, sends []msg.Send, receives []msg.Receive, n int,
) error {
	i := n % len(sends)
	if err := l.received(ctx, &receives[i], n); err != nil {
		return err
	}
	return l.sent(ctx, &sends[i], n)
}

// answer answers the calls of the peer in their order.
func (l *link) answer(ctx context.Context) error {
	c := &l.run.config
	depth, total := l.depth(), c.total()
	sends, receives := l.newSends(depth), l.newReceives(depth, c.Size)
	for i := range receives {
		if err := l.receive(&receives[i]); err != nil {
			return err
		}
	}
	for n := range total {
		i := n % depth
		if err := l.received(ctx, &receives[i], n); err != nil {
			return err
		}
		if n+depth < total {
			if err := l.receive(&receives[i]); err != nil {
				return err
			}
		}
		if n >= depth {
			if err := l.sent(ctx, &sends[i], n-depth); err != nil {
				return err
			}
		}
		if err := l.send(&sends[i], n); err != nil {
			return err
		}
	}
	return l.drain(ctx, sends, 0, total)
}

// drain waits for those of the messages from one to before another that are under way.
func (l *link) drain(ctx context.Context, sends []msg.Send, first, end int) error {
	for n := max(first, end-len(sends)); n < end; n++ {
		if err := l.sent(ctx, &sends[n%len(sends)], n); err != nil {
			return err
		}
	}
	return nil
}
