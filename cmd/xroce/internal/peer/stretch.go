package peer

import (
	"context"
	"time"
)

// stretchKey is the key of how many times longer limits are.
type stretchKey struct{}

// Stretch returns a context with which peers have so many times longer to connect and to get ready.
// It is for tests on a machine that is busy: users wait as long as the constants say. It goes with
// the context because several packages wait for a peer, each for its own reason.
func Stretch(ctx context.Context, times int) context.Context {
	return context.WithValue(ctx, stretchKey{}, times)
}

// Stretched is how long to wait for a peer who has d where nobody called Stretch.
func Stretched(ctx context.Context, d time.Duration) time.Duration {
	if times, ok := ctx.Value(stretchKey{}).(int); ok {
		d *= time.Duration(times)
	}
	return d
}
