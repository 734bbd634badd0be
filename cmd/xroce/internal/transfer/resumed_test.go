package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
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

// TestKeptByAnEarlierServer: what a server finds that was kept before it began is bounded, counts,
// and makes room for files, as what it keeps itself.
func TestKeptByAnEarlierServer(t *testing.T) {
	before, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	now := time.Now()
	var last *partial
	for n := range maxKept + 3 { // as many as several servers that were killed leave
		p, err := before.create(t.Context(), &message{
			Path: fmt.Sprint("p", n), Name: "n", Size: 10, Mode: 0o600,
		}, Sender{})
		must(t, err)
		must(t, p.add([]byte("12345")))
		at := now.Add(time.Duration(n-100) * time.Second)
		must(t, os.Chtimes(filepath.Join(dir, p.temp), at, at))
		last = p
		if n < maxKept+2 {
			must(t, p.file.Close()) // as kill does
		}
	}
	s, err := OpenStore(dir, StoreConfig{Keep: time.Hour, MaxTotal: 100})
	must(t, err)
	defer s.Close()
	s.free = func(*os.File) (int64, error) { return math.MaxInt64, nil }
	parts := func() int { return strings.Count(snapshot(t, dir), partSuffix) }
	removed, err := s.Clear(t.Context())
	if err != nil || removed != 2 || parts() != maxKept+1 || s.files != maxKept ||
		s.total != 5*maxKept {
		t.Errorf("%d removed, %v: %d parts, %d files, %d bytes", removed, err, parts(), s.files,
			s.total)
	}
	p, err := s.create(t.Context(), &message{Path: "large", Name: "n", Size: 100}, Sender{})
	must(t, err)
	if parts() != 2 || s.files != 1 || s.total != 100 {
		t.Errorf("%d parts, %d files, %d bytes", parts(), s.files, s.total)
	}
	must(t, errors.Join(p.close(), last.close()))
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

// TestPartCannotBeRead: what there is of a file cannot be read any more, as of a failing disk: it
// ends early here. All of it is sent, the server is told why, and the connection lives.
func TestPartCannotBeRead(t *testing.T) {
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.half(t, ReceiveConfig{})
	var told error
	stop := r.listen(t.Context(), ReceiveConfig{
		Unread: func(err error) { told = err },
		hashes: func() {
			parts, _ := filepath.Glob(filepath.Join(r.dir, partPrefix+"*"))
			for _, name := range parts {
				must(t, os.Truncate(name, 1))
			}
		},
	})
	c := r.client()
	c.Retry = 0
	for _, name := range []string{"x", "y"} {
		result, err := c.Send(t.Context(), SendConfig{File: r.file, Path: name})
		if err != nil || result.Resumed != 0 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	c.Close()
	if err := errors.Join(stop()...); err != nil || told == nil {
		t.Errorf("it was told %v, and ended with %v", told, err)
	}
}
