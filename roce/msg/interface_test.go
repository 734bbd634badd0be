package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// TestAnnouncedWithoutTheApplication: between Send and RTS on the wire the application does
// nothing; only its memory is given a key.
func TestAnnouncedWithoutTheApplication(t *testing.T) {
	for _, p := range []Protocol{Get, Put, Fragments} {
		d := newDuo(t, Config{Protocol: p})
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{make([]byte, 300_000)}}))
		for n := 0; d.heard(TypeRTS) == 0; n++ {
			if !d.step() {
				t.Fatalf("%v: nothing leaves", p)
			}
		}
	}
}

// TestThresholdOfRendezvous: as long as the limit is eager, a byte more is announced, and in a
// stream of both the order is that of the calls.
func TestThresholdOfRendezvous(t *testing.T) {
	d := newDuo(t, Config{Policy: EnlargeNever, EagerLimit: 1000})
	var receives []*Receive
	for n := range 40 {
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{pattern(n, 1000+n%2)}}))
		receives = append(receives, &Receive{Pieces: [][]byte{make([]byte, 1001)}})
	}
	for _, r := range receives {
		must(t, d.b.endpoint.Receive(d.now, r))
		for range d.rand.IntN(10) {
			d.step()
		}
	}
	d.settle()
	if n := d.heard(TypeRTS); n != 20 {
		t.Errorf("%d of 20 are announced", n)
	}
	for n, r := range receives {
		want := Eager
		if n%2 == 1 {
			want = Get
		}
		if r.Err != nil || r.Protocol != want || !bytes.Equal(r.Pieces[0][:r.Length],
			pattern(n, 1000+n%2)) {
			t.Errorf("message %d by %v: %v", n, r.Protocol, r.Err)
		}
	}
}

// TestSlotsAreAnnouncedToEachPeer: four nodes are connected all to all. Before any call each has
// announced slots to each other one once, every ring in memory and under a key of its own.
func TestSlotsAreAnnouncedToEachPeer(t *testing.T) {
	w := newWorld(t, 1)
	for range 4 {
		w.node(Config{})
	}
	for i, a := range w.nodes {
		for _, b := range w.nodes[:i] {
			w.join(a, b, allCapabilities)
		}
	}
	w.settle()
	keys, adverts := map[uint64]bool{}, 0
	for _, m := range w.said {
		if m.Type == TypeAdvert {
			adverts++
		}
	}
	for _, p := range w.pipes {
		if len(p.conn.in) != 1 || !p.conn.announced || p.conn.in[0].state != ringInUse {
			t.Fatalf("%d rings", len(p.conn.in))
		}
		keys[p.conn.in[0].memory.Addr] = true
	}
	if adverts != 12 || len(keys) != 12 {
		t.Errorf("%d adverts of %d rings", adverts, len(keys))
	}
}

// TestForgedFrames: every bit of the key of a frame, and each field of it that says where it is
// and how long. No receive is touched; what the device does not refuse is counted once.
func TestForgedFrames(t *testing.T) {
	l := newLiar(t, Config{})
	ring := l.c.in[0]
	peer := mem.Accessor{Domain: &l.pipes[0].domain}
	before := bytes.Clone(ring.memory.Bytes)
	for bit := range 32 {
		key := ring.memory.RKey ^ 1<<bit
		f := l.nodes[0].keys.Store(peer, key, ring.memory.Addr, []byte{0xff}, mem.RemoteWrite)
		if f == mem.OK {
			t.Errorf("bit %d of the key is not looked at", bit)
		}
	}
	end := ring.memory.Addr + uint64(len(ring.memory.Bytes))
	f := l.nodes[0].keys.Store(peer, ring.memory.RKey, end-1, []byte{1, 2}, mem.RemoteWrite)
	if f == mem.OK || !bytes.Equal(before, ring.memory.Bytes) {
		t.Errorf("memory changes: %v", f)
	}
	for _, test := range []struct {
		name string
		want error
		do   func(h *FrameHeader, imm *Immediate, n *uint32)
	}{
		{"epoch", ErrEpoch, func(h *FrameHeader, _ *Immediate, _ *uint32) { h.Epoch ^= 1 << 20 }},
		{"epoch of the immediate", ErrNoRing, func(_ *FrameHeader, i *Immediate, _ *uint32) {
			i.Epoch ^= 1
		}},
		{"class", ErrNoRing, func(_ *FrameHeader, i *Immediate, _ *uint32) { i.Class = 1 }},
		{"slot", ErrSlot, func(_ *FrameHeader, i *Immediate, _ *uint32) { i.Slot ^= 1 }},
		{"slot beyond", ErrSlot, func(_ *FrameHeader, i *Immediate, _ *uint32) { i.Slot = 32 }},
		{"sequence", ErrSequence, func(h *FrameHeader, _ *Immediate, _ *uint32) { h.Sequence++ }},
		{"length", ErrLength, func(_ *FrameHeader, _ *Immediate, n *uint32) { *n -= 8 }},
		{"length beyond", ErrSlot, func(_ *FrameHeader, _ *Immediate, n *uint32) { *n = 1 << 20 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLiar(t, Config{})
			ring := l.c.in[0]
			r := &Receive{Pieces: [][]byte{make([]byte, 100)}}
			must(t, l.c.endpoint.Receive(l.now, r))
			var w FrameWriter
			w.Reset(ring.slot(0, uint32(ring.size)))
			payload, _ := w.Append(&RecordHeader{Type: RecordEager, Len: 100})
			copy(payload, pattern(1, 100))
			h, imm := FrameHeader{}, Immediate{}
			n := uint32(len(w.Finish(&h)))
			test.do(&h, &imm, &n)
			h.Put(ring.slot(0, uint32(ring.size)))
			l.c.endpoint.HandleArrival(l.now, l.c.First(), &verbs.Completion{
				Opcode: verbs.WCRecvRDMAWithImm, ByteLen: n,
				Imm: ImmediateOf(imm.Class, uint32(imm.Epoch), imm.Slot).Uint32(),
			}, nil)
			if !bytes.Equal(r.Pieces[0], make([]byte, 100)) || !r.node.Queued() {
				t.Error("the receive is touched")
			}
			l.wantBroken(test.want)
		})
	}
}

// TestStalledPeerStallsNobody: one peer's messages are not received and fill its slots, another's
// READs are never answered. Messages of a third flow on, both ways.
func TestStalledPeerStallsNobody(t *testing.T) {
	w := newWorld(t, 1)
	hub := w.node(Config{Slots: 4, Unexpected: 1})
	var peers, ends []*Conn
	for range 3 {
		p, e := w.join(w.node(Config{}), hub, allCapabilities)
		peers, ends = append(peers, p), append(ends, e)
	}
	w.hold = func(c *Conn, wr *verbs.SendWR) bool {
		return c == ends[1] && wr.Opcode == verbs.OpRead
	}
	for range 20 {
		must(t, peers[0].Send(w.now, &Send{Pieces: [][]byte{{1}}, Tag: 1}))
	}
	must(t, peers[1].Send(w.now, &Send{Pieces: [][]byte{make([]byte, 300_000)}}))
	big := &Receive{Pieces: [][]byte{make([]byte, 300_000)}, From: ends[1]}
	must(t, hub.endpoint.Receive(w.now, big))
	w.settle()
	for n := range 50 {
		for _, c := range []*Conn{peers[2], ends[2]} {
			s := &Send{Pieces: [][]byte{pattern(n, 900)}, Tag: 2, Level: Matched}
			must(t, c.Send(w.now, s))
			to := c.User.(*pipe).peer.conn
			r := &Receive{Pieces: [][]byte{make([]byte, 900)}, From: to}
			must(t, to.endpoint.Receive(w.now, r))
			w.settle()
			if to.endpoint.NextReceived() != r || c.endpoint.NextSent() != s || s.Err != nil {
				t.Fatalf("message %d waits", n)
			}
		}
	}
	if n := ends[0].arrivals.n; n == 0 {
		t.Error("the one that nobody receives is not held back")
	}
	for _, c := range ends {
		if errors.Is(c.Err(), errHungUp) {
			t.Error(c.Err())
		}
	}
}
