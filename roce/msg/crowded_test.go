package msg

import (
	"bytes"
	"testing"
)

// TestCrowdedMessageAnnouncesItself: nobody receives what fills the slots of the peer. The short
// message that waited too long for one is announced, whole and in order; not before its time, and
// not when the protocol is forced.
func TestCrowdedMessageAnnouncesItself(t *testing.T) {
	for _, forced := range []Protocol{Auto, Eager} {
		d := newDuo(t, Config{
			Slots: 4, Unexpected: 1, Protocol: forced, Policy: EnlargeNever,
		})
		const messages = 20
		for n := range messages {
			must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(n, 1000)}}))
		}
		d.settle()
		at, ok := d.a.endpoint.NextDeadline()
		if !ok {
			t.Fatal("nobody looks after messages that wait")
		}
		d.a.endpoint.HandleDeadline(at - 1)
		d.settle()
		if n := d.heard(TypeRTS); n != 0 {
			t.Errorf("%d messages are announced before their time", n)
		}
		for d.now = at; d.ca.pending.Len() > 0; d.now = at {
			d.a.endpoint.HandleDeadline(d.now)
			d.settle()
			if at, ok = d.a.endpoint.NextDeadline(); !ok || forced != Auto {
				break
			}
		}
		if n := d.heard(TypeRTS); (n > 10) != (forced == Auto) {
			t.Errorf("%v: %d messages are announced", forced, n)
		}
		for n := range messages {
			r := &Receive{Pieces: [][]byte{make([]byte, 1000)}}
			must(t, d.b.endpoint.Receive(d.now, r))
			d.settle()
			if d.b.endpoint.NextReceived() != r || !bytes.Equal(r.Pieces[0], pattern(n, 1000)) {
				t.Fatalf("message %d is another: %v", n, r.Err)
			}
		}
		crowded := 0
		for s := d.a.endpoint.NextSent(); s != nil; s = d.a.endpoint.NextSent() {
			if s.Choice.Why == Crowded {
				crowded++
			}
		}
		if (crowded > 10) != (forced == Auto) {
			t.Errorf("%v: %d were crowded", forced, crowded)
		}
	}
}
