package transfer

import (
	"context"
	"fmt"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/roce"
)

// A patience is how long one end waits for the other.
type patience struct {
	exchange time.Duration // for all messages before the data together
	chunk    time.Duration // for the next chunk or credit
	digest   time.Duration // of a receiver: for the message behind the data
	verdict  time.Duration // of a sender: the receiver has yet to write it all to disk
}

// ordinary is the patience of the commands.
var ordinary = patience{
	exchange: 10 * time.Second, chunk: 30 * time.Second, digest: 30 * time.Second,
	verdict: 10 * time.Minute,
}

// orOrdinary is what a test wants, or the patience of the commands.
func (p patience) orOrdinary() patience {
	if p == (patience{}) {
		return ordinary
	}
	return p
}

// await waits for completions, for so long at most.
func await(
	ctx context.Context, end *peer.End, dst []roce.Completion, patience time.Duration,
) (int, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, err := end.Wait(limited, dst)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%w for %v", peer.ErrSilence, patience)
	}
	return n, err
}
