package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// sameHeld says how a held packet differs from the packet it was made from.
func sameHeld(p, held *Packet) error {
	if err := samePacket(p, held); err != nil {
		return err
	}
	a, b := *p, *held
	for _, q := range []*Packet{&a, &b} {
		q.Payload, q.PayloadTail, q.head, q.tail = nil, nil, nil, nil
		q.net, q.bth, q.end = 0, 0, 0
	}
	var ga, gb [GRHLen]byte
	p.PutGRH(ga[:])
	held.PutGRH(gb[:])
	switch {
	case !reflect.DeepEqual(a, b):
		return errors.New("different fields")
	case ga != gb:
		return errors.New("different bytes before the datagram")
	case p.ICRC() != held.ICRC() || p.VerifyICRC() != held.VerifyICRC():
		return errors.New("different ICRC")
	case held.PayloadTail != nil || len(held.Payload) != p.PayloadLen():
		return errors.New("payload not in one piece")
	}
	return nil
}

// TestHold: what was held answers as the packet did, for any packet in any two
// pieces, and does not care what becomes of the frame.
func TestHold(t *testing.T) {
	var ops []Opcode
	for op := range Opcodes() {
		ops = append(ops, op)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(framings).Draw(t, "framing")
		op := rapid.SampledFrom(ops).Draw(t, "opcode")
		n := rapid.SampledFrom(legalPayloads(op)).Draw(t, "payload")
		frame := append(build(t, f, op, n), rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "pad")...)
		var p Packet
		if r := decodeAs(&p, f, frame, nil); r != OK {
			t.Fatalf("%s", r)
		}
		cut := rapid.IntRange(p.bth+BTHLen+int(p.Spec.HeaderLen), len(frame)).Draw(t, "cut")
		if rapid.Bool().Draw(t, "spoil") {
			frame[p.end-1] ^= 1
		}
		decodeAs(&p, f, frame[:cut:cut], frame[cut:])

		again := bytes.Clone(frame)
		var want Packet
		decodeAs(&want, f, again[:cut:cut], again[cut:])

		need := p.NetworkLen()
		buf := bytes.Repeat([]byte{0xa5}, need+3)
		if _, ok := p.Hold(buf[:need-1]); ok {
			t.Fatalf("held %d bytes in %d", need, need-1)
		}
		held, ok := p.Hold(buf[:need+rapid.IntRange(0, 2).Draw(t, "room")])
		clear(frame)
		if err := sameHeld(&want, &held); !ok || err != nil {
			t.Fatalf("%s %s payload %d cut at %d: held %t, %v", f, op, n, cut, ok, err)
		}
		if !bytes.Equal(buf[need:], []byte{0xa5, 0xa5, 0xa5}) {
			t.Fatal("Hold wrote behind the packet")
		}
		if held.VerifyVCRC() {
			t.Fatal("a held packet has a VCRC")
		}
		twice, ok := held.Hold(make([]byte, need))
		clear(buf)
		if err := sameHeld(&want, &twice); !ok || err != nil {
			t.Fatalf("held twice: %t, %v", ok, err)
		}
	})
}

func TestHoldNothing(t *testing.T) {
	frame := build(t, FramingV1, RCSendOnly, 3)
	var p Packet
	p.Decode(frame, nil)
	p.Decode(frame[:20], nil)
	for _, p := range []*Packet{{}, &p} {
		if held, ok := p.Hold(make([]byte, 100)); ok || held.Spec != nil {
			t.Errorf("held %v, %t, want nothing", held, ok)
		}
	}
}

// TestCapturesHold holds every captured packet.
func TestCapturesHold(t *testing.T) {
	captures(t, func(name string, frames [][]byte) {
		for i, frame := range frames {
			var p Packet
			p.Decode(frame, nil)
			held, ok := p.Hold(make([]byte, p.NetworkLen()))
			if err := sameHeld(&p, &held); !ok || err != nil {
				t.Errorf("%s frame %d: held %t, %v", name, i+1, ok, err)
			}
		}
	})
}
