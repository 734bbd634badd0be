package msg

import (
	"bytes"
	"testing"
)

// burst posts so many short messages and a receive for each, and returns the receives.
func (d *duo) burst(t *testing.T, messages, n int) []*Receive {
	t.Helper()
	receives := make([]*Receive, messages)
	for i := range receives {
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(i, n)}}))
		receives[i] = &Receive{Pieces: [][]byte{make([]byte, n)}}
		must(t, d.b.endpoint.Receive(d.now, receives[i]))
	}
	return receives
}

// TestManyShortMessagesHaveLargeSlotsMade: when all small slots are in use and messages wait,
// larger ones are made, once, and more messages share a frame; not for as many as the small slots
// hold, and not when the policy is to make none. All arrive in their order.
func TestManyShortMessagesHaveLargeSlotsMade(t *testing.T) {
	const n, record = 64, RecordHeaderLen + 64
	fit := 4 * ((int(SlotLen(1024)) - FrameHeaderLen) / record)
	for _, c := range []struct {
		policy         Policy
		messages, want int
	}{
		{EnlargeFirst, fit, 0},
		{EnlargeFirst, fit + 1, 1},
		{EnlargeFirst, 3000, 1},
		{EnlargeAuto, 3000, 1},
		{EnlargeNever, 3000, 0},
		{EnlargeAfter, 3000, 0},
	} {
		d := newDuo(t, Config{Slots: 4, Policy: c.policy, After: 1})
		d.heard()
		for range 3 {
			before := d.b.endpoint.Snapshot()[RecvFrames]
			for i, r := range d.burst(t, c.messages, n) {
				for d.b.endpoint.NextReceived() != r {
					if !d.step() {
						t.Fatalf("%v: message %d of %d does not come", c.policy, i, c.messages)
					}
				}
				if !bytes.Equal(r.Pieces[0], pattern(i, n)) {
					t.Fatalf("%v: message %d is another", c.policy, i)
				}
			}
			d.settle()
			frames := int(d.b.endpoint.Snapshot()[RecvFrames] - before)
			if many := c.messages/frames > 60; many != (c.want == 1 && c.messages > 1000) {
				t.Errorf("%v: %d messages in %d frames", c.policy, c.messages, frames)
			}
		}
		if got := d.heard(TypeProvisionReq); got != c.want {
			t.Errorf("%v, %d messages: large slots are made %d times, not %d", c.policy, c.messages,
				got, c.want)
		}
	}
}

// TestManyMessagesHaveLargerSlotsMade: messages that wait because all large slots are in use have
// such made, once, that several of them share, of the sizes that there may be; nobody waits for
// them, and those before are left. Not for as many as there are slots, and not when the policy is
// to make none.
func TestManyMessagesHaveLargerSlotsMade(t *testing.T) {
	for _, c := range []struct {
		config           Config
		length, messages int
		requests, slot   int
		gets             int
	}{
		{length: 4096, messages: 4, requests: 1, slot: 8192},
		{length: 4096, messages: 30, requests: 2, slot: 65_536},
		{length: 20_000, messages: 30, requests: 2, slot: 65_536},
		{length: 32_768, messages: 30, requests: 2, slot: 65_536},
		{length: 33_000, messages: 30, requests: 1, slot: 65_536, gets: 20},
		{length: 196_608, messages: 30, requests: 1, slot: 196_608, gets: 20},
		{config: Config{Large: []int{8192}}, length: 4096, messages: 30, requests: 1, slot: 8192},
		{config: Config{Mode: Replace}, length: 4096, messages: 30, requests: 1, slot: 8192},
		{
			config: Config{Policy: EnlargeAfter, After: 1},
			length: 4096, messages: 30, requests: 1, slot: 8192,
		},
	} {
		d := newDuoOf(t, c.config, Config{})
		d.heard()
		receives := d.burst(t, c.messages, c.length)
		d.settle()
		for i, r := range receives {
			if r.Length != c.length || !bytes.Equal(r.Pieces[0], pattern(i, c.length)) {
				t.Fatalf("%+v: message %d is another, or did not come", c, i)
			}
		}
		if got := d.heard(TypeProvisionReq); got != c.requests {
			t.Errorf("%+v: asked for slots %d times", c, got)
		}
		if got := d.ca.lanes[large].ring.payload(); got != c.slot {
			t.Errorf("%+v: slots of %d bytes", c, got)
		}
		if n := d.a.endpoint.Snapshot()[SentGet]; n < uint64(c.gets) || n > 0 && c.gets == 0 {
			t.Errorf("%+v: %d messages by get", c, n)
		}
		if n := len(d.cb.in); c.config.Mode == Keep && n != 2 {
			t.Errorf("%+v: the peer keeps %d kinds of slots", c, n)
		}
	}
}

// TestManyWaitForLargeSlots: short messages that share long slots wait for one of these while all
// are in use, with small ones free, because few of them fit such a frame; not for long, then they
// take small slots.
func TestManyWaitForLargeSlots(t *testing.T) {
	const n = 1024
	d := newDuoOf(t, Config{}, Config{Unexpected: 1})
	d.burst(t, 500, n)
	d.settle() // there are large slots now
	for d.b.endpoint.NextReceived() != nil {
	}
	smallBefore := d.ca.lanes[small].written
	for i := range 2000 {
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(i, n)}}))
	}
	d.settle()
	l := &d.ca.lanes[large]
	if l.free() != 0 || d.ca.lanes[small].free() == 0 || d.ca.pending.Len() == 0 {
		t.Fatalf("%d large slots are free and %d small ones, %d messages wait", l.free(),
			d.ca.lanes[small].free(), d.ca.pending.Len())
	}
	if n := d.ca.lanes[small].written - smallBefore; n > idleFrames {
		t.Errorf("%d frames in small slots", n)
	}
	d.now += 2 * d.a.endpoint.config.Crowded
	for range 3 { // the first may be set for a message that has left
		d.a.endpoint.HandleDeadline(d.now)
		d.settle()
		if at, ok := d.a.endpoint.NextDeadline(); ok && d.ca.lanes[small].free() > 0 {
			d.now = max(d.now, at)
		}
	}
	if d.ca.lanes[small].free() != 0 || d.a.endpoint.Snapshot()[CrowdedSends] != 0 {
		t.Errorf("later %d small slots are free, and %d messages are crowded",
			d.ca.lanes[small].free(), d.a.endpoint.Snapshot()[CrowdedSends])
	}
}

// TestPowersOfTwoFillLargeSlots: as many messages of a length that is a power of two share a large
// slot as fit it without their headers. The longest message that goes there is no longer for it,
// and a stream has no room for headers.
func TestPowersOfTwoFillLargeSlots(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8, 16} {
		d := newDuo(t, Config{})
		d.send(make([]byte, 60_000))
		l := &d.ca.lanes[large]
		before := l.written
		for i := range n {
			must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(i, bulkSlot/n)}}))
		}
		if got := l.written - before; got != 1 || d.ca.pending.Len() > 0 {
			t.Errorf("%d messages are %d frames, %d wait", n, got, d.ca.pending.Len())
		}
		for i := range n {
			r := &Receive{Pieces: [][]byte{make([]byte, bulkSlot)}}
			must(t, d.b.endpoint.Receive(d.now, r))
			d.settle()
			if d.b.endpoint.NextReceived() != r ||
				!bytes.Equal(r.Pieces[0][:r.Length], pattern(i, bulkSlot/n)) {
				t.Errorf("message %d of %d is another", i, n)
			}
		}
		if got := l.ring.payload(); got != bulkSlot {
			t.Errorf("messages of %d bytes go to slots for %d", got, bulkSlot)
		}
	}
	w := newWorld(t, 1)
	c, _ := w.joinStream(w.node(Config{}), w.node(Config{}))
	if got, want := c.largeLen(32<<10), SlotLen(32<<10); got != want {
		t.Errorf("a slot of a stream has %d bytes, not %d", got, want)
	}
}
