package msg

import (
	"encoding/binary"
	"errors"
	"testing"

	"xroce/roce/verbs"
)

// A liar is a peer whose every word is drawn from bytes.
type liar struct {
	*world
	c     *Conn
	bytes []byte
}

func (l *liar) next() byte {
	if len(l.bytes) == 0 {
		return 0
	}
	b := l.bytes[0]
	l.bytes = l.bytes[1:]
	return b
}

// say sends a control message whose fields are near what may be right.
func (l *liar) say() {
	m := Control{
		Type: Type(1 + l.next()%uint8(typeEnd-1)), ID: uint32(l.next() % 4),
		Number: uint16(l.next()),
		Len:    uint64(l.next()) << (l.next() % 56), RKey: uint32(l.next()), Tag: uint64(l.next()),
		Released: uint32(l.next() % 3),
	}
	switch l.next() % 8 {
	case 0:
		m.Class = l.next() % 16
	case 1:
		m.Status = Status(l.next() % uint8(statusEnd))
	case 2:
		m.Flags = Flags(l.next() % flagEnd)
	case 3:
		m.Class = 1
		m.Len = uint64(SlotLen(8192))
	case 4:
		m.ID = m.ID<<10 | uint32(l.next())
		m.Flags = FlagGet
	}
	l.control(m)
}

// control sends a control message, in its place.
func (l *liar) control(m Control) {
	var b [MaxControlLen]byte
	m.Sequence = l.c.peerControls
	l.c.endpoint.HandleArrival(l.now, l.c, &verbs.Completion{Opcode: verbs.WCRecv}, m.Put(b[:]))
}

// frame writes a frame with one record to the slot that is next of a ring.
func (l *liar) frame(r *inRing, rec RecordHeader) {
	slot := uint16(r.arrived % uint64(r.slots))
	var w FrameWriter
	w.Reset(r.slot(slot, uint32(r.size)))
	w.Append(&rec)
	n := len(w.Finish(&FrameHeader{Epoch: r.epoch, Sequence: l.c.peerFrames}))
	l.c.endpoint.HandleArrival(l.now, l.c, &verbs.Completion{
		Opcode: verbs.WCRecvRDMAWithImm, ByteLen: uint32(n),
		Imm: ImmediateOf(uint8(r.class), r.epoch, slot).Uint32(),
	}, nil)
}

// newLiar joins an endpoint with a peer that the test plays, which has used its small slots.
func newLiar(t *testing.T, c Config) *liar {
	t.Helper()
	w := newWorld(t, 1)
	a, b := w.node(c), w.node(Config{})
	ca, _ := w.join(a, b, allCapabilities)
	w.settle()
	w.pipes[1].lies = true
	w.said = nil
	return &liar{world: w, c: ca}
}

// wantBroken tests that the connection ends because of what the peer did, that it says so
// before, and that nothing is left.
func (l *liar) wantBroken(want error) {
	l.t.Helper()
	w := l.world
	w.settle()
	if p := new(PeerError); !errors.As(l.c.Err(), &p) || !errors.Is(l.c.Err(), want) {
		w.t.Errorf("the connection ends with %v, not %v", l.c.Err(), want)
	}
	if n := l.c.endpoint.Snapshot()[ProtocolErrors]; n != 1 {
		w.t.Errorf("%d errors are counted", n)
	}
	if n := len(w.said); n == 0 || w.said[n-1].Type != TypeBye ||
		w.said[n-1].Status != StatusProtocolError {
		w.t.Errorf("the last words are %v", w.said)
	}
	w.nothingLeft()
}

// write writes a frame to the slot that is next, with a record or two.
func (l *liar) write() {
	c := l.c
	if len(c.in) == 0 {
		return
	}
	r := c.in[int(l.next())%len(c.in)]
	if r.memory.Bytes == nil {
		return
	}
	slot := uint16(r.arrived % uint64(r.slots))
	var w FrameWriter
	w.Reset(r.slot(slot, uint32(r.size)))
	for range 1 + l.next()%2 {
		w.Append(&RecordHeader{
			Type: RecordType(1 + l.next()%2), Flags: RecordFlags(l.next() % 4),
			Len: uint32(l.next()), Tag: uint64(l.next() % 4), Number: uint16(l.next() % 2),
		})
	}
	h := FrameHeader{Epoch: r.epoch, Sequence: c.peerFrames, ReleasedSmall: uint32(l.next() % 2)}
	n := len(w.Finish(&h))
	if l.next()%16 == 0 {
		b := r.slot(slot, uint32(r.size))
		binary.BigEndian.PutUint32(b[4*(l.next()%8):], uint32(l.next()))
	}
	if l.next()%32 == 0 {
		slot++
	}
	l.c.endpoint.HandleArrival(l.now, c, &verbs.Completion{
		Opcode: verbs.WCRecvRDMAWithImm, ByteLen: uint32(n),
		Imm: ImmediateOf(uint8(r.class), r.epoch, slot).Uint32(),
	}, nil)
}

// FuzzLiar plays a peer that says and writes anything: nothing panics, what it makes an
// endpoint hold is bounded, and when it is gone nothing is left.
func FuzzLiar(f *testing.F) {
	f.Add([]byte("\x03\x00\x01"))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLiar(t, Config{Slots: 4, Rendezvous: 4, Unexpected: 4096})
		w, ca, a := l.world, l.c, l.nodes[0]
		l.bytes = b
		for len(l.bytes) > 0 {
			switch l.next() % 8 {
			case 0, 1, 2:
				l.say()
			case 3, 4:
				l.write()
			case 5:
				_ = ca.Send(w.now, &Send{
					Pieces:   [][]byte{make([]byte, int(l.next())<<(l.next()%10))},
					Level:    Level(l.next() % 4),
					Protocol: Protocol(l.next() % uint8(protocolCount)),
				})
			case 6:
				r := &Receive{
					Pieces: [][]byte{make([]byte, int(l.next())<<(l.next()%10))},
					Tag:    uint64(l.next() % 4),
				}
				_ = a.endpoint.Receive(w.now, r)
			default:
				for range l.next() {
					w.step()
				}
			}
			messages, bytes := ca.source.Unexpected()
			if bytes > 4096+256 || messages > 16 || ca.arrivals.n > a.endpoint.arrivalLimit() ||
				ca.out.n > a.endpoint.arrivalLimit() || len(ca.in) > 8 ||
				a.endpoint.registered > 8<<20 {
				t.Fatalf("%d unexpected messages of %d bytes, %d arrivals, %d to say, "+
					"%d rings of %d bytes", messages, bytes, ca.arrivals.n, ca.out.n, len(ca.in),
					a.endpoint.registered)
			}
		}
		ca.Abort(w.now, errHungUp)
		w.settle()
		w.nothingLeft()
	})
}
