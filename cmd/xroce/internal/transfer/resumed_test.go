package transfer

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine/sim"
)

// TestOtherModeIsNotGoneOnWith: a server that gives files fewer permissions than it did before
// does not finish one that has more.
func TestOtherModeIsNotGoneOnWith(t *testing.T) {
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	must(t, os.Chmod(r.file, 0o644))
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.half(t, ReceiveConfig{})
	r.reopen(t, StoreConfig{Keep: time.Hour, Mode: 0o600})
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if sendErr != nil || receiveErr != nil || result.Resumed != 0 {
		t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
	}
	info, err := os.Stat(filepath.Join(r.dir, "x"))
	if must(t, err); info.Mode().Perm()&^0o600 != 0 {
		t.Errorf("the file has mode %v", info.Mode())
	}
}

// TestProgressOfTheRest: what a client had of a file that it goes on with is no progress of the
// server, by which that judges who is slow.
func TestProgressOfTheRest(t *testing.T) {
	r := newRig(t, 4*Slots*ChunkSize, sim.Faults{})
	r.offered(t, StoreConfig{Read: true})
	var most atomic.Int64
	stop := r.listen(t.Context(), ReceiveConfig{Progress: func(done, total int64) {
		if done > total {
			t.Errorf("%d bytes of %d", done, total)
		}
		most.Store(done)
	}})
	defer stop()
	f := FetchConfig{Path: "f", To: filepath.Join(t.TempDir(), "f"), Keep: time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	f.Progress = func(int64, int64) { cancel() }
	c := r.client()
	if _, err := c.Fetch(ctx, f); err == nil {
		t.Fatal("it was not cut off")
	}
	c.Close()
	c, f.Progress = r.client(), nil
	result, err := c.Fetch(t.Context(), f)
	c.Close()
	if must(t, err); result.Resumed == 0 || most.Load() != result.Size-result.Resumed {
		t.Errorf("%d bytes were sent of %d, of which %d were there", most.Load(), result.Size,
			result.Resumed)
	}
}
