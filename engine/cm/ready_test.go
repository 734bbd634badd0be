package cm

import (
	"errors"
	"testing"
)

// TestReadyAndHungUp: who accepts and was not scheduled between the RTU and the DREQ of the
// peer has a connection, with what came over it.
func TestReadyAndHungUp(t *testing.T) {
	for range 64 { // a select of two that are ready takes any
		c := &Conn{
			manager: &Manager{}, up: make(chan struct{}), done: make(chan struct{}),
			err: ErrHungUp,
		}
		close(c.done)
		if err := c.ready(t.Context()); !errors.Is(err, ErrHungUp) {
			t.Fatalf("never ready: %v", err)
		}
		close(c.up)
		if err := c.ready(t.Context()); err != nil {
			t.Fatalf("ready, then over: %v", err)
		}
	}
}
