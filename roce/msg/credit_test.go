package msg

import "testing"

// TestCreditsOfLargeSlots: one message there and one back has no message about credits, because
// they ride on the answer; messages one way have one for each half of the slots, however many the
// receiver would have given.
func TestCreditsOfLargeSlots(t *testing.T) {
	for _, c := range []struct{ slots, theirs, messages, want int }{
		{4, 4, 12, 6}, {2, 2, 12, 12}, {1, 8, 12, 12}, {8, 1, 12, 12}, {8, 8, 12, 3},
	} {
		d := &duo{world: newWorld(t, 1)}
		d.a, d.b = d.node(Config{LargeSlots: c.slots}), d.node(Config{LargeSlots: c.theirs})
		d.ca, d.cb = d.join(d.a, d.b, allCapabilities)
		d.settle()
		d.heard()
		for i := range c.messages {
			if s := d.send(pattern(i, 5000)); s.Choice.Protocol != Provisioned {
				t.Fatal(s.Choice)
			}
		}
		if n := d.heard(TypeCredit); n != c.want {
			t.Errorf("%d slots, the receiver has %d: %d credits, not %d", c.slots, c.theirs, n,
				c.want)
		}
	}
	d := newDuo(t, Config{LargeSlots: 4})
	back := &duo{world: d.world, a: d.b, b: d.a, ca: d.cb, cb: d.ca}
	for i := range 20 {
		d.send(pattern(i, 5000))
		back.send(pattern(i, 5000))
	}
	if n := d.heard(TypeCredit); n != 0 {
		t.Errorf("%d credits of messages there and back", n)
	}
}

// TestDeliveredIsToldThoughItsFrameWaits: a message whose sender waits for it to be delivered
// shares a frame with one that nobody has asked for yet and that cannot be kept. Once that one is
// taken, too, the sender is told.
func TestDeliveredIsToldThoughItsFrameWaits(t *testing.T) {
	d := newDuo(t, Config{Unexpected: 1})
	must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{{1}}, Tag: 1})) // all that is kept
	d.settle()
	r := &Receive{Pieces: [][]byte{make([]byte, 1)}, Tag: 2, Mask: ^uint64(0)}
	must(t, d.b.endpoint.Receive(d.now, r))
	told := &Send{Pieces: [][]byte{{2}}, Tag: 2, Level: Delivered}
	must(t, d.ca.Send(d.now, told))
	must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{{3}}, Tag: 3}))
	d.settle()
	if d.b.endpoint.NextReceived() != r || d.cb.arrivals.n != 1 {
		t.Fatalf("%d frames wait", d.cb.arrivals.n)
	}
	last := &Receive{Pieces: [][]byte{make([]byte, 1)}, Tag: 3, Mask: ^uint64(0)}
	must(t, d.b.endpoint.Receive(d.now, last))
	must(t, d.b.endpoint.Receive(d.now, &Receive{Pieces: [][]byte{make([]byte, 1)}}))
	d.settle()
	if told.state != sendIdle || told.Err != nil {
		t.Errorf("the sender was not told: %v", told.Err)
	}
}
