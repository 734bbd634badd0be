package msg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	rmsg "xroce/roce/msg"
)

// TestActive: handlers are called with messages of all lengths, in the order in which they were
// sent, and may answer.
func TestActive(t *testing.T) {
	for p := rmsg.Auto; p <= rmsg.Fragments; p++ {
		t.Run(p.String(), func(t *testing.T) {
			a, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{Machine: rmsg.Config{Protocol: p}})
			ctx := within(t)
			must(t, b.Handle(7, func(m *msg.Active) {
				if m.From != cb {
					t.Errorf("from %v", m.From)
				}
				answer := binary.BigEndian.AppendUint64(nil, uint64(len(m.Data)))
				if err := m.From.Inject(uint64(m.Data[0]), answer); err != nil {
					t.Error(err)
				}
			}))
			lengths := []int{1, 1024, 1025, 70_000, 300_000}
			const rounds = 8
			for n := range rounds * len(lengths) {
				data := bytes.Repeat([]byte{byte(n)}, lengths[n%len(lengths)])
				if n%2 == 0 {
					must(t, ca.SendActive(ctx, 7, data))
					continue
				}
				must(t, ca.PostSend(&msg.Send{
					Buffers: [][]byte{data}, Active: true, Handler: 7, Level: rmsg.Matched,
				}))
			}
			for n := range rounds * len(lengths) {
				r := &msg.Receive{Buffers: [][]byte{make([]byte, 8)}, From: ca}
				must(t, a.PostReceive(r))
				must(t, r.Wait(ctx))
				got := binary.BigEndian.Uint64(r.Buffers[0])
				if r.Tag != uint64(n) || got != uint64(lengths[n%len(lengths)]) {
					t.Fatalf("answer %d: to message %d, of %d bytes", n, r.Tag, got)
				}
			}
			must(t, b.Handle(7, nil))
		})
	}
}

// TestActiveIsBounded: while a handler does not return its peer is held up, and holds no more here
// than it may; when it returns all goes on.
func TestActiveIsBounded(t *testing.T) {
	_, b, ca, _ := newPair(t, sim.Faults{}, msg.Options{
		ActiveLimit: 10_000, Machine: rmsg.Config{Unexpected: 20_000},
	})
	ctx := within(t)
	goOn, entered := make(chan struct{}), make(chan struct{}, 1)
	handled := 0
	must(t, b.Handle(1, func(*msg.Active) {
		entered <- struct{}{}
		<-goOn
		handled++
	}))
	const messages = 500
	sends := make([]msg.Send, messages)
	for i := range sends {
		sends[i] = msg.Send{
			Buffers: [][]byte{make([]byte, 1000)}, Active: true, Handler: 1, Level: rmsg.Delivered,
		}
		must(t, ca.PostSend(&sends[i]))
	}
	<-entered
	taken := 0
	for i := range sends {
		select {
		case <-sends[i].Done():
			taken++
		default:
		}
	}
	if most := 20_000/1512 + 1; taken > most {
		t.Errorf("%d messages are taken, at most %d have room", taken, most)
	}
	for range messages - 1 {
		goOn <- struct{}{}
		<-entered
	}
	goOn <- struct{}{}
	must(t, sends[messages-1].Wait(ctx))
	long := &msg.Send{
		Buffers: [][]byte{make([]byte, 10_001)}, Active: true, Handler: 1, Protocol: rmsg.Get,
	}
	must(t, ca.PostSend(long))
	var status *rmsg.StatusError
	if err := long.Wait(ctx); !errors.As(err, &status) || status.Status != rmsg.StatusTooLarge {
		t.Errorf("one that is too long: %v", err)
	}
	long.Handler = 2
	must(t, ca.PostSend(long))
	if err := long.Wait(ctx); !errors.As(err, &status) || b.Snapshot()[rmsg.ActiveUnknown] != 1 {
		t.Errorf("one for nobody: %v", err)
	}
	must(t, b.Close())
	err := b.Handle(1, func(*msg.Active) {})
	if !errors.Is(err, msg.ErrClosed) || handled != messages {
		t.Errorf("%v, %d handled", err, handled)
	}
}

// TestActiveAllocates nothing when messages are short.
func TestActiveAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	_, b, ca, _ := newPair(t, sim.Faults{}, msg.Options{})
	handled := make(chan struct{}, 1)
	must(t, b.Handle(1, func(*msg.Active) { handled <- struct{}{} }))
	s := &msg.Send{Buffers: [][]byte{make([]byte, 64)}, Active: true, Handler: 1}
	ctx := within(t)
	round := func() {
		must(t, ca.PostSend(s))
		must(t, s.Wait(ctx))
		<-handled
	}
	for range 1000 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// TestInject: the memory of a message may be changed at once, also when no slot is free; more than
// so many do not wait.
func TestInject(t *testing.T) {
	_, _, ca, cb := newPair(t, sim.Faults{}, msg.Options{
		Machine: rmsg.Config{Slots: 2, Unexpected: 1},
	})
	ctx := within(t)
	data, sent := make([]byte, 1024), 0
	for ; ; sent++ {
		data[0], data[1023] = byte(sent), byte(sent)
		if err := ca.Inject(9, data); errors.Is(err, roce.ErrQueueFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		clear(data)
	}
	// 64 wait. Three may be in small slots by then, and where this is slow, 63 in each of the four
	// large ones that the endpoints agree on meanwhile: they have 64 KiB.
	if sent < 64 || sent > 64+3+4*63 {
		t.Errorf("%d are sent without a receive", sent)
	}
	for n := range sent {
		buf := make([]byte, 1024)
		got, err := cb.Receive(ctx, buf)
		if got != 1024 || err != nil || buf[0] != byte(n) || buf[1023] != byte(n) {
			t.Fatalf("message %d: %d bytes, %d, %v", n, got, buf[0], err)
		}
	}
	must(t, ca.Flush(ctx))
	if err := ca.Inject(9, make([]byte, 1025)); !errors.Is(err, rmsg.ErrInvalid) {
		t.Error(err)
	}
	ca.Abort()
	<-ca.Done()
	if err := ca.Inject(9, data); !errors.Is(err, msg.ErrClosed) {
		t.Error(err)
	}
	if err := ca.Flush(ctx); !errors.Is(err, msg.ErrClosed) {
		t.Error(err)
	}
}

// TestFlush: what was posted before is in the memory of the peer, of who receives late, too.
func TestFlush(t *testing.T) {
	for p := rmsg.Auto; p <= rmsg.Fragments; p++ {
		_, b, ca, _ := newPair(t, sim.Faults{}, msg.Options{Machine: rmsg.Config{Protocol: p}})
		ctx := within(t)
		must(t, ca.Flush(ctx))
		bufs := make([][]byte, 10)
		for i := range bufs {
			bufs[i] = make([]byte, 100_000)
			must(t, b.PostReceive(&msg.Receive{Buffers: bufs[i : i+1]}))
			data := bytes.Repeat([]byte{byte(1 + i)}, 100_000)
			must(t, ca.PostSend(&msg.Send{Buffers: [][]byte{data}, Protocol: p}))
		}
		must(t, ca.Flush(ctx))
		n := b.Snapshot()
		if got := n[rmsg.BytesRead] + n[rmsg.BytesCopiedIn]; p == rmsg.Get && got != 1_000_000 {
			t.Errorf("%v: %d bytes", p, got)
		}
	}
}
