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
// the queue pairs has stayed the same for most to twice as long, and when ctx ends. Time in
// which this process was not scheduled is not counted: what came then is yet to be looked
// at. stop must be called.
func Patience(
	ctx context.Context, most time.Duration, qps ...*engine.QP,
) (_ context.Context, stop func()) {
	return PatienceWith(ctx, most, func() uint64 { return position(qps) })
}

// PatienceWith is Patience with a position of the caller's, which is asked for on a goroutine.
func PatienceWith(
	ctx context.Context, most time.Duration, position func() uint64,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		timer := time.NewTimer(most)
		defer timer.Stop()
		for w := newWatch(most, time.Now(), position()); ; timer.Reset(most) {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if w.silent(time.Now(), position()) {
				cancel(fmt.Errorf("%w for %s", ErrSilence, most))
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-over
	}
}

// A watch is a look at a position every so often.
type watch struct {
	every    time.Duration
	at       time.Time // of the last look
	position uint64    // as it was then
}

// newWatch begins with a first look.
func newWatch(every time.Duration, now time.Time, position uint64) *watch {
	return &watch{every, now, position}
}

// silent takes the next look, and reports whether nothing has changed. A look that is late
// by half of the time does not tell: who was to change it was not scheduled either.
func (w *watch) silent(now time.Time, position uint64) bool {
	late := now.Sub(w.at) > w.every+w.every/2
	same := position == w.position
	w.at, w.position = now, position
	return same && !late
}
