package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// TestReplaceRevokesBeforeTheAcknowledgement: in mode Replace the small slots of the receiver are
// gone, key and memory, when PROVISION_ACK leaves, and those of the sender behind it; not before
// the last message in them was taken out. A write with the old key changes nothing.
func TestReplaceRevokesBeforeTheAcknowledgement(t *testing.T) {
	d := newDuo(t, Config{Mode: Replace, Unexpected: 1})
	ring := d.cb.in[0]
	for n := range 5 { // all but one wait in their slots
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(n, 100)}, Level: Transmitted}))
	}
	must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(5, 5000)}}))
	d.settle()
	if n := d.heard(TypeProvisionAck); n != 0 || ring.state == ringFreeing {
		t.Fatal("acknowledged while messages are in the slots that go")
	}
	for n := range 5 {
		r := &Receive{Pieces: [][]byte{make([]byte, 5000)}}
		must(t, d.b.endpoint.Receive(d.now, r))
		if d.b.endpoint.NextReceived() != r || !bytes.Equal(r.Pieces[0][:100], pattern(n, 100)) {
			t.Fatalf("message %d is another", n)
		}
	}
	d.hold = func(_ *Conn, wr *verbs.SendWR) bool {
		if m, err := ParseControl(wr.Inline); err == nil && m.Type == TypeProvisionAck &&
			d.b.regions[ring.memory.Owner.(*mem.Region)] {
			t.Error("acknowledged before the key is out of use")
		}
		return false
	}
	d.settle()
	if n := d.heard(TypeProvisionAck); n != 1 {
		t.Errorf("%d acknowledgements", n)
	}
	peer := mem.Accessor{Domain: &d.pipes[1].domain}
	f := d.b.keys.Store(peer, ring.memory.RKey, ring.memory.Addr, []byte{1}, mem.RemoteWrite)
	if f == mem.OK {
		t.Error("the old key still works")
	}
	if len(d.a.regions) != 2 || len(d.b.regions) != 2 {
		t.Errorf("%d and %d regions", len(d.a.regions), len(d.b.regions))
	}
	// Short messages go through the large slots, and none asks for anything.
	d.heard()
	r := &Receive{Pieces: [][]byte{make([]byte, 5000)}}
	must(t, d.b.endpoint.Receive(d.now, r))
	for d.a.endpoint.NextSent() != nil {
	}
	for d.b.endpoint.NextReceived() != nil {
	}
	for _, length := range []int{0, 1, 1024, 1025, 8192} {
		d.send(pattern(length, length))
	}
	if n := d.heard(provisioning...); n != 0 {
		t.Errorf("%d messages of provisioning", n)
	}
	// A larger class, and then none: small slots are announced again.
	d.send(pattern(1, 60_000))
	d.now += d.a.endpoint.config.Idle
	d.a.endpoint.HandleDeadline(d.now)
	d.settle()
	if d.heard(TypeAdvert) != 1 || d.ca.lanes[small].ring == nil || d.ca.lanes[large].ring != nil {
		t.Error("no small slots again")
	}
	d.send(pattern(1, 1000))
	d.ca.Close(d.now)
	d.cb.Close(d.now)
	d.settle()
	d.nothingLeft()
}

// TestReplaceUnderTraffic: messages of all lengths and protocols both ways, while small slots go
// and come, also without memory.
func TestReplaceUnderTraffic(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		w.stingy = int(seed%3) * 15
		w.idle = true
		c := Config{Mode: Replace, Protocol: Protocol(seed % uint64(protocolCount)), Slots: 4}
		a, b := w.node(c), w.node(Config{Slots: 4, Mode: Mode(seed % uint64(modeCount))})
		ca, cb := w.join(a, b, allCapabilities)
		exchange(t, w, ca, cb)
	}
}

// TestRenewWaitsForReplacement: small slots that are on their way out are not renewed: the ADVERT
// would reach the sender before the acknowledgement that takes the old ones from it.
func TestRenewWaitsForReplacement(t *testing.T) {
	d := newDuo(t, Config{Mode: Replace})
	var freeing *Request
	d.slow = func(r *Request) bool {
		if r.Kind == Release && freeing == nil {
			freeing = r
		}
		return r == freeing
	}
	must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{make([]byte, 5000)}}))
	d.settle()
	if freeing == nil || d.heard(TypeProvisionAck) != 0 {
		t.Fatal("the old slots are not on their way out")
	}
	if err := d.cb.Renew(4); !errors.Is(err, ErrState) {
		t.Errorf("renewed: %v", err)
	}
}

// TestLargeSlotsAreGivenUpWhileLargerOnesAreMade: with the old ones gone and no small ones there,
// messages go through the larger ones as soon as those are there.
func TestLargeSlotsAreGivenUpWhileLargerOnesAreMade(t *testing.T) {
	d := newDuo(t, Config{Mode: Replace, Patience: 100 * clock.Second})
	d.send(pattern(1, 5000))
	var making *Request
	d.slow = func(r *Request) bool {
		if r.Kind == Allocate && r.Remote && making == nil {
			making = r
		}
		return r == making
	}
	s := &Send{Pieces: [][]byte{make([]byte, 60_000)}}
	must(t, d.ca.Send(d.now, s))
	d.settle()
	d.now += d.a.endpoint.config.Idle
	d.a.endpoint.HandleDeadline(d.now)
	d.settle()
	if making == nil || d.heard(TypeRelease) != 1 || d.ca.lanes[large].ring != nil {
		t.Fatal("the old slots are not given up")
	}
	d.slow = nil
	d.b.requests = append(d.b.requests, making)
	d.settle()
	if d.a.endpoint.NextSent() != s || s.Err != nil || s.Choice.Protocol != Provisioned {
		t.Errorf("%v by %v", s.Err, s.Choice)
	}
}
