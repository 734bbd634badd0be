package msg_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// TestSendEnds: when Send returns with the error of its context nobody receives the message, so
// its memory may be changed.
func TestSendEnds(t *testing.T) {
	t.Parallel() // it waits most of the time
	for p := rmsg.Auto; p <= rmsg.Fragments; p++ {
		t.Run(p.String(), func(t *testing.T) {
			config := rmsg.Config{Protocol: p, Policy: rmsg.EnlargeNever, Unexpected: 1, Slots: 2}
			_, _, ca, cb := newPair(t, sim.Faults{}, msg.Options{
				CancelTimeout: timeout.Scaled(60 * time.Second), Machine: config,
			})
			ctx := within(t)
			data := bytes.Repeat([]byte{1}, 100_000)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			sent := 0
			for range 20 { // the first ones of which are kept in slots
				if err := ca.Send(ended, data[:500]); err == nil {
					sent++
				} else if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			// Where this is slow, there may be a slot for it by now.
			err := ca.Send(ended, data)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			whole := err == nil
			clear(data)
			done := make(chan error, 1)
			go func() { done <- ca.Send(ctx, []byte{2}) }()
			buf := make([]byte, len(data))
			all := slices.Repeat([][]byte{bytes.Repeat([]byte{1}, 500)}, sent)
			if whole {
				all = append(all, bytes.Repeat([]byte{1}, len(data)))
			}
			for n, want := range append(all, []byte{2}) {
				got, err := cb.Receive(ctx, buf)
				must(t, err)
				if !bytes.Equal(buf[:got], want) {
					t.Fatalf("message %d of %d: %d bytes, the first is %d", n, len(all)+1, got,
						buf[0])
				}
			}
			must(t, <-done)
		})
	}
}

// TestSendEndsWithoutAPeer: when the peer says nothing of a message that was announced, Send
// returns after CancelTimeout, and the connection has ended.
func TestSendEndsWithoutAPeer(t *testing.T) {
	network, hosts := newNetwork(t, msg.Options{
		CancelTimeout: 20 * time.Millisecond, Machine: rmsg.Config{Protocol: rmsg.Get},
	})
	ca, _ := connect(t, hosts)
	must(t, ca.Send(within(t), nil)) // so that it may announce the next one
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	ended, cancel := context.WithCancel(within(t))
	before := hosts[0].Counters()[rmsg.SentGet]
	go func() {
		// Until it is announced it can be taken back without the peer.
		for hosts[0].Counters()[rmsg.SentGet] == before && ended.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	}()
	err := ca.Send(ended, make([]byte, 1<<20))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, msg.ErrCancelTimeout) {
		t.Error(err)
	}
	<-ca.Done()
	if err := ca.Err(); !errors.Is(err, msg.ErrCancelTimeout) {
		t.Error(err)
	}
	must(t, network.SetFaults(sim.Faults{}))
}

// TestReceiveEndsWithoutAPeer: nor does a receive wait for longer whose message has begun to come.
func TestReceiveEndsWithoutAPeer(t *testing.T) {
	network, hosts := newNetwork(t, msg.Options{
		CancelTimeout: 20 * time.Millisecond, Machine: rmsg.Config{Protocol: rmsg.Get},
	})
	ca, cb := connect(t, hosts)
	must(t, ca.PostSend(&msg.Send{Buffers: [][]byte{make([]byte, 1<<20)}}))
	behind := &msg.Send{Level: rmsg.Delivered}
	must(t, ca.PostSend(behind))
	must(t, behind.Wait(within(t)))
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := cb.Receive(ended, make([]byte, 1<<20))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, msg.ErrCancelTimeout) {
		t.Error(err)
	}
	<-cb.Done()
	must(t, network.SetFaults(sim.Faults{}))
}

// TestTruncated: a message that is longer than its receive is cut off, and the error says by how
// much, whatever way it came.
func TestTruncated(t *testing.T) {
	_, _, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	for _, n := range []int{100, 5000, 1 << 20} {
		s := &msg.Send{Buffers: [][]byte{make([]byte, n)}}
		must(t, ca.PostSend(s))
		got, err := cb.Receive(within(t), make([]byte, 50))
		var cut *msg.TruncatedError
		if got != 50 || !errors.Is(err, msg.ErrTruncated) || !errors.As(err, &cut) ||
			cut.Length != 50 || cut.Whole != n {
			t.Errorf("%d of %d bytes: %v", got, n, err)
		}
		must(t, s.Wait(within(t)))
	}
}
