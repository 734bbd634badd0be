package msg

import (
	"testing"
)

// TestLocalOnlyAsksThePeerForNothing: in mode LocalOnly the sender makes a larger buffer once, for
// the first message that is too long, and announces messages from there; the peer is not asked for
// memory, the application's gets no key, and the buffer goes when it was not used for long.
func TestLocalOnlyAsksThePeerForNothing(t *testing.T) {
	for _, caps := range []Capabilities{CapabilityGet, CapabilityPut} {
		d := &duo{world: newWorld(t, 1)}
		d.a, d.b = d.node(Config{Mode: LocalOnly}), d.node(Config{})
		d.ca, d.cb = d.join(d.a, d.b, caps)
		d.settle()
		d.send(pattern(1, 1024))
		before := len(d.a.regions)
		for n, length := range []int{1025, 8192, 5000, 3000} {
			s := d.send(pattern(n, length))
			if s.Choice.Protocol != Provisioned || len(d.a.regions) != before+1 {
				t.Errorf("%d bytes go by %v, %d regions more", length, s.Choice,
					len(d.a.regions)-before)
			}
		}
		s := d.send(pattern(1, 3000), pattern(2, 2000)) // several pieces need no key either
		if s.Choice.Why != HasLarge {
			t.Errorf("pieces go by %v", s.Choice)
		}
		d.send(pattern(5, 60_000)) // another class
		if len(d.a.regions) != before+1 || len(d.b.regions) != before {
			t.Errorf("%d and %d regions", len(d.a.regions), len(d.b.regions))
		}
		if n := d.heard(provisioning...); n != 0 {
			t.Errorf("the peer is asked %d times", n)
		}
		d.now += d.a.endpoint.config.Idle
		d.a.endpoint.HandleDeadline(d.now)
		d.settle()
		if len(d.a.regions) != before {
			t.Errorf("the buffer stays")
		}
		d.send(pattern(1, 2000))
		d.ca.Close(d.now)
		d.cb.Close(d.now)
		d.settle()
		d.nothingLeft()
	}
}

// TestLocalOnlyWaitsForRoom: with all slots of the buffer in use a further message waits, and one
// of another class that is made meanwhile does not take the memory from under those.
func TestLocalOnlyWaitsForRoom(t *testing.T) {
	d := newDuo(t, Config{Mode: LocalOnly, LargeSlots: 2})
	var sends []*Send
	for n, length := range []int{8000, 8000, 8000, 60_000, 5000} {
		sends = append(sends, &Send{Pieces: [][]byte{pattern(n, length)}, Tag: uint64(n)})
		must(t, d.ca.Send(d.now, sends[n]))
	}
	d.settle()
	if n := d.heard(TypeRTS); n != 2 {
		t.Errorf("%d messages are announced", n)
	}
	for n, s := range sends {
		r := &Receive{Pieces: [][]byte{make([]byte, s.length)}}
		must(t, d.b.endpoint.Receive(d.now, r))
		d.settle()
		if d.b.endpoint.NextReceived() != r || r.Err != nil || r.SentTag != uint64(n) {
			t.Errorf("message %d: %v", n, r.Err)
		}
	}
	d.ca.Abort(d.now, errHungUp)
	d.settle()
	d.nothingLeft()
}
