package roce_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// Offsets in an untagged RoCE v2 frame over IPv4.
const (
	frameIP  = 14
	frameUDP = frameIP + 20
	frameBTH = frameUDP + 8
)

// sumIPv4 makes the header checksum of a frame right, the slow and obvious way.
func sumIPv4(frame []byte) {
	h := frame[frameIP:frameUDP]
	h[10], h[11] = 0, 0
	var sum uint32
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
}

// A shape is the lengths that a packet says it has, and those that it has.
type shape struct {
	op      wire.Opcode
	body    int // bytes between BTH and ICRC
	pad     int
	udp, ip int // more than the truth
}

// well reports whether the shape is one that decodes, from the rules of the
// architecture alone.
func (h *shape) well() bool {
	spec := h.op.Spec()
	payload := h.body - int(spec.HeaderLen) - h.pad
	if h.udp != 0 || h.ip != 0 || h.body%4 != 0 || payload < 0 {
		return false
	}
	switch spec.Payload {
	case wire.PayloadNone:
		return payload == 0
	case wire.Payload8:
		return payload == 8
	case wire.Payload16:
		return payload == 16
	case wire.Payload32:
		return payload == 32
	}
	return true
}

// frame builds a frame of the shape, with right checksums for what it says.
func (h *shape) frame(s *stand) []byte {
	n := wire.BTHLen + h.body
	clear(s.frame[frameBTH:][:n+wire.ICRCLen+8])
	b := s.frame[frameBTH:]
	wire.BTH{
		Opcode: h.op, M: true, PKey: wire.DefaultPKey, DestQP: s.qp.Num(), PadCnt: uint8(h.pad),
		PSN: s.qp.Snapshot().ExpectedPSN,
	}.Put(b)
	even := (n + 3) &^ 3
	s.path.Seal(s.frame, even, 1)
	// What is no multiple of four cannot be sealed: its ICRC is wrong too.
	f := s.frame[:frameBTH+n+wire.ICRCLen]
	binary.BigEndian.PutUint16(f[frameIP+2:], uint16(28+n+wire.ICRCLen+h.ip))
	binary.BigEndian.PutUint16(f[frameUDP+4:], uint16(8+n+wire.ICRCLen+h.udp))
	sumIPv4(f)
	return f
}

// TestHostileLengths: every opcode with 0 to header+7 bytes behind its BTH, every
// padding, and IP and UDP lengths up to 8 off. What does not fit together is
// refused by name and never reaches the QP; the rest does it no harm.
func TestHostileLengths(t *testing.T) {
	stands := map[wire.Service]*stand{}
	for _, k := range kinds {
		if k.typ != roce.TypeRawPacket {
			stands[k.service()] = newStand(t, k, roce.StateRTR)
		}
	}
	off := 8
	if testing.Short() {
		off = 1
	}
	seen := map[wire.Reason]int{}
	for op, spec := range wire.Opcodes() {
		s := stands[spec.Service]
		if s == nil {
			s = stands[wire.ServiceRC]
		}
		// One that is executed would change the QP for those that follow.
		must(t, s.modify(&roce.Attr{State: roce.StateReset}, roce.AttrState))
		for body := range int(spec.HeaderLen) + 8 + 40 {
			if body > int(spec.HeaderLen)+7 && body%4 != 0 {
				continue
			}
			for pad := range 4 {
				lengthsAround(t, s, shape{op: op, body: body, pad: pad}, off, seen)
			}
		}
	}
	t.Logf("frames by how they decode: %v", seen)
	for _, r := range []wire.Reason{
		wire.OK, wire.Truncated, wire.BadUDPLength, wire.BadLength, wire.BadPad,
		wire.BadPayloadSize,
	} {
		if seen[r] == 0 {
			t.Errorf("no frame was %s", r)
		}
	}
}

func lengthsAround(t *testing.T, s *stand, h shape, off int, seen map[wire.Reason]int) {
	t.Helper()
	for h.udp = -off; h.udp <= off; h.udp++ {
		for h.ip = -off; h.ip <= off; h.ip++ {
			before := s.count[counter.DropQPState]
			r := s.giveFrame(h.frame(s))
			seen[r]++
			// Lengths that agree with each other and with the alignment, and are
			// too short for what is there, make another packet, whose ICRC is not
			// where this one has it.
			shorter := h.udp == h.ip && h.udp < 0
			if r == wire.OK && !shorter && !h.well() || r != wire.OK && h.well() {
				t.Fatalf("%s %+v: decode says %s", h.op, h, r)
			}
			reached := s.count[counter.DropQPState] - before
			if reached != uint64(b2i(r == wire.OK)) {
				t.Fatalf("%s %+v: %s, but %d reached the QP", h.op, h, r, reached)
			}
			if r == wire.OK && shorter && s.packet.VerifyICRC() {
				t.Fatalf("%s %+v: a cut packet has a right ICRC", h.op, h)
			}
		}
	}
}

// TestHostileLengthsExecuted: the same bodies with right lengths outside, given to
// a QP that would execute them.
func TestHostileLengthsExecuted(t *testing.T) {
	for _, k := range kinds {
		if k.typ == roce.TypeRawPacket {
			continue
		}
		for op, spec := range wire.Opcodes() {
			if spec.Service != k.service() {
				continue
			}
			s := newStand(t, k, roce.StateRTS)
			for body := 0; body < int(spec.HeaderLen)+48; body += 4 {
				for pad := range 4 {
					h := shape{op: op, body: body, pad: pad}
					s.giveFrame(h.frame(s))
					s.sendAll()
					s.check()
				}
			}
			s.runOut()
			s.end()
		}
	}
}

// TestHostileFixedSizes: opcodes whose payload has one size, with one byte and
// one word less and more. They are refused before any QP sees them.
func TestHostileFixedSizes(t *testing.T) {
	fixed := map[wire.PayloadRule]int{
		wire.PayloadNone: 0, wire.Payload8: 8, wire.Payload16: 16, wire.Payload32: 32,
	}
	s := newStand(t, kinds[1], roce.StateRTS)
	for op, spec := range wire.Opcodes() {
		want, ok := fixed[spec.Payload]
		if !ok {
			continue
		}
		for _, n := range []int{want - 4, want - 1, want, want + 1, want + 4, want + 256} {
			if n < 0 {
				continue
			}
			h := shape{op: op, body: int(spec.HeaderLen) + n, pad: -n & 3}
			h.body += h.pad
			if n == want {
				if r := s.packet.Decode(h.frame(s), nil); r != wire.OK {
					t.Errorf("%s with %d bytes: %s", op, n, r)
				}
				continue
			}
			s.frozen(fmt.Sprintf("%s with %d bytes", op, n), func() {
				if r := s.giveFrame(h.frame(s)); r != wire.BadPayloadSize {
					t.Errorf("%s with %d bytes: %s", op, n, r)
				}
			})
		}
	}
}

// TestHostileFixedSizeDisagrees: an ATOMIC WRITE whose RETH names another
// length than the eight bytes that it has, and a SELECTIVE_ACK for a QP that
// does not know it.
func TestHostileFixedSizeDisagrees(t *testing.T) {
	for _, n := range []uint32{0, 1, 7, 9, 16, 1 << 31, 1<<32 - 1} {
		s := newStand(t, kinds[0], roce.StateRTR)
		p := s.target(wire.RCAtomicWrite)
		p.RETH.DMALen = n
		memory := string(s.bytes)
		s.givePacket(p)
		responses := s.sendAll()
		if len(responses) != 1 || responses[0].AETH().Syndrome != wire.NAKInvalidRequest ||
			s.qp.State() != roce.StateErr || memory != string(s.bytes) {
			t.Errorf("ATOMIC WRITE of %d bytes: %d answers, %s", n, len(responses), s.qp.State())
		}
	}
	for _, k := range kinds {
		if k.ext != 0 || k.typ == roce.TypeRawPacket {
			continue
		}
		s := newStand(t, k, roce.StateRTS)
		s.frozen("SELECTIVE_ACK", func() { s.giveFrame(s.frameOf(wire.SelectiveAck)) })
		if s.count[counter.DropWrongService] != 1 {
			t.Errorf("%s: SELECTIVE_ACK is not counted as of another service", k.name)
		}
	}
}

// TestHostileTrailingBytes: bytes behind the ICRC, as Ethernet pads, are nobody's.
func TestHostileTrailingBytes(t *testing.T) {
	for _, k := range []kind{kinds[0], kinds[4], kinds[6]} {
		for n := range 47 {
			s := newStand(t, k, roce.StateRTR)
			op, _ := k.opcode(wire.RCSendOnly)
			frame := s.frameOf(op)
			for range n {
				frame = append(frame, 0xee)
			}
			s.giveFrame(frame)
			s.check()
			if s.recvDone != 1 || s.statuses[roce.StatusSuccess] != 1 {
				t.Errorf("%s: %d bytes behind a SEND: %d receives done", k.name, n, s.recvDone)
			}
		}
	}
}
