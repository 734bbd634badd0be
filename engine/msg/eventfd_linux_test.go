package msg_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/msg"
	"xroce/xsk/xsktest/timeout"
)

// readable waits in poll(2) until a descriptor is readable, or not at all.
func readable(t *testing.T, fd int, wait bool) bool {
	t.Helper()
	most := 0
	if wait {
		most = int(timeout.Scaled(20*time.Second) / time.Millisecond)
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, most)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		must(t, err)
		return n == 1
	}
}

// TestEventFD: a descriptor is readable from when something has happened until it is taken,
// whatever it was, and a thread that sleeps there alone misses nothing.
func TestEventFD(t *testing.T) {
	onBoth(t, func(t *testing.T, hosts [2]*host) {
		ca, cb := connect(t, hosts)
		ctx, b := within(t), hosts[1]
		fd, err := b.EventFD()
		must(t, err)
		if again, err := b.EventFD(); again != fd || err != nil {
			t.Errorf("another descriptor: %d, %v", again, err)
		}
		happens := func(what string) {
			t.Helper()
			if !readable(t, fd, true) || !b.TakeEvents() {
				t.Fatalf("%s: nothing has happened", what)
			}
		}
		rests := func(what string) {
			t.Helper()
			if readable(t, fd, false) || b.TakeEvents() {
				t.Errorf("%s: something has happened", what)
			}
		}
		happens("at first")
		rests("then")
		must(t, ca.Send(ctx, []byte("unexpected")))
		happens("an unexpected message")
		if _, found := b.TryProbe(0, 0, nil); !found {
			t.Error("there is none")
		}
		rests("once it was seen")
		r := &msg.Receive{Buffers: [][]byte{make([]byte, 100)}}
		must(t, b.PostReceive(r))
		happens("it is received")
		must(t, r.Wait(ctx))
		for range 300 {
			must(t, b.PostReceive(r))
			must(t, ca.Send(ctx, []byte("expected")))
			for over := false; !over; {
				happens("a message")
				select {
				case <-r.Done():
					over = true
				default:
				}
			}
		}
		long := &msg.Send{Buffers: [][]byte{make([]byte, 300_000)}}
		b.TakeEvents()
		must(t, cb.PostSend(long))
		_, err = ca.Receive(ctx, make([]byte, 300_000))
		must(t, err)
		happens("a message was sent")
		must(t, long.Wait(ctx))
		b.TakeEvents()
		must(t, ca.PostSend(&msg.Send{Buffers: [][]byte{make([]byte, 300_000)}}))
		happens("a message was announced")
		if m, found := b.TryProbe(0, 0, nil); !found || m.Length != 300_000 {
			t.Error("there is none")
		}
		rests("when nothing happens")
		ca.Abort()
		happens("the peer is gone")
		<-cb.Done()
		must(t, b.Close())
		if _, err := b.EventFD(); !errors.Is(err, msg.ErrClosed) {
			t.Errorf("of an endpoint that is closed: %v", err)
		}
		if b.TakeEvents() {
			t.Error("something has happened there")
		}
	})
}
