package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/crowd"
)

// hostOf is a sender at an address.
func hostOf(addr string) Sender { return Sender{Host: crowd.Host(netip.MustParseAddr(addr))} }

// leaveParts has a sender begin files of ten bytes that it leaves after five.
func leaveParts(t *testing.T, s *Store, from Sender, names ...string) {
	t.Helper()
	for _, name := range names {
		p, err := s.create(t.Context(), &message{Path: name, Name: "n", Size: 10}, from)
		must(t, err)
		must(t, errors.Join(p.add([]byte("12345")), p.leave()))
	}
}

// TestNothingIsDroppedInVain: what is kept makes room for what then fits, and not for what is
// refused all the same, however often that is asked for.
func TestNothingIsDroppedInVain(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{
		Keep: time.Hour, MaxFile: 1 << 40, MaxTotal: 1 << 41, MaxFiles: 4,
	})
	free := int64(1 << 20)
	s.free = func(*os.File) (int64, error) { return free, nil }
	leaveParts(t, s, hostOf("192.0.2.1"), "a", "b", "c")
	before := snapshot(t, dir)
	for _, c := range []struct {
		size, free, total int64
		files             int
		want              string
	}{
		{size: 1<<40 + 1, free: 1 << 50, want: "a file has at most"},
		{size: 1 << 40, free: 1 << 50, total: 1 << 41, want: "more are taken"},
		{size: 1 << 30, free: 1 << 20, want: unix.ENOSPC.Error()},
		{size: 1, free: 1 << 20, files: 4, want: "no more are"},
	} {
		free = c.free
		s.total, s.files = s.total+c.total, s.files+c.files
		o := &message{Path: "x", Name: "n", Size: c.size}
		_, err := s.create(t.Context(), o, hostOf("192.0.2.2"))
		s.total, s.files = s.total-c.total, s.files-c.files
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes: %v, not %q", c.size, err, c.want)
		}
		if after := snapshot(t, dir); after != before {
			t.Fatalf("%d bytes, refused: what is kept became\n%s", c.size, after)
		}
	}
	p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: UnknownSize}, Sender{})
	must(t, err)
	free = 0
	if err := p.add(make([]byte, 1<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a MiB where nothing is free: %v", err)
	}
	must(t, p.close())
	if after := snapshot(t, dir); after != before {
		t.Errorf("it became\n%s", after)
	}
	// One of the parts is enough, if its file gets a block.
	free = -1
	if _, err := s.create(t.Context(), &message{Path: "y", Name: "n"}, Sender{}); err == nil {
		t.Error("a file where less than nothing is free")
	} else if after := strings.Count(snapshot(t, dir), partSuffix); after != 0 {
		t.Errorf("%d parts are kept that would have made room", after)
	}
}

// TestLeftPartsDriveOutTheirOwn: who leaves parts of many files drives out none of a host that has
// few, whoever came first.
func TestLeftPartsDriveOutTheirOwn(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	leaveParts(t, s, hostOf("192.0.2.1"), "a", "b")
	for n := range 3 * maxKept {
		leaveParts(t, s, hostOf("192.0.2.2"), fmt.Sprint("p", n))
	}
	if n := strings.Count(snapshot(t, dir), partSuffix); n != maxKept {
		t.Errorf("%d parts are kept", n)
	}
	for _, name := range []string{"a", "b"} {
		o := &message{Path: name, Name: "n", Size: 10}
		p, err := s.create(t.Context(), o, hostOf("192.0.2.1"))
		must(t, err)
		if p.held != 5 {
			t.Errorf("%d bytes are kept of %s", p.held, name)
		}
		must(t, p.recalled())
		must(t, errors.Join(p.add([]byte("67890")), p.commit(), p.close()))
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestPartOutlastsThatThereIsNoRoom: a part whose sender asks to go on is there for the next time,
// too, when it gets no room for a reason that passes; not when it does not fit any more.
func TestPartOutlastsThatThereIsNoRoom(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the device is gone"))
	for name, c := range map[string]struct {
		config StoreConfig
		ctx    context.Context
		other  int64            // bytes that another has promised
		change func(s *shortOf) // before it asks again
		want   func(err error) bool
		stays  bool
	}{
		"busy": {
			ctx: t.Context(), other: 100, stays: true,
			want: func(err error) bool { return errors.Is(err, ErrBusy) && again(err) },
		},
		"busy, and all counts": {
			config: StoreConfig{MaxTotal: 200, MaxFiles: 2}, ctx: t.Context(), other: 100,
			stays: true,
			want:  func(err error) bool { return errors.Is(err, ErrBusy) && again(err) },
		},
		"ended": {
			ctx: ended, other: 100, stays: true,
			want: func(err error) bool { return errors.Is(err, context.Cause(ended)) },
		},
		"unknown": {
			ctx: t.Context(), stays: true, want: func(err error) bool { return err == errStatfs },
			change: func(s *shortOf) {
				s.free = func(*os.File) (int64, error) { return 0, errStatfs }
			},
		},
		"no space": {
			ctx: t.Context(), want: func(err error) bool { return errors.Is(err, unix.ENOSPC) },
			change: func(s *shortOf) { s.free = func(*os.File) (int64, error) { return 1, nil } },
		},
		"too large": {
			ctx: t.Context(), change: func(s *shortOf) { s.MaxFile = 99 },
			want: func(err error) bool { return strings.Contains(err.Error(), "--max-file") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Keep = time.Hour
			s := newShort(t, c.config)
			s.roomTime = 0
			if c.ctx == ended {
				s.roomTime = time.Hour
			}
			first, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
			must(t, err)
			must(t, errors.Join(first.part.add(make([]byte, 50)), first.part.leave()))
			part := filepath.Join(s.dir.Name(), first.part.lasting)
			if c.other > 0 {
				other, err := s.ask(t.Context(), "192.0.2.2", "other", c.other)
				must(t, err)
				defer func() { must(t, other.part.close()) }()
			}
			if c.change != nil {
				c.change(s)
			}
			files, total, missing := s.files, s.total, s.missing.sum()
			for range 2 { // and once more
				_, err = s.ask(c.ctx, "192.0.2.1", "big", 100)
				if err == nil || !c.want(errors.Unwrap(err)) {
					t.Fatalf("%v", err)
				}
				if !c.stays {
					break
				}
			}
			_, statErr := os.Stat(part)
			kept := len(s.kept)
			if c.stays != (statErr == nil) || c.stays != (kept == 1) ||
				c.stays && (s.files != files || s.total != total) || s.missing.sum() != missing {
				t.Fatalf("after %v: %v; %d are kept, %d files and %d bytes, before %d and %d", err,
					statErr, kept, s.files, s.total, files, total)
			}
		})
	}
}

// TestPutBackCounts: a part that cannot be opened now is not kept beside a file that got meanwhile
// what it counted for.
func TestPutBackCounts(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour, MaxFiles: 1, MaxTotal: 10})
	leaveParts(t, s, hostOf("192.0.2.1"), "a")
	var other *partial
	s.lock = func(*os.File) (err error) {
		s.lock = lock
		other, err = s.create(t.Context(), &message{Path: "b", Name: "n", Size: 10},
			hostOf("192.0.2.2"))
		must(t, err)
		return unix.ENOLCK
	}
	_, err := s.create(t.Context(), &message{Path: "a", Name: "n", Size: 10},
		hostOf("192.0.2.1"))
	if err == nil || s.files != 1 || s.total != 10 || len(s.kept)+len(s.going) != 0 {
		t.Errorf("%v: %d files, %d bytes, %d are kept", err, s.files, s.total, len(s.kept))
	}
	must(t, other.close())
	onlyParts(t, dir, 0)
}

// onlyParts checks how many files there are that are not whole.
func onlyParts(t *testing.T, dir string, want int) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, partPrefix+"*"))
	if must(t, err); len(parts) != want {
		t.Errorf("%d parts, not %d: %q", len(parts), want, parts)
	}
}

// errStatfs is of a file system that does not say how much is free.
var errStatfs = errors.New("statfs")

// TestPartGivesWayToWhoCame: a part that got no room makes room for those who got meanwhile what it
// counted for.
func TestPartGivesWayToWhoCame(t *testing.T) {
	s := newShort(t, StoreConfig{Keep: time.Hour, MaxFiles: 2})
	first, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
	must(t, err)
	must(t, errors.Join(first.part.add(make([]byte, 50)), first.part.leave()))
	other, err := s.ask(t.Context(), "192.0.2.2", "other", 100)
	must(t, err)
	s.roomTime = 0
	p, free := first.part, s.free
	s.free = func(dir *os.File) (int64, error) { // is asked by who asks for room
		s.files = 2
		return free(dir)
	}
	_, err = s.ask(t.Context(), "192.0.2.1", "big", 100)
	_, statErr := os.Stat(filepath.Join(s.dir.Name(), p.lasting))
	if err == nil || statErr == nil || s.files != 2 || len(s.kept) != 0 {
		t.Errorf("%v: %v, %d files, %d are kept", err, statErr, s.files, len(s.kept))
	}
	must(t, other.part.close())
}

// TestPartsOfAnotherDevice: parts on another file system below the same directory make no room on
// this one, and stay.
func TestPartsOfAnotherDevice(t *testing.T) {
	const elsewhere = 1
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	s.free = func(*os.File) (int64, error) { return 1 << 20, nil }
	leaveParts(t, s, hostOf("192.0.2.1"), "a", "b", "c")
	for _, r := range s.kept {
		r.dev = elsewhere
	}
	leaveParts(t, s, hostOf("192.0.2.2"), "d")
	here := s.kept[3]
	s.free = func(*os.File) (int64, error) {
		if _, err := os.Stat(filepath.Join(dir, here.name)); err == nil {
			return 0, nil
		}
		return here.takes, nil
	}
	p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: 10}, hostOf("192.0.2.3"))
	must(t, err)
	must(t, p.close())
	onlyParts(t, dir, 3)
	if len(s.kept) != 3 || slices.Contains(s.kept, here) {
		t.Errorf("%d parts are kept of 3 that are elsewhere", len(s.kept))
	}
}
