package msg_test

import (
	"context"
	"errors"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
)

// TestProbe: a message that nobody has asked for is seen, and stays; one that is claimed goes to
// who has claimed it and to nobody else, whatever way it came.
func TestProbe(t *testing.T) {
	for _, size := range []int{0, 100, 1 << 20} {
		_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
		ctx := within(t)
		if _, ok := b.TryProbe(0, 0, nil); ok {
			t.Fatal("a message before any is sent")
		}
		sends := make([]msg.Send, 3)
		found := make(chan msg.Message, 1)
		go func() { // before it is there
			m, err := b.Claim(ctx, 2, ^uint64(0), nil)
			if err != nil {
				t.Error(err)
			}
			found <- m
		}()
		for i := range sends {
			sends[i] = msg.Send{Buffers: [][]byte{make([]byte, size)}, Tag: uint64(i + 1)}
			must(t, ca.PostSend(&sends[i]))
		}
		m, err := b.Probe(ctx, 3, ^uint64(0), cb)
		if err != nil || m.Tag != 3 || m.Length != size || m.From != cb {
			t.Fatalf("%+v, %v", m, err)
		}
		if _, err := m.Receive(ctx, nil); !errors.Is(err, rmsg.ErrInvalid) {
			t.Errorf("what was not claimed is received: %v", err)
		}
		claimed := <-found
		if again, ok := b.TryClaim(2, ^uint64(0), nil); ok {
			t.Errorf("claimed twice: %v", again)
		}
		first, ok := b.TryClaim(0, 0, cb)
		if !ok || first.Tag != 1 {
			t.Fatalf("%+v, %v", first, ok)
		}
		third := &msg.Receive{Buffers: [][]byte{make([]byte, size)}}
		must(t, b.PostReceive(third))
		for _, m := range []*msg.Message{&claimed, &first} {
			if n, err := m.Receive(ctx, make([]byte, size)); n != size || err != nil {
				t.Errorf("message %d: %d bytes, %v", m.Tag, n, err)
			}
			if _, err := m.Receive(ctx, nil); !errors.Is(err, rmsg.ErrInvalid) {
				t.Errorf("received twice: %v", err)
			}
		}
		must(t, third.Wait(ctx))
		if third.Tag != 3 {
			t.Errorf("tag %d", third.Tag)
		}
		for i := range sends {
			must(t, sends[i].Wait(ctx))
		}
	}
}

// TestDiscard: a claimed message that nobody wants is gone, its sender is done with it, whatever
// way it came, and nothing of it is kept.
func TestDiscard(t *testing.T) {
	for _, size := range []int{0, 100, 1 << 20} {
		_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
		ctx := within(t)
		s := &msg.Send{Buffers: [][]byte{make([]byte, size)}, Level: rmsg.Matched}
		must(t, ca.PostSend(s))
		m, err := b.Claim(ctx, 0, 0, cb)
		must(t, err)
		must(t, m.Discard())
		if err := m.Discard(); !errors.Is(err, rmsg.ErrInvalid) {
			t.Errorf("discarded twice: %v", err)
		}
		must(t, s.Wait(ctx))
		must(t, ca.Send(ctx, []byte("next")))
		buf := make([]byte, 10)
		if n, err := cb.Receive(ctx, buf); string(buf[:n]) != "next" || err != nil {
			t.Errorf("behind it comes %q, %v", buf[:n], err)
		}
		if u := b.Usage(); u.Unexpected != 0 || u.Kept != 0 {
			t.Errorf("%d messages of %d bytes are kept", u.Unexpected, u.Kept)
		}
	}
	var none msg.Message
	if err := none.Discard(); !errors.Is(err, rmsg.ErrInvalid) {
		t.Error(err)
	}
}

// TestProbeEnds: who waits is told that the context has ended, and that there will be no message.
func TestProbeEnds(t *testing.T) {
	a, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Probe(ended, 0, 0, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ends := make(chan error, 2)
	go func() {
		_, err := b.Claim(t.Context(), 0, 0, cb)
		ends <- err
	}()
	ca.Abort()
	if err := <-ends; !errors.Is(err, cb.Err()) || cb.Err() == nil {
		t.Errorf("%v, connection: %v", err, cb.Err())
	}
	go func() {
		_, err := a.Probe(t.Context(), 0, 0, nil)
		ends <- err
	}()
	must(t, a.Close())
	if err := <-ends; !errors.Is(err, msg.ErrClosed) {
		t.Error(err)
	}
	if _, err := a.Claim(t.Context(), 0, 0, nil); !errors.Is(err, msg.ErrClosed) {
		t.Error(err)
	}
	if _, ok := a.TryClaim(0, 0, nil); ok {
		t.Error("a message of nobody")
	}
	var none msg.Message
	if err := none.PostReceive(&msg.Receive{}); !errors.Is(err, rmsg.ErrInvalid) {
		t.Error(err)
	}
}
