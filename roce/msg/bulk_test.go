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
			if many := c.messages/frames > 30; many != (c.want == 1 && c.messages > 1000) {
				t.Errorf("%v: %d messages in %d frames", c.policy, c.messages, frames)
			}
		}
		if got := d.heard(TypeProvisionReq); got != c.want {
			t.Errorf("%v, %d messages: large slots are made %d times, not %d", c.policy, c.messages,
				got, c.want)
		}
	}
}
