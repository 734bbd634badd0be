package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/clock"
)

// TestActiveMessages: a handler by number gets messages of every length by every protocol, whole
// and in order with all others, with no receive posted.
func TestActiveMessages(t *testing.T) {
	for p := Auto; p < protocolCount; p++ {
		for seed := range uint64(4) {
			w := newWorld(t, seed)
			a, b := w.node(Config{Protocol: p}), w.node(Config{Protocol: p})
			ca, cb := w.join(a, b, allCapabilities)
			lengths := []int{0, 1, 1024, 1025, 9000, 70_000, 300_000}
			var calls []uint64
			b.endpoint.Handle(7, func(_ clock.Time, m *Active) (*Receive, Status) {
				calls = append(calls, m.Tag)
				want := pattern(int(m.Tag), lengths[int(m.Tag)%len(lengths)])
				if m.From != cb || m.Handler != 7 || m.Length != len(want) {
					t.Errorf("message %d: %v", m.Tag, m)
				}
				if m.Data != nil && m.Tag%2 == 0 {
					if !bytes.Equal(m.Data, want) {
						t.Errorf("message %d is another", m.Tag)
					}
					return nil, StatusOK
				}
				return &Receive{Pieces: [][]byte{make([]byte, m.Length)}}, StatusOK
			})
			const messages = 28
			for n := range messages {
				must(t, ca.Send(w.now, &Send{
					Pieces: [][]byte{pattern(n, lengths[n%len(lengths)])}, Tag: uint64(n),
					Active: true, Handler: 7, Level: Level(w.rand.IntN(4)),
				}))
				for range w.rand.IntN(10) {
					w.step()
				}
			}
			w.settle()
			for n := range calls {
				if calls[n] != uint64(n) {
					t.Fatalf("%v, seed %d: calls %v", p, seed, calls)
				}
			}
			sent, copied := 0, 0
			for s := a.endpoint.NextSent(); s != nil; s = a.endpoint.NextSent() {
				must(t, s.Err)
				sent++
			}
			for r := b.endpoint.NextReceived(); r != nil; r = b.endpoint.NextReceived() {
				n := int(r.SentTag)
				if r.Err != nil || !bytes.Equal(r.Pieces[0], pattern(n, lengths[n%len(lengths)])) {
					t.Errorf("message %d: %v", n, r.Err)
				}
				copied++
			}
			if len(calls) != messages || sent != messages || copied < messages/2 {
				t.Fatalf("%v, seed %d: %d calls, %d sent, %d copied", p, seed, len(calls), sent,
					copied)
			}
		}
	}
}

// TestActiveMessageWithoutHandler: one that came whole is dropped and counted, one that was
// announced is refused, and neither goes to a receive.
func TestActiveMessageWithoutHandler(t *testing.T) {
	d := newDuo(t, Config{})
	r := &Receive{Pieces: [][]byte{make([]byte, 10)}}
	must(t, d.b.endpoint.Receive(d.now, r))
	d.b.endpoint.Handle(1, func(clock.Time, *Active) (*Receive, Status) { return nil, StatusOK })
	d.b.endpoint.Handle(1, nil)
	whole := &Send{Pieces: [][]byte{{1}}, Active: true, Handler: 1, Level: Matched}
	announced := &Send{
		Pieces: [][]byte{make([]byte, 300_000)}, Active: true, Handler: 2, Protocol: Get,
	}
	must(t, d.ca.Send(d.now, whole))
	must(t, d.ca.Send(d.now, announced))
	d.settle()
	if d.a.endpoint.NextSent() != whole || whole.Err != nil {
		t.Errorf("the short one: %v", whole.Err)
	}
	want := new(StatusError)
	if d.a.endpoint.NextSent() != announced || !errors.As(announced.Err, &want) ||
		want.Status != StatusCancelled {
		t.Errorf("the long one: %v", announced.Err)
	}
	if n := d.b.endpoint.Snapshot()[ActiveUnknown]; n != 2 {
		t.Errorf("counted %d times", n)
	}
	if d.b.endpoint.NextReceived() != nil {
		t.Error("a receive has it")
	}
}

// TestHandlerGivesReceiveThatIsInUse: the message is dropped, or refused; the receive is not
// touched.
func TestHandlerGivesReceiveThatIsInUse(t *testing.T) {
	d := newDuo(t, Config{})
	r := &Receive{Pieces: [][]byte{make([]byte, 10)}, Tag: 1, Mask: 1}
	must(t, d.b.endpoint.Receive(d.now, r))
	d.b.endpoint.Handle(0, func(clock.Time, *Active) (*Receive, Status) { return r, StatusOK })
	s := &Send{Pieces: [][]byte{make([]byte, 300_000)}, Active: true, Protocol: Get}
	must(t, d.ca.Send(d.now, s))
	d.settle()
	if d.a.endpoint.NextSent() != s || s.Err == nil || d.b.endpoint.NextReceived() != nil ||
		!r.node.Queued() {
		t.Errorf("the message: %v", s.Err)
	}
}

// TestBusyHandler: messages that their handler does not take stay where they are, in their order,
// and are handed to it again; what is too long is refused by name.
func TestBusyHandler(t *testing.T) {
	for p := Auto; p < protocolCount; p++ {
		d := newDuo(t, Config{Protocol: p, Slots: 4})
		room := 0
		var got []uint64
		d.b.endpoint.Handle(3, func(_ clock.Time, m *Active) (*Receive, Status) {
			switch {
			case m.Length > 100_000:
				return nil, StatusTooLarge
			case room == 0:
				return nil, StatusBusy
			}
			room--
			got = append(got, m.Tag)
			return &Receive{Pieces: [][]byte{make([]byte, m.Length)}}, StatusOK
		})
		const messages = 20
		for n := range messages {
			must(t, d.ca.Send(d.now, &Send{
				Pieces: [][]byte{make([]byte, []int{10, 3000, 50_000}[n%3])}, Tag: uint64(n),
				Active: true, Handler: 3,
			}))
		}
		d.settle()
		for n := range messages {
			if len(got) != n {
				t.Fatalf("%v: %d messages, not %d", p, len(got), n)
			}
			room = 1
			d.b.endpoint.Resume(d.now)
			d.settle()
		}
		for n, tag := range got {
			if tag != uint64(n) {
				t.Fatalf("%v: order %v", p, got)
			}
		}
		for d.a.endpoint.NextSent() != nil {
		}
		long := &Send{
			Pieces: [][]byte{make([]byte, 300_000)}, Active: true, Handler: 3, Protocol: Get,
		}
		must(t, d.ca.Send(d.now, long))
		d.settle()
		want := new(StatusError)
		if !errors.As(long.Err, &want) || want.Status != StatusTooLarge {
			t.Errorf("%v: %v", p, long.Err)
		}
	}
}
