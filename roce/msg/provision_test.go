package msg

import (
	"bytes"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// TestNothingIsWrittenBeforeTheAcknowledgement: large memory of both ends is made while they are
// connected, before PROVISION_ACK leaves; it is longer than a small slot and than what it is for;
// and no packet names its key before that message has arrived.
func TestNothingIsWrittenBeforeTheAcknowledgement(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed)
		a, b := w.node(Config{}), w.node(Config{})
		ca, cb := w.join(a, b, allCapabilities)
		w.settle()
		large := func(n *node) (found *mem.Region) {
			for r := range n.regions {
				if r.Len() > 32*SlotLen(1024) {
					found = r
				}
			}
			return found
		}
		if large(a) != nil || large(b) != nil {
			t.Fatal("large memory before any message")
		}
		var key uint32
		writes := 0
		w.hold = func(c *Conn, wr *verbs.SendWR) bool {
			if m, err := ParseControl(wr.Inline); err == nil && m.Type == TypeProvisionAck {
				key = m.RKey
				ra, rb := large(a), large(b)
				if ra == nil || rb == nil || rb.RKey() != key || m.Len < SlotLen(50_000) ||
					rb.Len() != uint64(m.Number)*m.Len || ra.Len() < rb.Len() {
					t.Errorf("seed %d: %v with %v and %v", seed, &m, ra, rb)
				}
			}
			if wr.Opcode == verbs.OpWriteImm && ParseImmediate(wr.Imm).Class != 0 {
				writes++
				if wr.RKey != key || c != ca {
					t.Errorf("seed %d: large key %x before it was told", seed, wr.RKey)
				}
				for _, came := range cb.User.(*pipe).came {
					if m, err := ParseControl(came.control); err == nil &&
						m.Type == TypeProvisionAck {
						t.Errorf("seed %d: written before the acknowledgement was taken", seed)
					}
				}
			}
			return false
		}
		for n := range 3 {
			must(t, ca.Send(w.now, &Send{Pieces: [][]byte{pattern(n, 50_000)}}))
			must(t, b.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 50_000)}}))
		}
		w.settle()
		if writes == 0 {
			t.Errorf("seed %d: nothing is written", seed)
		}
	}
}

// TestPieceThatIsTooLongEnlarges: the rule for one piece fires, and is told from that for the sum,
// although the pieces would be gathered in any case.
func TestPieceThatIsTooLongEnlarges(t *testing.T) {
	for _, test := range []struct {
		pieces [][]byte
		rule   Reason
	}{
		{[][]byte{make([]byte, 1025), {1}}, ElementTooLong},
		{[][]byte{nil, make([]byte, 1000), make([]byte, 25)}, TooLong},
	} {
		d := newDuo(t, Config{})
		s := d.send(test.pieces...)
		if s.Choice.Protocol != Provisioned || s.Choice.Rule != test.rule {
			t.Errorf("%+v", s.Choice)
		}
	}
}

// TestRequestAgainMakesNothing: the same request for large slots twice, and an older one, make one
// allocation and one answer.
func TestRequestAgainMakesNothing(t *testing.T) {
	l := newLiar(t, Config{})
	req := Control{Type: TypeProvisionReq, Class: 1, ID: 5, Number: 2, Len: SlotLen(8192)}
	regions := len(l.nodes[0].regions)
	for _, id := range []uint32{5, 5, 4} {
		req.ID = id
		l.control(req)
		l.settle()
	}
	if n := len(l.nodes[0].regions); n != regions+1 {
		t.Errorf("%d regions more", n-regions)
	}
	answers := 0
	for _, m := range l.said {
		if m.Type == TypeProvisionAck || m.Type == TypeProvisionNak {
			answers++
		}
	}
	s := l.c.endpoint.Snapshot()
	if answers != 1 || s[ProvisionStale] != 2 || s[ProvisionAsked] != 1 {
		t.Errorf("%d answers, %d of %d stale", answers, s[ProvisionStale], s[ProvisionAsked])
	}
}

// TestLateAcknowledgementIsReleased: the peer took longer than anybody waits, and the message went
// without. What it made it is told to free, whatever was asked for since, and later messages of
// the size are provisioned once the refusal is forgotten.
func TestLateAcknowledgementIsReleased(t *testing.T) {
	d := newDuo(t, Config{})
	e := d.a.endpoint
	var slow *Request // the peer's memory
	d.slow = func(r *Request) bool {
		if slow == nil && r.Kind == Allocate && r.Size > 60_000 && r.Remote {
			slow = r
		}
		return r == slow
	}
	s := &Send{Pieces: [][]byte{pattern(1, 50_000)}}
	r := &Receive{Pieces: [][]byte{make([]byte, 50_000)}}
	must(t, d.b.endpoint.Receive(d.now, r))
	must(t, d.ca.Send(d.now, s))
	d.settle()
	if slow == nil || d.a.endpoint.NextSent() != nil {
		t.Fatal("the peer is not slow")
	}
	for range 3 { // refused as long as the first is being made
		d.now += e.config.Idle
		e.HandleDeadline(d.now)
		d.settle()
		for d.a.endpoint.NextSent() != nil {
		}
		for d.b.endpoint.NextReceived() != nil {
		}
		if !bytes.Equal(r.Pieces[0], pattern(1, 50_000)) || s.Err != nil ||
			s.Choice.Why != Refused {
			t.Fatalf("without it: %v by %v", s.Err, s.Choice)
		}
		must(t, d.b.endpoint.Receive(d.now, r))
		must(t, d.ca.Send(d.now, s))
		d.settle()
	}
	regions := len(d.b.regions)
	d.heard()
	d.slow = nil
	d.b.requests = append(d.b.requests, slow)
	d.settle()
	if n := d.heard(TypeProvisionAck, TypeRelease); n != 2 || d.ca.Err() != nil ||
		len(d.b.regions) != regions {
		t.Errorf("%d messages, %v, %d regions more", n, d.ca.Err(), len(d.b.regions)-regions)
	}
	if n := e.Snapshot()[ProvisionLate]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	for d.a.endpoint.NextSent() != nil {
	}
	for d.b.endpoint.NextReceived() != nil {
	}
	d.now += e.config.Idle
	if s := d.send(pattern(1, 50_000)); s.Choice.Protocol != Provisioned {
		t.Errorf("later: %v", s.Choice)
	}
}

// TestCrossedRequests: both ends ask each other for large slots at once, in every mode and at
// every interleaving; both get them and nobody waits for ever.
func TestCrossedRequests(t *testing.T) {
	for seed := range uint64(100) {
		w := newWorld(t, seed)
		mode := Mode(seed % uint64(modeCount))
		a, b := w.node(Config{Mode: mode}), w.node(Config{Mode: mode})
		ca, cb := w.join(a, b, allCapabilities)
		ends, receives, sends := []*Conn{ca, cb}, [2][4]*Receive{}, [2][4]*Send{}
		for n := range 4 {
			for i, c := range ends {
				sends[i][n] = &Send{Pieces: [][]byte{pattern(n, 7000*(n+1))}}
				must(t, c.Send(w.now, sends[i][n]))
				receives[i][n] = &Receive{Pieces: [][]byte{make([]byte, 30_000)}}
				must(t, c.endpoint.Receive(w.now, receives[i][n]))
				w.step()
			}
		}
		w.settle()
		for i, c := range ends {
			for n, r := range receives[i] {
				if c.endpoint.NextReceived() == nil ||
					!bytes.Equal(r.Pieces[0][:r.Length], pattern(n, 7000*(n+1))) {
					t.Errorf("seed %d, mode %v: message %d is another", seed, mode, n)
				}
				if s := sends[i][n]; s.Choice.Protocol != Provisioned {
					t.Errorf("seed %d, mode %v: message %d by %v", seed, mode, n, s.Choice)
				}
			}
		}
	}
}

// TestWithoutMemoryForLargeSlots: the receiver has memory for nothing but its small slots. It says
// so, the message arrives through those, and it is not asked again for a while.
func TestWithoutMemoryForLargeSlots(t *testing.T) {
	d := newDuo(t, Config{Large: []int{60_000}})
	d.stingy = 100
	for n := range 3 {
		d.send(pattern(n, 45_000))
	}
	a, b := d.a.endpoint.Snapshot(), d.b.endpoint.Snapshot()
	if a[ProvisionFailed]+a[ProvisionRefused] != 1 || b[BytesCopiedIn] != 3*45_000 {
		t.Errorf("%d and %d refusals, %d bytes copied", a[ProvisionFailed], a[ProvisionRefused],
			b[BytesCopiedIn])
	}
	// Above what there may be of all peers.
	d = newDuoOf(t, Config{LargeSlots: 2}, Config{Registered: 140_000, LargeSlots: 2})
	d.send(pattern(1, 50_000))
	if a := d.a.endpoint.Snapshot(); a[ProvisionRefused] != 1 || d.heard(TypeProvisionNak) != 1 {
		t.Errorf("%d refusals", a[ProvisionRefused])
	}
	d.now += clock.Millisecond
	if s := d.send(pattern(1, 20_000)); s.Choice.Protocol != Provisioned {
		t.Errorf("what there is memory for: %v", s.Choice)
	}
	// And above what the sender has for its own part: it does not ask.
	d = newDuoOf(t, Config{Registered: 140_000}, Config{})
	if s := d.send(pattern(1, 50_000)); s.Choice.Protocol == Provisioned ||
		d.heard(TypeProvisionReq) != 0 || d.a.endpoint.Snapshot()[ProvisionFailed] != 1 {
		t.Errorf("beyond the sender's own: %v", s.Choice)
	}
	for _, n := range []*node{d.a, d.b} {
		if u := n.endpoint.Usage(); u.Memory != 2*u.Slots || u.Slots != 32*int64(SlotLen(1024)) {
			t.Errorf("%+v", u)
		}
	}
}

// TestReceiverWithoutMemory: the receiver alone has no memory for large slots, when it asks for it.
// It says why, the message arrives another way, and it is not asked again for a while.
func TestReceiverWithoutMemory(t *testing.T) {
	d := newDuo(t, Config{})
	var refused []*Request
	d.slow = func(r *Request) bool {
		if r.Kind != Allocate || !r.Remote {
			return false
		}
		refused = append(refused, r)
		return true
	}
	s := &Send{Pieces: [][]byte{pattern(1, 50_000)}}
	r := &Receive{Pieces: [][]byte{make([]byte, 50_000)}}
	must(t, d.b.endpoint.Receive(d.now, r))
	must(t, d.ca.Send(d.now, s))
	d.settle()
	if len(refused) != 1 || refused[0].Conn != d.cb || d.a.endpoint.NextSent() != nil {
		t.Fatalf("%d requests for memory of large slots", len(refused))
	}
	d.b.endpoint.Answer(d.now, refused[0], Memory{}, errNoMemory)
	d.settle()
	if d.b.endpoint.NextReceived() != r || d.a.endpoint.NextSent() != s ||
		!bytes.Equal(r.Pieces[0], pattern(1, 50_000)) || s.Choice.Why != Refused {
		t.Errorf("by %v: %v, %v, %v", s.Choice, s.Err, r.Err, d.cb.Err())
	}
	d.send(pattern(2, 50_000))
	naks := 0
	for _, m := range d.said {
		if m.Type == TypeProvisionNak && m.Status == StatusNoMemory {
			naks++
		}
	}
	if a, b := d.a.endpoint.Snapshot(), d.b.endpoint.Snapshot(); naks != 1 ||
		len(refused) != 1 || a[ProvisionRefused] != 1 || b[ProvisionDenied] != 1 {
		t.Errorf("%d refusals are said for %d requests, %d and %d counted", naks, len(refused),
			a[ProvisionRefused], b[ProvisionDenied])
	}
}

// TestProvisioningStallsNobody: the memory of large slots is long in coming, at both ends of a
// connection. Meanwhile messages of others flow, also those that need memory, and on the
// connection itself what goes the other way.
func TestProvisioningStallsNobody(t *testing.T) {
	w := newWorld(t, 1)
	hub := w.node(Config{})
	slow, there := w.join(hub, w.node(Config{}), allCapabilities)
	other, _ := w.join(hub, w.node(Config{}), allCapabilities)
	w.settle()
	var late []*Request
	w.slow = func(r *Request) bool {
		if r.Kind != Allocate || r.Conn != slow && r.Conn != there {
			return false
		}
		late = append(late, r)
		return true
	}
	s := &Send{Pieces: [][]byte{pattern(1, 50_000)}}
	must(t, slow.Send(w.now, s))
	must(t, there.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 50_000)}}))
	flows := func() {
		t.Helper()
		for n, c := range []*Conn{other, other.User.(*pipe).peer.conn, there} {
			size := 60_000
			if c == there {
				size = 100
			}
			to := c.User.(*pipe).peer.conn
			r := &Receive{Pieces: [][]byte{make([]byte, size)}, From: to}
			must(t, to.endpoint.Receive(w.now, r))
			must(t, c.Send(w.now, &Send{Pieces: [][]byte{pattern(n, size)}}))
			w.settle()
			if to.endpoint.NextReceived() != r || !bytes.Equal(r.Pieces[0], pattern(n, size)) {
				t.Errorf("message %d waits: %v", n, r.Err)
			}
		}
	}
	w.settle()
	for end := range 2 { // the sender's memory, then the receiver's
		if len(late) != 1 || (late[0].Conn == slow) != (end == 0) {
			t.Fatalf("%d requests", len(late))
		}
		flows()
		n := late[0].Conn.User.(*pipe).from
		n.requests = append(n.requests, late[0])
		late = nil
		w.settle()
	}
	got := there.endpoint.NextReceived()
	if got == nil || got.Length != 50_000 || s.Choice.Protocol != Provisioned {
		t.Errorf("it does not arrive: %v", s.Choice)
	}
}
