package engine

import (
	"fmt"
	"time"
)

// carrierTime is how long a card may take to have its link again after a reset: the ends of
// a copper wire agree on their speed within some four seconds.
const carrierTime = 10 * time.Second

// carrierPoll is the time between two looks for it.
const carrierPoll = 10 * time.Millisecond

// awaitCarrier waits until a card has its link again that was reset for the XDP program or for
// zero-copy, as igb, ixgbe and ice are. Who sent before that would hear from nobody, and take
// the peer for dead. The error says that the link was not back within the limit.
func awaitCarrier(has func() (bool, error), limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(carrierPoll) {
		ok, err := has()
		switch {
		case err != nil:
			return err
		case ok:
			return nil
		case !time.Now().Before(end):
			return fmt.Errorf("no link for %v since the card was reset", limit)
		}
	}
}
