package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// sameCopy says how a copy differs from the packet it was made from.
func sameCopy(p, kept *Packet) error {
	if err := samePacket(p, kept); err != nil {
		return err
	}
	a, b := *p, *kept
	for _, q := range []*Packet{&a, &b} {
		q.Payload, q.PayloadTail, q.head, q.tail = nil, nil, nil, nil
		q.net, q.bth, q.end = 0, 0, 0
	}
	var ga, gb [GRHLen]byte
	p.PutGRH(ga[:])
	kept.PutGRH(gb[:])
	switch {
	case !reflect.DeepEqual(a, b):
		return errors.New("different fields")
	case ga != gb:
		return errors.New("different bytes before the datagram")
	case p.ICRC() != kept.ICRC() || p.VerifyICRC() != kept.VerifyICRC():
		return errors.New("different ICRC")
	case kept.PayloadTail != nil || len(kept.Payload) != p.PayloadLen():
		return errors.New("payload not in one piece")
	}
	return nil
}

// TestCopyTo: the copy reads as the packet did, for any packet in any two
// pieces, and does not care what becomes of the frame.
func TestCopyTo(t *testing.T) {
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
		if _, ok := p.CopyTo(buf[:need-1]); ok {
			t.Fatalf("copied %d bytes in %d", need, need-1)
		}
		kept, ok := p.CopyTo(buf[:need+rapid.IntRange(0, 2).Draw(t, "room")])
		clear(frame)
		if err := sameCopy(&want, &kept); !ok || err != nil {
			t.Fatalf("%s %s payload %d cut at %d: copied %t, %v", f, op, n, cut, ok, err)
		}
		if !bytes.Equal(buf[need:], []byte{0xa5, 0xa5, 0xa5}) {
			t.Fatal("CopyTo wrote behind the packet")
		}
		if kept.VerifyVCRC() {
			t.Fatal("a copy has a VCRC")
		}
		twice, ok := kept.CopyTo(make([]byte, need))
		clear(buf)
		if err := sameCopy(&want, &twice); !ok || err != nil {
			t.Fatalf("copied twice: %t, %v", ok, err)
		}
	})
}

func TestCopyToNothing(t *testing.T) {
	frame := build(t, FramingV1, RCSendOnly, 3)
	var p Packet
	p.Decode(frame, nil)
	p.Decode(frame[:20], nil)
	for _, p := range []*Packet{{}, &p} {
		if kept, ok := p.CopyTo(make([]byte, 100)); ok || kept.Spec != nil {
			t.Errorf("copied %v, %t, want nothing", kept, ok)
		}
	}
}

// TestCapturesCopyTo copies every captured packet.
func TestCapturesCopyTo(t *testing.T) {
	captures(t, func(name string, frames [][]byte) {
		for i, frame := range frames {
			var p Packet
			p.Decode(frame, nil)
			kept, ok := p.CopyTo(make([]byte, p.NetworkLen()))
			if err := sameCopy(&p, &kept); !ok || err != nil {
				t.Errorf("%s frame %d: copied %t, %v", name, i+1, ok, err)
			}
		}
	})
}
