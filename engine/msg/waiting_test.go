package msg_test

import (
	"context"
	"errors"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
)

// TestReuse: a Send and a Receive can be used again, not while they are under way, and whoever
// waits is told, by Wait and by Done, before and after the end.
func TestReuse(t *testing.T) {
	for name, spin := range map[string]msg.Options{"sleep": {Spin: -1}, "spin": {}} {
		t.Run(name, func(t *testing.T) {
			_, b, ca, cb := newPair(t, sim.Faults{}, spin)
			ctx := within(t)
			s := &msg.Send{Buffers: [][]byte{[]byte("once more")}}
			r := &msg.Receive{Buffers: [][]byte{make([]byte, 20)}}
			for range 100 {
				must(t, b.PostReceive(r))
				if err := b.PostReceive(r); !errors.Is(err, msg.ErrQueued) {
					t.Fatalf("posted twice: %v", err)
				}
				before := r.Done()
				others := make(chan error, 2)
				for range 2 {
					go func() { others <- r.Wait(ctx) }()
				}
				must(t, ca.PostSend(s))
				must(t, r.Wait(ctx))
				must(t, s.Wait(ctx))
				must(t, <-others)
				must(t, <-others)
				<-before
				<-r.Done()
				if r.Length != 9 || r.From != cb {
					t.Fatalf("%d bytes from %v", r.Length, r.From)
				}
			}
		})
	}
}

// TestWaitEnds: a receive whose context ends is taken back: its memory is the caller's again, and
// the next message goes elsewhere.
func TestWaitEnds(t *testing.T) {
	_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	ctx := within(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	first := make([]byte, 4)
	if _, err := cb.Receive(ended, first); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, ca.Send(ctx, []byte("here")))
	second := make([]byte, 4)
	if _, _, err := b.Receive(ctx, second); err != nil || string(second) != "here" ||
		string(first) == "here" {
		t.Errorf("%v: %q, and %q in what was taken back", err, second, first)
	}
}

// TestNoAllocations: messages of all lengths that go through slots allocate nothing.
func TestNoAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	_, b, ca, _ := newPair(t, sim.Faults{}, msg.Options{})
	ctx := within(t)
	data := make([]byte, 64)
	s, r := &msg.Send{Buffers: [][]byte{data}}, &msg.Receive{Buffers: [][]byte{make([]byte, 64)}}
	round := func() {
		must(t, b.PostReceive(r))
		must(t, ca.PostSend(s))
		must(t, s.Wait(ctx))
		must(t, r.Wait(ctx))
	}
	for range 1000 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// TestAnnouncedWhileTheApplicationSleeps: behind PostSend its caller does nothing at all, and waits
// for something else. The message is announced, given a key, read by the peer and completed
// meanwhile.
func TestAnnouncedWhileTheApplicationSleeps(t *testing.T) {
	for _, p := range []rmsg.Protocol{rmsg.Get, rmsg.Put, rmsg.Provisioned, rmsg.Fragments} {
		a, _, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
		const size = 150_000
		received := make(chan error)
		post := make(chan error, 1)
		s := &msg.Send{Buffers: [][]byte{make([]byte, size)}, Protocol: p, Level: rmsg.Delivered}
		go func() {
			post <- ca.PostSend(s)
			<-received // blocked, and not in a call of the endpoint
		}()
		must(t, <-post)
		n, err := cb.Receive(within(t), make([]byte, size))
		if err != nil || n != size {
			t.Errorf("%v: %d bytes: %v", p, n, err)
		}
		select {
		case <-s.Done():
		case <-within(t).Done():
			t.Errorf("%v: it is not complete", p)
		}
		received <- nil
		if n := a.Usage().Requests; n != 0 {
			t.Errorf("%v: %d requests", p, n)
		}
	}
}
