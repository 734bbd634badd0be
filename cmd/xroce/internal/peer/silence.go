package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce"
)

// ErrSilence says that a peer was waited for in vain: nothing came, and nothing that was
// sent was acknowledged.
var ErrSilence = errors.New("nothing came from the peer")

// Position is a number that changes when something that was sent is acknowledged or a
// request comes, be it a part of a long message. Datagrams count when they are sent.
func Position(qp *engine.QP) uint64 {
	s := qp.Snapshot()
	n := uint64(s.UnackedPSN) + uint64(s.ExpectedPSN) + uint64(s.MSN)
	if s.Type == roce.TypeUD {
		n += uint64(s.NextPSN)
	}
	return n
}

// position is that of several together.
func position(qps []*engine.QP) (sum uint64) {
	for _, qp := range qps {
		sum += Position(qp)
	}
	return sum
}

// Patience returns a context that ends, with ErrSilence as its cause, when the position of
// the queue pairs has stayed the same for most to twice as long, and when ctx ends. stop
// must be called.
func Patience(
	ctx context.Context, most time.Duration, qps ...*engine.QP,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		every := time.NewTicker(most)
		defer every.Stop()
		for before := position(qps); ; {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			now := position(qps)
			if now == before {
				cancel(fmt.Errorf("%w for %s", ErrSilence, most))
			}
			before = now
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-over
	}
}
