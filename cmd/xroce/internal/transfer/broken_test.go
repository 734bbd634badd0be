package transfer

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/sim"
)

// failOnce fails the first call as a disk does that loses what was written, of which the kernel
// tells once, and calls then before that.
func failOnce(then func()) func(*os.File) error {
	told := false
	return func(f *os.File) error {
		if !told {
			told = true
			then()
			return unix.EIO
		}
		return f.Sync()
	}
}

// TestLostDataIsNotGoneOnWith: a part of which the kernel said that it is not on disk is not gone
// on with: it would not say so again.
func TestLostDataIsNotGoneOnWith(t *testing.T) {
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.store.sync = failOnce(func() {})
	r.half(t, ReceiveConfig{})
	r.empty(t)
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if sendErr != nil || receiveErr != nil || result.Resumed != 0 {
		t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
	}
	r.whole(t, "x")
}

// TestLostDataAtTheEnd: no part is left of a file that could not be brought to disk, also when the
// server ends just then.
func TestLostDataAtTheEnd(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	ctx, end := context.WithCancelCause(t.Context())
	fire := errors.New("the house is on fire")
	r.store.sync = failOnce(func() { end(fire) })
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(), ctx)
	if sendErr == nil || !errors.Is(receiveErr, fire) || !errors.Is(receiveErr, unix.EIO) {
		t.Errorf("%v, %v", sendErr, receiveErr)
	}
	r.empty(t)
}

// TestLostDataOfAClient is the same for a file that is fetched.
func TestLostDataOfAClient(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.offered(t, StoreConfig{Read: true})
	stop := r.listen(t.Context(), ReceiveConfig{})
	ctx, end := context.WithCancel(t.Context())
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	before := snapshot(t, dir)
	s.sync = failOnce(end)
	c := r.client()
	must(t, c.connect(t.Context()))
	f := FetchConfig{Path: "f"}
	if _, _, err := f.toFile(ctx, c.control, s, "f"); !errors.Is(err, unix.EIO) {
		t.Errorf("%v", err)
	}
	c.Close()
	stop()
	if after := snapshot(t, dir); after != before {
		t.Errorf("it left\n%s", after)
	}
}

// A badDisk takes nothing.
type badDisk struct{}

func (badDisk) Write([]byte) (int, error) { return 0, unix.EIO }

// TestLostWrites: some file systems tell at the next write what they lost (NFS), which need not be
// of that one.
func TestLostWrites(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: 10}, Sender{})
	must(t, err)
	must(t, p.add([]byte("12345")))
	p.to = badDisk{}
	if err := p.add([]byte("67890")); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	if err := p.leave(); !errors.Is(err, unix.EIO) {
		t.Errorf("who leaves it is not told: %v", err)
	}
	if got := snapshot(t, dir); strings.Contains(got, partSuffix) || s.files != 0 || s.total != 0 {
		t.Errorf("%d files, %d bytes, left:\n%s", s.files, s.total, got)
	}
}
