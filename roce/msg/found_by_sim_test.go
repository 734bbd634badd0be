package msg

import (
	"errors"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// This file has what xroce sim --messages has found: each failed once.

// join2 makes two nodes that are connected, and have told each other of their slots.
func join2(t *testing.T, seed uint64, a, b Config) (w *world, ca, cb *Conn) {
	t.Helper()
	w = newWorld(t, seed)
	ca, cb = w.join(w.node(a), w.node(b), allCapabilities)
	w.settle()
	return w, ca, cb
}

// TestThrottledSpeaks: a connection that waits for the pull window still says what it has to
// say, and may end.
func TestThrottledSpeaks(t *testing.T) {
	w, ca, cb := join2(t, 1, Config{Protocol: Get}, Config{PullWindow: 9000, Chunk: 5000})
	e := cb.endpoint
	w.hold = func(_ *Conn, wr *verbs.SendWR) bool { return wr.Opcode == verbs.OpRead }
	must(t, ca.Send(w.now, &Send{Pieces: [][]byte{pattern(0, 50_000)}}))
	must(t, e.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 50_000)}}))
	w.settle()
	if !cb.throttled || len(e.throttled) != 1 {
		t.Fatal("it does not wait for the pull window")
	}
	must(t, cb.Send(w.now, &Send{Pieces: [][]byte{pattern(1, 8)}}))
	w.settle()
	if ca.endpoint.Usage().Unexpected != 1 {
		t.Error("a message does not leave")
	}
	cb.Abort(w.now, errNoMemory)
	w.settle()
	w.nothingLeft()
}

// TestFewerSlotsAreGivenBack: a peer whose slots were renewed as fewer hears in time that they
// are free.
func TestFewerSlotsAreGivenBack(t *testing.T) {
	w, ca, cb := join2(t, 1, Config{Protocol: Fragments}, Config{Slots: 32})
	must(t, cb.Renew(2))
	w.settle()
	s := &Send{Pieces: [][]byte{pattern(0, 20_000)}}
	must(t, ca.Send(w.now, s))
	must(t, cb.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 20_000)}}))
	w.settle()
	if ca.endpoint.NextSent() != s || s.Err != nil {
		t.Errorf("the message is in state %d: %v", s.state, s.Err)
	}
}

// TestCloseWaitsForMatch: a synchronous message that is kept at the peer is still matched when
// both ends have closed.
func TestCloseWaitsForMatch(t *testing.T) {
	w, ca, cb := join2(t, 1, Config{}, Config{})
	s := &Send{Pieces: [][]byte{pattern(0, 8)}, Level: Matched}
	must(t, ca.Send(w.now, s))
	ca.Close(w.now)
	cb.Close(w.now)
	w.settle()
	must(t, cb.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 8)}}))
	w.settle()
	if ca.endpoint.NextSent() != s || s.Err != nil {
		t.Errorf("the message is in state %d: %v", s.state, s.Err)
	}
	if !errors.Is(ca.Err(), ErrClosed) || !errors.Is(cb.Err(), ErrClosed) {
		t.Errorf("closed: %v, %v", ca.Err(), cb.Err())
	}
	w.nothingLeft()
}

// TestCloseWaitsForReceive: a connection is not over before the peer has taken out what was sent
// before, whoever waits for that.
func TestCloseWaitsForReceive(t *testing.T) {
	for level := Buffered; level <= Matched; level++ {
		w, ca, cb := join2(t, 1, Config{}, Config{Unexpected: 1})
		s := []*Send{{Level: level}, {Level: level}, {Level: level}}
		for i := range s {
			s[i].Pieces = [][]byte{pattern(i, 8)}
			must(t, ca.Send(w.now, s[i]))
		}
		ca.Close(w.now)
		cb.Close(w.now)
		w.settle()
		if ca.Err() != nil || cb.Err() != nil {
			t.Fatalf("level %d: over: %v, %v", level, ca.Err(), cb.Err())
		}
		for range s {
			must(t, cb.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 8)}}))
			w.settle()
		}
		for i := range s {
			if r := cb.endpoint.NextReceived(); r == nil || r.Err != nil {
				t.Errorf("level %d: message %d has not come", level, i)
			}
		}
		if !errors.Is(ca.Err(), ErrClosed) || !errors.Is(cb.Err(), ErrClosed) {
			t.Errorf("level %d: closed: %v, %v", level, ca.Err(), cb.Err())
		}
		w.nothingLeft()
	}
}

// TestLateProvision: large slots that come when others were asked for since, and given up, are
// given back.
func TestLateProvision(t *testing.T) {
	w, ca, _ := join2(t, 1, Config{}, Config{})
	ca.asking.epoch = 3
	for _, c := range []struct {
		epoch uint32
		want  error
	}{{1, nil}, {2, nil}, {3, nil}, {0, ErrEpoch}, {4, ErrEpoch}} {
		before := ca.out.n
		err := ca.takeProvisionAck(w.now, &Control{Type: TypeProvisionAck, Class: 1, ID: c.epoch})
		if !errors.Is(err, c.want) || (ca.out.n > before) != (c.want == nil) {
			t.Errorf("epoch %d: %v, %d messages", c.epoch, err, ca.out.n-before)
		}
	}
}

// TestAbortInOrder: messages that wait to be matched fail in the order in which they were sent.
func TestAbortInOrder(t *testing.T) {
	w, ca, _ := join2(t, 1, Config{}, Config{})
	var sends []*Send
	for i := range 20 {
		s := &Send{Pieces: [][]byte{pattern(i, 8)}, Level: Matched}
		must(t, ca.Send(w.now, s))
		sends = append(sends, s)
	}
	w.settle()
	ca.Abort(w.now, errHungUp)
	for i, want := range sends {
		if s := ca.endpoint.NextSent(); s != want || !errors.Is(s.Err, errHungUp) {
			t.Fatalf("message %d is not the next that fails", i)
		}
	}
}

// TestClosedBeforeTheAcknowledgement: the peer has taken all that was sent, has said so, and hangs
// up; the acknowledgement of the last frame is lost. The connection was closed in order, over one
// rail and over two, which nobody waits for then.
func TestClosedBeforeTheAcknowledgement(t *testing.T) {
	for rails := 1; rails <= 2; rails++ {
		c := Config{Rails: rails, Grace: 1000 * clock.Second}
		x := newRailed(t, 1, allCapabilities, c, c)
		x.settle()
		for _, p := range x.pipes {
			p.held = p.from == x.b
		}
		mark, s := &Send{}, &Send{Pieces: [][]byte{{1}}, Level: Transmitted}
		must(t, x.cb.Send(x.now, s))
		must(t, x.cb.Flush(x.now, mark))
		must(t, x.a.endpoint.Receive(x.now, &Receive{Pieces: [][]byte{make([]byte, 8)}}))
		x.settle()
		x.ca.Close(x.now)
		x.cb.Close(x.now)
		x.settle()
		if !errors.Is(x.ca.Err(), ErrClosed) || !errors.Is(x.cb.Err(), ErrClosed) {
			t.Errorf("%d rails: %v, %v", rails, x.ca.Err(), x.cb.Err())
		}
		if s.Err != nil || mark.Err != nil {
			t.Errorf("%d rails: sent: %v, all before the mark: %v", rails, s.Err, mark.Err)
		}
	}
}
