package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// stuck has the first fsync(2) of a store last until the returned channel is closed, and tells when
// it begins.
func stuck(s *Store) (began, release chan struct{}) {
	began, release = make(chan struct{}), make(chan struct{})
	var any atomic.Bool
	s.sync = func(*os.File) error {
		if !any.Swap(true) {
			close(began)
			<-release
		}
		return nil
	}
	return began, release
}

// TestWritingIsNoSilence: a connection is lost, and the server takes minutes to bring to disk what
// came by it. That is not the client's time, as long as it can be true.
func TestWritingIsNoSilence(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, c := range map[string]struct {
		ask  time.Duration // until the server says that it still writes
		asks int32         // so often
		err  string
	}{
		"minutes":  {2 * time.Minute, 3, ""},
		"for ever": {4 * time.Minute, 100, "nothing got through for"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
			r.serve(t, StoreConfig{Keep: time.Hour})
			r.store.claimTime = time.Millisecond
			began, release := stuck(r.store)
			free := sync.OnceFunc(func() { close(release) })
			t.Cleanup(free)
			var offers, clock atomic.Int64
			stop := r.listen(t.Context(), ReceiveConfig{
				Admit: func() error {
					if offers.Add(1) > int64(c.asks) {
						free()
					}
					if offers.Load() > 1 {
						clock.Add(int64(c.ask))
					}
					return nil
				},
			})
			first := r.client()
			ctx, cancel := context.WithCancel(t.Context())
			_, err := first.Send(ctx, SendConfig{
				File: r.file, Path: "x",
				Progress: func(int64, int64) { cancel() },
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			<-began
			again := r.client()
			again.Retry = 30 * time.Second
			again.now = func() time.Time { return time.Unix(0, clock.Load()) }
			result, err := again.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
			again.Close()
			free()
			stop()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) ||
					!strings.Contains(err.Error(), errWriting.Error()) {
					t.Error(err)
				}
				return
			}
			if err != nil || result.Resumed == 0 {
				t.Errorf("%v after %d offers: %+v", err, offers.Load(), result)
			}
		})
	}
}

// TestLastClaimStays: of several that wait for a file the last one gets it, and is not told to give
// it up by one that came before.
func TestLastClaimStays(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	for range 100 {
		held, err := s.claim(t.Context(), "key", Sender{GiveUp: func(error) {}})
		must(t, err)
		var all sync.WaitGroup
		before, first := s.asked(), make(chan struct{})
		for n := range 2 {
			ctx, giveUp := context.WithCancelCause(t.Context())
			all.Go(func() {
				release, err := s.claim(ctx, "key", Sender{GiveUp: giveUp})
				switch {
				case err == nil && n == 0:
					<-ctx.Done() // the other one wants it
					release()
				case err == nil:
					<-first
					if ctx.Err() != nil {
						t.Error("the last one is to give up")
					}
					release()
				case n == 1 || !errors.Is(err, ErrAgain):
					t.Errorf("number %d: %v", n, err)
				}
				if n == 0 {
					close(first)
				}
			})
			for s.asked() == before {
				runtime.Gosched()
			}
			before = s.asked()
		}
		held()
		all.Wait()
	}
}

// asked is how many have asked for files that others may write to.
func (s *Store) asked() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

// TestGoneClientWaitsForNothing: the handler of a client that hangs up while it waits for a file,
// or for a directory, ends with it.
func TestGoneClientWaitsForNothing(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.store.claimTime = time.Hour
	began, release := stuck(r.store)
	var made sync.WaitGroup
	made.Go(func() { must(t, r.store.makeDir(t.Context(), "dir")) })
	defer made.Wait() // what it makes is not to come while the test's directory goes
	defer close(release)
	<-began
	part, err := r.store.create(t.Context(), &message{Path: "x", Name: "x", Size: 1}, Sender{})
	must(t, err)
	defer part.close()
	part.store.owners[part.lasting].giveUp = func(error) {} // it has not noticed
	for _, m := range []message{
		{Ask: askPut, Path: "x", Name: "x", Size: 1}, {Ask: askDir, Path: "dir/below"},
	} {
		near, far := r.connect(t, client, server)
		over, asked := make(chan error, 1), make(chan struct{})
		go func() {
			over <- Receive(t.Context(), far, ReceiveConfig{
				Store: r.store, Admit: func() error { close(asked); return nil },
			})
		}()
		c := newControl(near, ordinary)
		must(t, c.greet(t.Context(), nil))
		must(t, c.send(m))
		<-asked
		near.Conn.Abort()
		if err := within(t, over); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", m.Ask, err)
		}
		far.Close()
	}
}

// TestDirectoriesBesideEachOther: one that cannot be brought to disk for a long time keeps nobody
// from making others, and counts when it is there.
func TestDirectoriesBesideEachOther(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	began, release := stuck(s)
	var made sync.WaitGroup
	made.Go(func() { must(t, s.makeDir(t.Context(), "slow")) })
	<-began
	must(t, s.makeDir(t.Context(), "other/below"))
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() { waits <- s.makeDir(ctx, "slow/below") }()
	cancel()
	if err := within(t, waits); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	made.Wait()
	must(t, s.makeDir(t.Context(), "slow/below"))
}

// within waits for what comes soon.
func within(t *testing.T, what <-chan error) error {
	t.Helper()
	select {
	case err := <-what:
		return err
	case <-time.After(timeout.Scaled(20 * time.Second)):
		t.Fatal("it does not end")
		return nil
	}
}

// TestReadOnlyPart: what there is of a file that nobody may write to, and all may read, can be gone
// on with by who is not root, is for nobody else, and has its mode in the end.
func TestReadOnlyPart(t *testing.T) {
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	must(t, os.Chmod(r.file, 0o444))
	r.half(t, ReceiveConfig{})
	parts, err := filepath.Glob(filepath.Join(r.dir, partPrefix+"*"))
	if err != nil || len(parts) != 1 {
		t.Fatal(parts, err)
	}
	if info, err := os.Stat(parts[0]); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if sendErr != nil || receiveErr != nil || result.Resumed == 0 {
		t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
	}
	if info, err := os.Stat(filepath.Join(r.dir, "x")); err != nil || info.Mode() != 0o444 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestModesOfTheFileSystem: where all files have the mode that a file system gives them, as on
// vfat, and may not get another one, they are received all the same.
func TestModesOfTheFileSystem(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	s.lock = func(f *os.File) error {
		must(t, f.Chmod(0o777))
		return lock(f)
	}
	for n, errno := range []error{unix.EPERM, unix.ENOTSUP, unix.ENOSYS, unix.EIO} {
		s.chmod = func(f *os.File, _ fs.FileMode) error {
			return &fs.PathError{Op: "chmod", Path: f.Name(), Err: errno}
		}
		name := fmt.Sprint("f", n)
		_, err := put(s, message{Path: name, Name: "n", Mode: 0o644}, "text")
		info, statErr := os.Stat(filepath.Join(dir, name))
		switch {
		case errno == unix.EIO:
			if !errors.Is(err, errno) || statErr == nil {
				t.Errorf("%v: %v, %v", errno, err, statErr)
			}
		case err != nil || statErr != nil || info.Mode() != 0o777:
			t.Errorf("%v: %v, %v, %v", errno, err, info, statErr)
		}
	}
}

// TestSettledPart: what is whole, and did not get its name, is for nobody else when it is kept.
func TestSettledPart(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: 4, Mode: 0o644},
		hostOf("192.0.2.1"))
	must(t, err)
	must(t, errors.Join(p.add([]byte("text")), p.settle(), p.leave()))
	if info, err := os.Stat(filepath.Join(dir, p.lasting)); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
