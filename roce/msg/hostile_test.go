package msg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// A liar is a peer whose every word is drawn from bytes.
type liar struct {
	*world
	c     *Conn
	bytes []byte
	sent  *Send    // the last one
	taken *Message // that was claimed
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
	wc := verbs.Completion{Opcode: verbs.WCRecv}
	l.c.endpoint.HandleArrival(l.now, l.c.First(), &wc, m.Put(b[:]))
}

// frame writes a frame with one record to the slot that is next of a ring.
func (l *liar) frame(r *inRing, rec RecordHeader) {
	slot := uint16(r.arrived % uint64(r.slots))
	var w FrameWriter
	w.Reset(r.slot(slot, uint32(r.size)))
	w.Append(&rec)
	n := len(w.Finish(&FrameHeader{Epoch: r.epoch, Sequence: l.c.peerFrames}))
	l.c.endpoint.HandleArrival(l.now, l.c.First(), &verbs.Completion{
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
			Type: RecordType(1 + l.next()%3), Flags: RecordFlags(l.next() % 4),
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
	l.c.endpoint.HandleArrival(l.now, c.First(), &verbs.Completion{
		Opcode: verbs.WCRecvRDMAWithImm, ByteLen: uint32(n),
		Imm: ImmediateOf(uint8(r.class), r.epoch, slot).Uint32(),
	}, nil)
}

// meddle does what an application may do while messages are under way.
func (l *liar) meddle() {
	e := l.c.endpoint
	switch l.next() % 8 {
	case 0:
		if l.sent != nil {
			e.CancelSend(l.now, l.sent)
		}
	case 1:
		if m, ok := e.Claim(l.now, 0, 0, nil); ok && l.taken == nil {
			l.taken = &m
		} else if ok {
			_ = e.ReceiveClaimed(&m, &Receive{Pieces: [][]byte{make([]byte, 100)}})
		}
	case 2:
		if l.taken != nil {
			_ = e.ReceiveClaimed(l.taken, &Receive{Pieces: [][]byte{make([]byte, 100)}})
			l.taken = nil
		}
	case 3:
		_ = l.c.Renew(2 + int(l.next()%4))
	case 4:
		l.now += clock.Time(l.next()) * clock.Second / 8
		e.HandleDeadline(l.now)
	case 5:
		e.Resume(l.now)
		e.Handle(uint16(l.next()%2), func(_ clock.Time, m *Active) (*Receive, Status) {
			switch m.Tag {
			case 0:
				return nil, StatusOK
			case 1:
				return nil, Status(l.next())
			}
			return &Receive{Pieces: [][]byte{make([]byte, 100)}}, StatusOK
		})
	case 6:
		l.c.Close(l.now)
	}
}

// FuzzLiar plays a peer that says and writes anything: nothing panics, what it makes an
// endpoint hold is bounded, and when it is gone nothing is left.
func FuzzLiar(f *testing.F) {
	f.Add([]byte("\x03\x00\x01"))
	for mode := range byte(modeCount) { // all modes, with what a program does
		f.Add(append([]byte{mode}, bytes.Repeat([]byte{5, 9, 5, 1, 3, 6, 1, 1, 0, 3, 7, 30}, 9)...))
	}
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(liarRun)
}

// liarRun plays a peer that says what the bytes have it say.
func liarRun(t *testing.T, b []byte) {
	mode := Keep
	if len(b) > 0 {
		mode = Mode(b[0] % byte(modeCount))
	}
	l := newLiar(t, Config{Slots: 4, Rendezvous: 4, Unexpected: 4096, Mode: mode})
	w, ca, a := l.world, l.c, l.nodes[0]
	l.bytes = b
	for len(l.bytes) > 0 {
		switch l.next() % 8 {
		case 0, 1, 2:
			l.say()
		case 3, 4:
			l.write()
		case 5:
			l.sent = &Send{
				Pieces:   [][]byte{make([]byte, int(l.next())<<(l.next()%10))},
				Level:    Level(l.next() % 4),
				Protocol: Protocol(l.next() % uint8(protocolCount)),
			}
			_ = ca.Send(w.now, l.sent)
		case 6:
			r := &Receive{
				Pieces: [][]byte{make([]byte, int(l.next())<<(l.next()%10))},
				Tag:    uint64(l.next() % 4),
			}
			_ = a.endpoint.Receive(w.now, r)
			l.meddle()
		default:
			for range l.next() {
				w.step()
			}
		}
		messages, kept := ca.source.Unexpected()
		if kept > 4096+256 || messages > 16 || ca.arrivals.n > 64 ||
			ca.toSay() > ca.mostToSay() || len(ca.in) > 8 ||
			a.endpoint.registered > 8<<20 {
			t.Fatalf("%d unexpected messages of %d bytes, %d arrivals, %d to say, "+
				"%d rings of %d bytes", messages, kept, ca.arrivals.n, ca.out.n, len(ca.in),
				a.endpoint.registered)
		}
	}
	ca.Abort(w.now, errHungUp)
	w.settle()
	w.nothingLeft()
}
