package transfer

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
)

// TestOurReadingIsNotTheirFault: who resumes a file does not give way while we read what there is
// of it, neither its place nor its room, however long that takes.
func TestOurReadingIsNotTheirFault(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1 << 20,
		now: func() time.Time { return now },
	}
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.half(t, ReceiveConfig{})
	var other error
	guest := l.enter(from("192.0.2.1"))
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{
		From:  Sender{Guest: guest},
		Admit: guest.Admit, Progress: guest.Progress, Whole: guest.Whole,
		hashes: func() {
			now = now.Add(time.Hour)
			if guest.standing() == slowNow {
				t.Error("it gives room while we read")
			}
			other = l.enter(from("192.0.2.9")).Admit()
		},
	}, t.Context(), t.Context())
	if sendErr != nil || receiveErr != nil || result.Resumed == 0 {
		t.Errorf("sender %v, receiver %v, %d bytes were there", sendErr, receiveErr,
			result.Resumed)
	}
	if !errors.Is(other, ErrBusy) {
		t.Errorf("the other: %v", other)
	}
}

// TestOurDirectoriesAreNotTheirFault: who has a directory made does not give way while our disk
// takes its time.
func TestOurDirectoriesAreNotTheirFault(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1 << 20,
		now: func() time.Time { return now },
	}
	r := newRig(t, 10, sim.Faults{})
	var other error
	r.store.sync = func(*os.File) error {
		now = now.Add(time.Hour)
		other = l.enter(from("192.0.2.9")).Admit()
		return nil
	}
	caller := from("192.0.2.1")
	guest := l.enter(caller)
	stop := r.listen(t.Context(), ReceiveConfig{
		From: Sender{Guest: guest}, Admit: guest.Admit, Progress: guest.Progress,
		Whole: guest.Whole,
	})
	c := r.client()
	must(t, c.makeDir(t.Context(), "dir"))
	c.Close()
	must(t, errors.Join(stop()...))
	if !errors.Is(other, ErrBusy) || caller.closed {
		t.Errorf("the other: %v, hung up on: %v", other, caller.why)
	}
}

// TestRecessIsPaidBack: who has us do what takes long gives way while we do it once more, unless it
// has sent meanwhile as much as in that time makes a transfer that is not slow. Short recesses, as
// with each of many files, cost nothing, and none helps who was slow before.
func TestRecessIsPaidBack(t *testing.T) {
	const slow, hour = 1000, int64(3600)
	for name, c := range map[string]struct {
		before, took time.Duration // until the file is asked for, and in each recess
		sent         int64         // bytes before the last one
		files        int
		givesWay     bool
	}{
		"once":               {0, time.Hour, 0, 1, false},
		"twice":              {0, time.Hour, 0, 2, true},
		"with few bytes":     {0, time.Hour, slow * (hour - 2), 2, true},
		"with enough":        {0, time.Hour, slow * hour, 2, false},
		"many short ones":    {0, shortRecess, 0, 1000, false},
		"asked for too late": {2 * slowGrace, time.Hour, 0, 1, true},
	} {
		now := time.Unix(0, 0)
		l := &Lobby{
			Places: 4, Transfers: 1, PerSource: 1, Slow: slow,
			now: func() time.Time { return now },
		}
		caller := from("192.0.2.1")
		guest := l.enter(caller)
		must(t, guest.Admit())
		now = now.Add(c.before)
		var other error
		for n := range c.files {
			if n == c.files-1 {
				guest.Progress(c.sent, c.sent)
			}
			guest.Ended()
			must(t, guest.Admit())
			must(t, guest.recess(func() error { return nil })) // it may have several for a file
			must(t, guest.recess(func() error {
				now = now.Add(c.took)
				if n == c.files-1 {
					other = l.enter(from("192.0.2.9")).Admit()
				}
				return nil
			}))
		}
		if c.givesWay != (other == nil) || c.givesWay != caller.closed {
			t.Errorf("%s: the other: %v, closed %v", name, other, caller.closed)
		}
	}
}

// TestRecessOfNobody is what is done for who never gives way.
func TestRecessOfNobody(t *testing.T) {
	want := errors.New("done")
	if err := (*Guest)(nil).recess(func() error { return want }); err != want {
		t.Error(err)
	}
}

// TestReadingOverAndOver: who asks again and again for a file that is there, and says each time
// that his is another one, does not have it read for him as often as he likes.
func TestReadingOverAndOver(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.serve(t, StoreConfig{Keep: 24 * time.Hour})
	info, err := os.Stat(r.file)
	must(t, err)
	m := message{
		Path: "x", Name: "x", Size: 10, Mode: uint32(info.Mode().Perm()),
		MTime: info.ModTime().UnixNano(),
	}
	p, err := r.store.create(t.Context(), &m, Sender{}) // and its sender has not heard
	must(t, err)
	must(t, errors.Join(p.add([]byte("0123456789")), p.commit(), p.close()))
	reads := 0
	stop := r.listen(t.Context(), ReceiveConfig{hashes: func() { reads++ }})
	c := r.client()
	for range 3 {
		_, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
		if err == nil || !strings.Contains(err.Error(), fs.ErrExist.Error()) {
			t.Errorf("another file of its name: %v", err)
		}
	}
	if reads != 1 {
		t.Errorf("it was read %d times", reads)
	}
	c.Close()
	stop()
}
