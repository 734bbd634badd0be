package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/msg/match"
)

// TestClaimedMessageIsReceivedOnce: what was claimed goes to nobody else, whether its data is here
// or only its announcement, and is received once.
func TestClaimedMessageIsReceivedOnce(t *testing.T) {
	for _, length := range []int{0, 100, 300_000} {
		d := newDuo(t, Config{})
		e := d.b.endpoint
		if _, ok := e.Probe(0, 0, nil); ok {
			t.Fatal("a message before any is sent")
		}
		sends := []*Send{
			{Pieces: [][]byte{pattern(1, length)}, Tag: 1},
			{Pieces: [][]byte{pattern(2, length)}, Tag: 2},
		}
		for _, s := range sends {
			must(t, d.ca.Send(d.now, s))
		}
		d.settle()
		m, ok := e.Probe(2, match.Exact, d.cb)
		if !ok || m.Tag != 2 || m.Length != length || m.From != d.cb {
			t.Fatalf("probe: %+v", m)
		}
		if err := e.ReceiveClaimed(&m, &Receive{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("what was only probed: %v", err)
		}
		m, ok = e.Claim(d.now, 1, match.Exact, nil)
		if _, again := e.Claim(d.now, 1, match.Exact, nil); !ok || again {
			t.Fatalf("claimed: %v, again: %v", ok, again)
		}
		if length > 1024 { // too late
			d.a.endpoint.CancelSend(d.now, sends[0])
			d.settle()
		}
		other := &Receive{Pieces: [][]byte{make([]byte, length)}}
		must(t, e.Receive(d.now, other))
		r := &Receive{Pieces: [][]byte{make([]byte, length)}}
		must(t, e.ReceiveClaimed(&m, r))
		if err := e.ReceiveClaimed(&m, r); err == nil {
			t.Error("received twice")
		}
		d.settle()
		if err := e.ReceiveClaimed(&m, &Receive{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("received again: %v", err)
		}
		for e.NextReceived() != nil {
		}
		for d.a.endpoint.NextSent() != nil {
		}
		if other.Err != nil || other.SentTag != 2 || r.Err != nil || r.SentTag != 1 ||
			!bytes.Equal(r.Pieces[0], pattern(1, length)) || sends[0].Err != nil {
			t.Errorf("%d bytes: %v, %v, %v", length, other.Err, r.Err, sends[0].Err)
		}
	}
}

// TestClaimedMessageOfPeerThatIsGone: its data is received when it is here; what was only
// announced is lost, and ReceiveClaimed says so.
func TestClaimedMessageOfPeerThatIsGone(t *testing.T) {
	d := newDuo(t, Config{})
	e := d.b.endpoint
	must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(1, 100)}, Tag: 1}))
	must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(2, 300_000)}, Tag: 2}))
	d.settle()
	here, _ := e.Claim(d.now, 1, 1, d.cb)
	announced, _ := e.Claim(d.now, 2, 2, d.cb)
	d.ca.Abort(d.now, errHungUp)
	d.settle()
	r := &Receive{Pieces: [][]byte{make([]byte, 100)}}
	must(t, e.ReceiveClaimed(&here, r))
	if e.NextReceived() != r || !bytes.Equal(r.Pieces[0], pattern(1, 100)) {
		t.Error("the data that was here is another")
	}
	for range 2 {
		if err := e.ReceiveClaimed(&announced, r); err == nil {
			t.Error("received from nowhere")
		}
	}
	d.nothingLeft()
}

// TestClaimMakesRoom: who claims an unexpected message makes room for the next one in its slot.
func TestClaimMakesRoom(t *testing.T) {
	d := newDuo(t, Config{Unexpected: 1})
	for n := range 5 {
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{{1}}, Tag: uint64(n)}))
	}
	d.settle()
	for n := range 5 {
		m, ok := d.b.endpoint.Claim(d.now, 0, 0, nil)
		if !ok || m.Tag != uint64(n) {
			t.Fatalf("message %d: %+v, %v", n, m, ok)
		}
	}
}
