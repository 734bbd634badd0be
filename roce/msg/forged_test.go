package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// forgedMessages is how many messages a peer forges of each kind.
const forgedMessages = 500_000

// TestKeysOfOnePeerAreOfNoUseToAnother: a peer writes whole messages to the slots of another one,
// with the right key, or with one that it made up, and beyond its own slots. Each is refused, and
// nothing of the endpoint's memory changes.
func TestKeysOfOnePeerAreOfNoUseToAnother(t *testing.T) {
	w := newWorld(t, 1)
	hub := w.node(Config{})
	_, ca := w.join(w.node(Config{}), hub, allCapabilities)
	_, cb := w.join(w.node(Config{}), hub, allCapabilities)
	w.settle()
	theirs, own := ca.in[0], cb.in[0]
	before := bytes.Clone(theirs.memory.Bytes)
	liar := mem.Accessor{Domain: &cb.User.(*pipe).domain}
	frame := make([]byte, own.size)
	var fw FrameWriter
	fw.Reset(frame)
	payload, _ := fw.Append(&RecordHeader{Type: RecordEager, Len: 900})
	copy(payload, pattern(1, 900))
	frame = fw.Finish(&FrameHeader{})
	refused := map[mem.Fault]int{}
	for n := range forgedMessages {
		slot := uint64(w.rand.IntN(theirs.slots) * theirs.size)
		key, addr := theirs.memory.RKey, theirs.memory.Addr+slot
		switch n % 4 {
		case 1:
			key = own.memory.RKey // of its own, for the place of the other one
		case 2:
			key = w.rand.Uint32() | 1<<31
		case 3:
			key = own.memory.RKey
			addr = own.memory.Addr + uint64(len(own.memory.Bytes)-w.rand.IntN(len(frame)))
		}
		f := hub.keys.Store(liar, key, addr, frame, mem.RemoteWrite)
		if f == mem.OK {
			t.Fatalf("message %d: key %#x for %#x is taken", n, key, addr)
		}
		refused[f]++
	}
	if !bytes.Equal(before, theirs.memory.Bytes) || !bytes.Equal(own.memory.Bytes,
		make([]byte, len(own.memory.Bytes))) {
		t.Error("memory changes")
	}
	if refused[mem.FaultDomain] < forgedMessages/4 {
		t.Errorf("refused: %v", refused)
	}
}

// TestForgedMessagesChangeNothing: a peer writes to its own slots what is not right, in each way,
// half a million times. No receive is touched, each is named and counted.
func TestForgedMessagesChangeNothing(t *testing.T) {
	l := newLiar(t, Config{})
	c, e, ring := l.c, l.c.endpoint, l.c.in[0]
	r := &Receive{Pieces: [][]byte{make([]byte, 100)}}
	must(t, e.Receive(l.now, r))
	draw := l.rand
	forgeries := []func(h *FrameHeader, rec *RecordHeader, imm *Immediate, n *uint32) error{
		func(h *FrameHeader, _ *RecordHeader, _ *Immediate, _ *uint32) error {
			h.Epoch ^= 1 + draw.Uint32N(1<<31)
			return ErrEpoch
		},
		func(h *FrameHeader, _ *RecordHeader, _ *Immediate, _ *uint32) error {
			h.Sequence ^= 1 + draw.Uint32N(1<<31)
			return ErrSequence
		},
		func(h *FrameHeader, _ *RecordHeader, _ *Immediate, _ *uint32) error {
			h.ReleasedSmall = 1 + draw.Uint32N(1<<31)
			return ErrCredit
		},
		func(h *FrameHeader, _ *RecordHeader, _ *Immediate, _ *uint32) error {
			h.ReleasedLarge = 1 + draw.Uint32N(1<<31)
			return ErrCredit
		},
		func(_ *FrameHeader, _ *RecordHeader, imm *Immediate, _ *uint32) error {
			imm.Epoch = 1 + uint16(draw.IntN(1<<12-1))
			return ErrNoRing
		},
		func(_ *FrameHeader, _ *RecordHeader, imm *Immediate, _ *uint32) error {
			imm.Class = 1 + uint8(draw.IntN(15))
			return ErrNoRing
		},
		func(_ *FrameHeader, _ *RecordHeader, imm *Immediate, _ *uint32) error {
			imm.Slot = 1 + uint16(draw.IntN(1<<16-1))
			return ErrSlot
		},
		func(_ *FrameHeader, _ *RecordHeader, _ *Immediate, n *uint32) error {
			*n = uint32(ring.size) + 1 + draw.Uint32N(1<<31)
			return ErrSlot
		},
		func(_ *FrameHeader, rec *RecordHeader, _ *Immediate, _ *uint32) error {
			rec.Type = RecordType(4 + draw.IntN(252))
			return ErrType
		},
		func(_ *FrameHeader, rec *RecordHeader, _ *Immediate, _ *uint32) error {
			rec.Len += 8 + draw.Uint32N(1<<31)
			return ErrLength
		},
	}
	frame := make([]byte, ring.size)
	for n := range forgedMessages {
		var fw FrameWriter
		fw.Reset(frame)
		rec, h := RecordHeader{Type: RecordEager, Len: 100}, FrameHeader{}
		payload, _ := fw.Append(&rec)
		copy(payload, "forged")
		imm, size := Immediate{}, uint32(len(fw.Finish(&h)))
		want := forgeries[n%len(forgeries)](&h, &rec, &imm, &size)
		h.Put(frame)
		rec.Put(frame[FrameHeaderLen:])
		copy(ring.slot(0, uint32(len(frame))), frame)
		e.HandleArrival(l.now, c.First(), &verbs.Completion{
			Opcode: verbs.WCRecvRDMAWithImm, ByteLen: size,
			Imm: ImmediateOf(imm.Class, uint32(imm.Epoch), imm.Slot).Uint32(),
		}, nil)
		if c.state != connBroken || !errors.Is(c.err, want) {
			t.Fatalf("message %d: %v, not %v", n, c.err, want)
		}
		if got := e.count[ProtocolErrors]; got != uint64(n+1) {
			t.Fatalf("message %d: %d are counted", n, got)
		}
		c.revive(ring)
	}
	if !r.node.Queued() || !bytes.Equal(r.Pieces[0], make([]byte, 100)) {
		t.Error("the receive is touched")
	}
	if u := e.Usage(); u.Unexpected != 0 {
		t.Errorf("%d messages are kept", u.Unexpected)
	}
}

// revive makes a connection that the peer broke by its first frame as it was before.
func (c *Conn) revive(ring *inRing) {
	c.state, c.err, c.farewell = connOpen, nil, false
	ring.arrived, ring.freed, c.peerFrames, c.consumed[small] = 0, 0, 0, 0
	for c.arrivals.n > 0 {
		c.arrivals.pop()
	}
	c.endpoint.timers.Stop(&c.goodbye)
	c.endpoint.ready.Remove(&c.links)
}
