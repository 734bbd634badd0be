package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/crowd"
	"xroce/engine/sim"
)

// whole fails the test unless the directory has the file and nothing else.
func (r *rig) whole(t *testing.T, name string) {
	t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("in the directory: %v, %v", entries, err)
	}
	got, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil || !bytes.Equal(got, r.content) {
		t.Errorf("the file differs, %v", err)
	}
}

// TestResumeAfterLoss cuts the network in the middle for longer than both ends try: the client
// makes another connection and goes on behind what the server has.
func TestResumeAfterLoss(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 4*Slots*ChunkSize+5, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	var cut sync.Once
	stop := r.listen(t.Context(), ReceiveConfig{Progress: func(int64, int64) {
		cut.Do(func() { must(t, r.network.SetFaults(sim.Faults{Drop: 1})) })
	}})
	c := r.client()
	c.Retry = time.Hour
	lost := 0
	c.Lost = func(error) {
		lost++
		must(t, r.network.SetFaults(sim.Faults{}))
	}
	result, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
	c.Close()
	errs := stop()
	if err != nil || lost == 0 || result.Resumed == 0 || result.Resumed%ChunkSize != 0 {
		t.Errorf("lost %d times, %d bytes were there, %v, server %v", lost, result.Resumed, err,
			errs)
	}
	r.whole(t, "x")
}

// half sends the file until the server has written some of it, and ends as kill does or as Ctrl-C:
// what has arrived and was not written is not there for who goes on.
func (r *rig) half(t *testing.T, receive ReceiveConfig) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	receive.Progress = func(int64, int64) { cancel() }
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, receive, ctx, t.Context())
	if sendErr == nil || receiveErr == nil {
		t.Fatal(sendErr, receiveErr)
	}
}

// TestResumeInAnotherRun: the client ends, the server ends, and new ones of both go on.
func TestResumeInAnotherRun(t *testing.T) {
	r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.half(t, ReceiveConfig{})
	r.reopen(t, StoreConfig{Keep: time.Hour})
	if n, err := r.store.Clear(t.Context()); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if sendErr != nil || receiveErr != nil || result.Resumed == 0 {
		t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
	}
	r.whole(t, "x")
}

// TestOnlyTheBeginningIsGoneOnWith: what the server has is not added to when it is not the
// beginning of the file, or of another host, or not ours alone.
func TestOnlyTheBeginningIsGoneOnWith(t *testing.T) {
	other := ReceiveConfig{From: Sender{Host: crowd.Host(netip.MustParseAddr("198.51.100.1"))}}
	for name, c := range map[string]struct {
		change func(t *testing.T, part string)
		then   ReceiveConfig
		left   int // partial files beside the file
	}{
		"damaged": {func(t *testing.T, part string) {
			f, err := os.OpenFile(part, os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt([]byte{1, 2, 3}, ChunkSize/2)
			must(t, errors.Join(err, f.Close()))
		}, ReceiveConfig{}, 0},
		"another host": {func(*testing.T, string) {}, other, 1},
		"linked": {func(t *testing.T, part string) {
			must(t, os.Link(part, filepath.Join(filepath.Dir(part), "y")))
		}, ReceiveConfig{}, 2},
		"longer": {func(t *testing.T, part string) {
			must(t, os.Truncate(part, 10*Slots*ChunkSize))
		}, ReceiveConfig{}, 1},
		"a link to elsewhere": {func(t *testing.T, part string) {
			must(t, os.Rename(part, part+"x"))
			must(t, os.Symlink(part+"x", part))
		}, ReceiveConfig{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
			r.serve(t, StoreConfig{Keep: time.Hour})
			r.half(t, ReceiveConfig{})
			parts, err := filepath.Glob(filepath.Join(r.dir, partPrefix+"*"))
			if err != nil || len(parts) != 1 {
				t.Fatal(parts, err)
			}
			c.change(t, parts[0])
			result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, c.then, t.Context(),
				t.Context())
			if sendErr != nil || receiveErr != nil || result.Resumed != 0 {
				t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
			}
			got, err := os.ReadFile(filepath.Join(r.dir, "x"))
			if err != nil || !bytes.Equal(got, r.content) {
				t.Errorf("the file differs, %v", err)
			}
			entries, err := os.ReadDir(r.dir)
			if err != nil || len(entries) != 1+c.left {
				t.Errorf("in the directory: %v, %v", entries, err)
			}
		})
	}
}

// TestNewConnectionTakesOver: a client whose connection is lost does not wait for the server to
// notice.
func TestNewConnectionTakesOver(t *testing.T) {
	r := newRig(t, 2*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	ended := make(chan error, 4)
	stop := r.listen(t.Context(), ReceiveConfig{Ended: func(_ Result, err error) { ended <- err }})
	link, err := r.dial(t.Context(), client, server)
	must(t, err)
	silent := newControl(link, patience{})
	must(t, silent.greet(t.Context(), nil))
	s, err := newSender(t.Context(), SendConfig{File: r.file, Path: "x"})
	must(t, err)
	defer s.close()
	_, err = silent.ask(t.Context(), s.offer(), ordinary.exchange)
	must(t, err)
	c := r.client()
	if _, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"}); err != nil {
		t.Error(err)
	}
	c.Close()
	link.Close()
	stop()
	// In any order: the second may be done before the first one has said so.
	if first, second := <-ended, <-ended; (first == nil) == (second == nil) {
		t.Errorf("the ends are %v and %v", first, second)
	}
	r.whole(t, "x")
}

// recalled is recall, for nobody.
func (p *partial) recalled() error {
	return digestOf(func() error { return nil }, p.file, p.held, p.hash)
}

// TestKept: what is kept of files is bounded, counts, and makes room for files.
func TestKept(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour, MaxTotal: 1000, MaxFiles: 20})
	s.free = func(*os.File) (int64, error) { return math.MaxInt64, nil }
	now := time.Now()
	s.now = func() time.Time { return now }
	before := snapshot(t, dir)
	begin := func(n int, size int64) *partial {
		t.Helper()
		p, err := s.create(t.Context(), &message{
			Path: fmt.Sprint("p", n), Name: "n", Size: size,
		}, Sender{})
		must(t, err)
		return p
	}
	parts := func() int { return strings.Count(snapshot(t, dir), partSuffix) }
	for n := range maxKept + 3 {
		p := begin(n, 10)
		must(t, p.add([]byte("12345")))
		must(t, p.leave())
	}
	if parts() != maxKept || s.files != maxKept || s.total != 10*maxKept || s.missing.sum() != 0 {
		t.Errorf("%d parts, %d files, total %d, missing %d", parts(), s.files, s.total,
			s.missing.sum())
	}
	p := begin(maxKept+2, 10)
	if p.held != 5 || s.files != maxKept || s.missing.sum() != 5 {
		t.Errorf("held %d, %d files, missing %d", p.held, s.files, s.missing.sum())
	}
	must(t, p.recalled())
	must(t, errors.Join(p.add([]byte("67890")), p.commit(), p.close()))
	large := begin(100, 980) // of 1000: only the new file stays beside it
	if parts() != 1+1 && s.total > 1000 {
		t.Errorf("%d parts, total %d", parts(), s.total)
	}
	must(t, large.close())
	for n := range 3 {
		p := begin(n, 10)
		must(t, errors.Join(p.add([]byte("1")), p.leave()))
	}
	now = now.Add(2 * time.Hour)
	p = begin(3, 10)
	must(t, p.close())
	if parts() != 0 || s.files != 1 || s.total != 10 || s.missing.sum() != 0 {
		t.Errorf("%d parts, %d files, total %d, missing %d", parts(), s.files, s.total,
			s.missing.sum())
	}
	must(t, os.Remove(filepath.Join(dir, fmt.Sprint("p", maxKept+2))))
	if after := snapshot(t, dir); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// TestNothingIsKeptOf what did not come, or failed for another reason than a lost connection,
// or has no name to be found by.
func TestNothingIsKeptOf(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	before := snapshot(t, dir)
	for name, c := range map[string]struct {
		size  int64
		bytes int
		leave bool
	}{
		"nothing":      {10, 0, true},
		"failed":       {10, 5, false},
		"unknown size": {UnknownSize, 5, true},
	} {
		p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: c.size}, Sender{})
		must(t, err)
		must(t, p.add(make([]byte, c.bytes)))
		if c.leave {
			err = p.leave()
		} else {
			err = p.close()
		}
		after := snapshot(t, dir)
		if err != nil || after != before || s.files != 0 || s.total != 0 {
			t.Errorf("%s: %v, %s", name, err, after)
		}
	}
}

// TestUnknownSizeIsBounded: a file whose size nobody knows gets no more than others.
func TestUnknownSizeIsBounded(t *testing.T) {
	s, _, _ := store(t, StoreConfig{MaxFile: 100, MaxTotal: 150})
	free := int64(math.MaxInt64)
	s.free = func(*os.File) (int64, error) { return free, nil }
	begin := func(name string) *partial {
		t.Helper()
		o := &message{Path: name, Name: "n", Size: UnknownSize}
		p, err := s.create(t.Context(), o, Sender{})
		must(t, err)
		return p
	}
	a, b := begin("a"), begin("b")
	must(t, a.add(make([]byte, 90)))
	for _, c := range []struct {
		of   *partial
		n    int
		free int64
		want string
	}{
		{a, 11, math.MaxInt64, "a file has at most 100 here"},
		{b, 61, math.MaxInt64, "60 more are taken"},
		{b, 10, 9, unix.ENOSPC.Error()},
	} {
		free = c.free
		err := c.of.add(make([]byte, c.n))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d more: %v, not %q", c.n, err, c.want)
		}
	}
	must(t, errors.Join(a.close(), b.close()))
	if s.files != 0 || s.total != 0 || s.missing.sum() != 0 {
		t.Errorf("%d files, total %d, missing %d", s.files, s.total, s.missing.sum())
	}
}
