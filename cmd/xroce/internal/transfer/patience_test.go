package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// brief is a patience of 50 ms for work, and so much more for what there is of a file as outlasts
// any machine.
func brief(size int) patience {
	p := ordinary
	p.work = 50 * time.Millisecond
	p.rate = max(1, int64(size)/int64(timeout.Scaled(5*time.Minute)/time.Second))
	return p
}

// TestHashingIsNoSilence: an end that reads what it has for longer than the other waits for what it
// need not read anything for is waited for, whoever it is and whoever has the part.
func TestHashingIsNoSilence(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		fetch, atServer bool
	}{{false, false}, {false, true}, {true, false}, {true, true}} {
		t.Run(fmt.Sprintf("fetch %v, at the server %v", c.fetch, c.atServer), func(t *testing.T) {
			r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
			to := filepath.Join(t.TempDir(), "f")
			move := func(ctx context.Context, client *Client, then func()) (Result, error) {
				progress := func(int64, int64) { then() }
				if c.fetch {
					return client.Fetch(ctx, FetchConfig{
						Path: "f", To: to, Keep: time.Hour, Progress: progress,
					})
				}
				return client.Send(ctx, SendConfig{File: r.file, Path: "x"})
			}
			if c.fetch {
				r.offered(t, StoreConfig{Read: true})
				stop := r.listen(t.Context(), ReceiveConfig{})
				ctx, cancel := context.WithCancel(t.Context())
				first := r.client()
				if _, err := move(ctx, first, cancel); err == nil {
					t.Fatal("it was not cut off")
				}
				first.Close()
				stop()
			} else {
				r.serve(t, StoreConfig{Keep: time.Hour})
				r.half(t, ReceiveConfig{})
			}
			over := make(chan struct{}) // the other end has given up
			slowly := func() { _ = await(t.Context(), over, nil, 8*brief(0).work) }
			client, config := r.client(), ReceiveConfig{}
			if c.atServer {
				client.patience, config.hashes = brief(len(r.content)), slowly
			} else {
				config.patience, client.hashes = brief(len(r.content)), slowly
			}
			stop := r.listen(t.Context(), config)
			result, err := move(t.Context(), client, func() {})
			close(over)
			client.Close()
			errs := stop()
			if err = errors.Join(err, errors.Join(errs...)); err != nil || result.Resumed == 0 {
				t.Errorf("%d bytes were gone on behind, %v", result.Resumed, err)
			}
		})
	}
}

// TestWorkIsBounded: who is waited for because it reads or writes much is waited for long, and not
// for ever.
func TestWorkIsBounded(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{
		0:         10 * time.Minute,
		4<<20 - 1: 10 * time.Minute,
		400 << 20: 10*time.Minute + 100*time.Second,
		MaxSize:   10*time.Minute + 1<<30*time.Second,
	} {
		if got := ordinary.forWork(bytes); got != want {
			t.Errorf("%d bytes: %v, not %v", bytes, got, want)
		}
	}
}

// TestSyncIsNoSilence: a server that writes a file to disk for long is waited for as well.
func TestSyncIsNoSilence(t *testing.T) {
	r := newRig(t, ChunkSize, sim.Faults{})
	over := make(chan struct{})
	r.store.sync = func(*os.File) error {
		_ = await(t.Context(), over, nil, 8*brief(0).work)
		return nil
	}
	stop := r.listen(t.Context(), ReceiveConfig{})
	c := r.client()
	c.patience = brief(len(r.content))
	_, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
	close(over)
	c.Close()
	if errs := stop(); err != nil {
		t.Error(err, errs)
	}
}

// TestHashingIsNoRetry: the hours in which both ends read what there is do not count as those in
// which nothing gets through, when the connection is lost behind them.
func TestHashingIsNoRetry(t *testing.T) {
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	r.half(t, ReceiveConfig{})
	stop := r.listen(t.Context(), ReceiveConfig{})
	now, lost := time.Now(), 0
	c := r.client()
	c.Retry, c.now = time.Hour, func() time.Time { return now }
	dial, last := c.Dial, (*Link)(nil)
	c.Dial = func(ctx context.Context) (link *Link, err error) {
		last, err = dial(ctx)
		return last, err
	}
	c.hashes = func() {
		now = now.Add(24 * time.Hour)
		if lost == 0 {
			last.Conn.Abort()
		}
	}
	c.Lost = func(error) { lost++ }
	result, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
	c.Close()
	errs := stop()
	if err != nil || lost == 0 || result.Resumed == 0 {
		t.Errorf("lost %d times, %d bytes were gone on behind, %v, server %v", lost, result.Resumed,
			err, errs)
	}
}

// TestSmallPartsAreNoLongRetry: a server that claims to have a byte of the file, and hangs up
// after nine minutes in which it is to read that, does not keep a client at it that gives up after
// one.
func TestSmallPartsAreNoLongRetry(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waited atomic.Int64
	var servers sync.WaitGroup
	c := r.client()
	c.Retry, c.now = time.Minute, func() time.Time { return time.Unix(0, waited.Load()) }
	c.Dial = func(ctx context.Context) (*Link, error) {
		near, far := r.connect(t, client, server)
		servers.Go(func() {
			hearOffer(far)
			sayMessage(far, message{Path: "x", Held: 1})
			_, _ = newControl(far, patience{}).receive(ctx, ordinary.exchange)
			waited.Add(int64(9 * time.Minute))
			far.Conn.Abort()
		})
		return near, nil
	}
	lost := 0
	c.Lost = func(error) {
		if lost++; lost > 2 {
			cancel()
		}
	}
	_, err := c.Send(ctx, SendConfig{File: r.file, Path: "x"})
	c.Close()
	servers.Wait()
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "--retry") || lost > 0 {
		t.Errorf("it tried %d times more: %v", lost, err)
	}
}

// TestLessThanThereWas: when what came before is gone, what gets through counts from there on, a
// few times.
func TestLessThanThereWas(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	stop := r.listen(t.Context(), ReceiveConfig{})
	for _, tt := range []struct {
		done, began, tries int64
		name               string
	}{
		{100, -1, 1, "nothing began"},
		{100, 0, 2 + maxAnew - 1, "all is gone"},
		{100, 50, 2 + maxAnew - 1, "half is"},
		{100, 100, 1, "nothing comes"},
	} {
		c, now, tries := r.client(), time.Now(), int64(0)
		c.Retry, c.now = time.Minute, func() time.Time { return now }
		_, err := c.persist(t.Context(), func(conn *control) (Result, int64, error) {
			now = now.Add(time.Hour)
			conn.began = tt.began
			if tries++; tries == 1 {
				conn.began = 0
			}
			return Result{}, tt.done, ErrLost
		})
		c.Close()
		if tries != 1+tt.tries || !errors.Is(err, ErrLost) {
			t.Errorf("%s: %d tries, want %d: %v", tt.name, tries, 1+tt.tries, err)
		}
	}
	stop()
}

// TestServerEndedWithTheFailure: one that failed with a file may have been there for one
// connection. Nobody waits for it to come back.
func TestServerEndedWithTheFailure(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	stop := r.listen(t.Context(), ReceiveConfig{})
	c := r.client()
	c.Retry, c.Lost = time.Hour, func(err error) { t.Errorf("it tries again: %v", err) }
	_, err := c.persist(t.Context(), func(*control) (Result, int64, error) {
		return Result{}, 1, failed(&peerError{text: "no space"})
	})
	stop()
	gone := errors.New("nobody listens")
	c.Dial = func(context.Context) (*Link, error) { return nil, gone }
	_, next := c.persist(t.Context(), nil)
	if !Passable(err) || !errors.Is(next, gone) {
		t.Errorf("%v, then %v", err, next)
	}
}

// TestSilenceIsNoHashing: who waits in vain for what the other end makes of a part does not count
// that as work, nor what is longer than the work can be.
func TestSilenceIsNoHashing(t *testing.T) {
	const inAnHour = 3600 * 4 << 20
	for _, c := range []struct {
		held int64
		err  error
		want time.Duration
	}{
		{inAnHour, nil, time.Hour},
		{inAnHour, ErrLost, time.Hour},
		{inAnHour, peer.ErrSilence, 0},
		{2 * inAnHour, ErrLost, time.Hour},
		{inAnHour / 2, ErrLost, time.Hour / 2},
		{1, nil, 0},
		{1, ErrLost, 0},
	} {
		now := time.Unix(0, 0)
		conn := &control{patience: ordinary, now: func() time.Time { return now }}
		got := conn.comparing(c.held, func() error {
			now = now.Add(time.Hour)
			return c.err
		})
		if conn.compared != c.want || !errors.Is(got, c.err) {
			t.Errorf("%+v: %v count, %v", c, conn.compared, got)
		}
	}
}

// TestOfferIsAnsweredLate: a server that waits for a part, or for room, has longer to answer than
// for what it only has to say.
func TestOfferIsAnsweredLate(t *testing.T) {
	if ordinary.offer <= claimTime+roomTime {
		t.Errorf("%v for an answer that takes %v", ordinary.offer, claimTime+roomTime)
	}
	r := newRig(t, 1, sim.Faults{})
	over := make(chan struct{})
	stop := r.listen(t.Context(), ReceiveConfig{Admit: func() error {
		_ = await(t.Context(), over, nil, 8*impatient.exchange)
		return nil
	}})
	c := r.client()
	c.patience = ordinary
	c.patience.offer = timeout.Scaled(time.Minute)
	must(t, c.connect(t.Context()))
	c.control.patience.exchange = impatient.exchange
	_, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
	close(over)
	c.Close()
	if errs := stop(); err != nil {
		t.Error(err, errs)
	}
}

// TestEndOfTheDeviceKeepsThePart: what there is of a file does not go with the device.
func TestEndOfTheDeviceKeepsThePart(t *testing.T) {
	r := newRig(t, 2*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	ctx, end := context.WithCancelCause(t.Context())
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{
		Progress: func(int64, int64) { end(errors.New("the device is gone")) },
	}, t.Context(), ctx)
	if sendErr == nil || receiveErr == nil {
		t.Fatal(sendErr, receiveErr)
	}
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if sendErr != nil || receiveErr != nil || result.Resumed == 0 {
		t.Errorf("%+v, %v, %v", result, sendErr, receiveErr)
	}
}
