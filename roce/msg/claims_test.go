package msg

import (
	"bytes"
	"testing"

	"xroce/roce/clock"
)

// A duo is two nodes that are joined and at rest, with what each control message of a is.
type duo struct {
	*world
	a, b   *node
	ca, cb *Conn
}

func newDuo(t *testing.T, config Config) *duo {
	t.Helper()
	return newDuoOf(t, config, config)
}

// newDuoOf is newDuo with two that differ.
func newDuoOf(t *testing.T, a, b Config) *duo {
	t.Helper()
	d := &duo{world: newWorld(t, 1)}
	d.a, d.b = d.node(a), d.node(b)
	d.ca, d.cb = d.join(d.a, d.b, allCapabilities)
	d.settle()
	d.said = nil
	return d
}

// send sends a message from a to b and waits until it is received and nothing more happens.
func (d *duo) send(pieces ...[]byte) *Send {
	d.t.Helper()
	s := &Send{Pieces: pieces}
	var want []byte
	for _, p := range pieces {
		want = append(want, p...)
	}
	r := &Receive{Pieces: [][]byte{make([]byte, len(want))}}
	must(d.t, d.b.endpoint.Receive(d.now, r))
	must(d.t, d.ca.Send(d.now, s))
	d.settle()
	if got := d.a.endpoint.NextSent(); got != s || s.Err != nil {
		d.t.Fatalf("sent %v: %v, %v", got, s.Err, d.ca.err)
	}
	if got := d.b.endpoint.NextReceived(); got != r || r.Err != nil {
		d.t.Fatalf("received %v: %v", got, r.Err)
	}
	if !bytes.Equal(r.Pieces[0], want) {
		d.t.Fatalf("%d bytes by %v are not those that were sent", len(want), s.Choice)
	}
	return s
}

// heard counts the control messages of a type that were sent since they were counted last.
func (d *duo) heard(types ...Type) (n int) {
	for _, m := range d.said {
		for _, want := range types {
			if m.Type == want {
				n++
			}
		}
	}
	d.said = nil
	return n
}

var provisioning = []Type{
	TypeProvisionReq, TypeProvisionAck, TypeProvisionNak, TypeRelease, TypeReleaseAck,
}

// TestThresholdIsTheSlot: a message of T bytes never has a large slot made, one more byte does,
// with one request and one acknowledgement, and the next of its size costs nothing.
func TestThresholdIsTheSlot(t *testing.T) {
	d := newDuo(t, Config{EagerLimit: 1000})
	for _, n := range []int{0, 1, 999, 1000} {
		if s := d.send(pattern(n, n)); s.Choice.Protocol != Eager {
			t.Errorf("%d bytes go by %v", n, s.Choice)
		}
	}
	if n := d.heard(provisioning...); n != 0 {
		t.Errorf("%d messages of provisioning", n)
	}
	for i, want := range []int{2, 0} {
		if s := d.send(pattern(i, 1001)); s.Choice.Protocol != Provisioned {
			t.Errorf("1001 bytes go by %v", s.Choice)
		}
		if n := d.heard(provisioning...); n != want {
			t.Errorf("%d messages of provisioning, not %d", n, want)
		}
	}
}

// TestNothingLargeBeforeItIsNeeded: there is no large region before the first message that needs
// one, there is one behind it, and it goes when it was not used for long; nothing is left.
func TestNothingLargeBeforeItIsNeeded(t *testing.T) {
	d := newDuo(t, Config{LargeSlots: 2})
	check := func(what string, least, most int) {
		t.Helper()
		for _, n := range []*node{d.a, d.b} {
			largest := 0
			for r := range n.regions {
				largest = max(largest, int(r.Len()))
			}
			if largest < least || largest > most {
				t.Errorf("%s: the largest region has %d bytes, not %d to %d", what, largest, least,
					most)
			}
		}
	}
	slots := 32 * int(SlotLen(1024))
	check("connected", slots, slots)
	before := len(d.a.regions) + len(d.b.regions)
	d.send(pattern(1, 1024))
	check("after a small message", slots, slots)
	d.send(pattern(1, 60_000))
	check("after a large message", 2*60_000, 2*int(d.ca.largeLen(65536)))
	d.now += 11 * clock.Second
	d.a.endpoint.HandleDeadline(d.now)
	d.settle()
	check("after a while", slots, slots)
	if after := len(d.a.regions) + len(d.b.regions); after != before {
		t.Errorf("%d regions, %d before", after, before)
	}
	if n := d.heard(TypeRelease, TypeReleaseAck); n != 2 {
		t.Errorf("%d messages of release", n)
	}
}

// TestLadder: a message that is too long for the large slots that there are has larger ones
// made, in place of those.
func TestLadder(t *testing.T) {
	d := newDuo(t, Config{})
	for i, n := range []int{5000, 20_000, 50_000, 150_000} {
		d.send(pattern(i, n))
		if got := d.heard(TypeProvisionAck); got != 1 {
			t.Errorf("%d bytes: %d acknowledgements", n, got)
		}
		// Small and large slots, and a copy of the small ones of a.
		if n := len(d.b.regions); n != 3 {
			t.Errorf("%d regions", n)
		}
	}
	d.send(pattern(9, 5000))
	if got := d.heard(provisioning...); got != 0 {
		t.Errorf("%d messages for one that fits", got)
	}
	want := Choice{Protocol: Get, Why: BeyondLarge, Rule: ElementTooLong}
	if s := d.send(pattern(9, 200_000)); s.Choice != want {
		t.Errorf("200000 bytes go by %v", s.Choice)
	}
}
