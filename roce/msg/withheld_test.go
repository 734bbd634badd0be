package msg

import (
	"bytes"
	"errors"
	"testing"
)

// This file is about a peer that makes us have memory and does not acknowledge what would let us
// give it back.

// TestAdvertsWithoutAcknowledgements: a peer does not acknowledge what we have written to its slots
// and announces others again and again, as many as we asked for, which are not held to the budget.
// We have a copy of those before, of those in use, and of no more.
func TestAdvertsWithoutAcknowledgements(t *testing.T) {
	l := newLiar(t, Config{Registered: 70_000})
	l.unacked = true
	must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{{1}}}))
	l.settle()
	before := l.c.endpoint.Usage().Memory
	for n := uint32(1); n < 100 && l.c.Err() == nil; n++ {
		l.control(Control{Type: TypeAdvert, ID: n, Number: 32, Len: SlotLen(1024)})
		l.settle()
		if more := l.c.endpoint.Usage().Memory - before; more > int64(l.c.wanted()) {
			t.Fatalf("%d bytes more after %d of them", more, n)
		}
	}
	l.unacked = false
	l.wantBroken(ErrEpoch) // it does not wait for the answer
}

// TestAdvertWaitsForAcknowledgements: acknowledgements are late while an end gives its peer other
// slots, and others again. The second ones are used when the acknowledgements have come, and
// messages go to those before until then.
func TestAdvertWaitsForAcknowledgements(t *testing.T) {
	d := newDuo(t, Config{})
	d.unacked = true
	say := func(n int) {
		must(t, d.b.endpoint.Receive(d.now, &Receive{Pieces: [][]byte{make([]byte, 100)}}))
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(n, 100)}}))
		d.settle()
		r := d.b.endpoint.NextReceived()
		if r == nil || !bytes.Equal(r.Pieces[0], pattern(n, 100)) {
			t.Fatalf("message %d is not here", n)
		}
	}
	say(0)
	for _, slots := range []int{8, 16} {
		must(t, d.cb.Renew(slots))
		d.settle()
	}
	if ring := d.ca.lanes[small].ring; ring.slots != 8 || len(d.ca.lanes[small].old) != 1 {
		t.Errorf("%d slots are used, %d rings are old", ring.slots, len(d.ca.lanes[small].old))
	}
	if err := d.cb.Renew(32); !errors.Is(err, ErrState) {
		t.Errorf("a third time: %v", err)
	}
	say(1)
	d.unacked = false
	d.settle()
	if ring := d.ca.lanes[small].ring; ring.slots != 16 || len(d.ca.lanes[small].old) != 0 {
		t.Errorf("%d slots are used, %d rings are old", ring.slots, len(d.ca.lanes[small].old))
	}
	d.ca.Close(d.now)
	d.cb.Close(d.now)
	d.settle()
	d.nothingLeft()
}

// TestAdvertThatWaitedIsBeyondTheBudget: more slots than were wanted are within the budget when
// they are announced, and not any more when the acknowledgement has come that they waited for.
func TestAdvertThatWaitedIsBeyondTheBudget(t *testing.T) {
	l := newLiar(t, Config{Registered: 200_000})
	l.unacked = true
	must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{{1}}}))
	l.settle()
	l.control(Control{Type: TypeAdvert, ID: 1, Number: 32, Len: SlotLen(1024)})
	l.settle()
	l.control(Control{Type: TypeAdvert, ID: 2, Number: 64, Len: SlotLen(1024)})
	l.settle()
	must(t, l.c.Err())
	l.c.endpoint.config.Registered = 100_000 // as if others had taken the rest
	l.unacked = false
	l.settle()
	if !errors.Is(l.c.Err(), ErrQuota) {
		t.Errorf("%v", l.c.Err())
	}
	l.nothingLeft()
}

// TestLargeSlotsWithoutAcknowledgements: a peer makes large slots for us and does not acknowledge
// what we write there, again each time when they were idle. We keep two copies of such, and then
// messages go another way.
func TestLargeSlotsWithoutAcknowledgements(t *testing.T) {
	l := newLiar(t, Config{Large: []int{8192}})
	e, ring := l.c.endpoint, int64(4*l.c.largeLen(8192))
	l.unacked = true
	before := e.Usage().Memory
	for range 20 {
		must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{make([]byte, 8000)}}))
		l.settle()
		if a := &l.c.asking; a.state == askingPeer {
			l.control(Control{
				Type: TypeProvisionAck, Class: uint8(a.class), ID: a.epoch, Number: 4,
				Len: uint64(a.size),
			})
			l.settle()
		}
		must(t, l.c.Err())
		l.now += e.config.Idle
		e.HandleDeadline(l.now)
		l.settle()
	}
	if more := e.Usage().Memory - before; more != maxOldLarge*ring {
		t.Errorf("%d bytes more, slots of %d bytes each time", more, ring)
	}
	l.unacked = false
	l.settle()
	if more := e.Usage().Memory - before; more > ring {
		t.Errorf("%d bytes more after the acknowledgements", more)
	}
	l.c.Abort(l.now, errHungUp)
	l.settle()
	l.nothingLeft()
}
