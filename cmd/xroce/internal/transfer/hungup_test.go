package transfer

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestNothingIsReadForWhoHungUp: what there is of a large file is not read to its end for a client
// that is gone meanwhile.
func TestNothingIsReadForWhoHungUp(t *testing.T) {
	const size = 1 << 40
	r := newRig(t, 0, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.store.free = func(*os.File) (int64, error) { return math.MaxInt64, nil }
	must(t, os.Truncate(r.file, size))
	s, err := newSender(t.Context(), SendConfig{File: r.file, Path: "x"})
	must(t, err)
	defer s.close()
	offer := s.offer()
	part := filepath.Join(r.dir, partialName(Sender{}, &offer, "x", 0o600))
	must(t, os.WriteFile(part, nil, 0o600))
	must(t, os.Truncate(part, size)) // of which no block is written

	near, far := r.connect(t, client, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := r.received(ctx, far, ReceiveConfig{hashes: func() { near.Conn.Abort() }})
	c := newControl(near, patience{})
	must(t, c.greet(t.Context(), nil))
	must(t, c.send(offer)) // the answer may be lost
	select {
	case err := <-over:
		if !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	case <-time.After(timeout.Scaled(30 * time.Second)):
		cancel()
		t.Errorf("it reads a TiB for nobody; told to end: %v", <-over)
	}
	if info, err := os.Stat(part); err != nil || info.Size() != size {
		t.Errorf("it cannot go on with it: %v", err)
	}
}
