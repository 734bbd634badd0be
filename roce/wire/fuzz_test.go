package wire

import (
	"testing"
)

// seedFrames are packets of every opcode and framing, and all vectors.
func seedFrames(f *testing.F) [][]byte {
	f.Helper()
	var frames [][]byte
	for _, v := range vectors {
		frames = append(frames, unhex(f, v.hex))
	}
	for _, framing := range framings {
		for op := range Opcodes() {
			frames = append(frames, build(f, framing, op, legalPayloads(op)[0]))
		}
	}
	return frames
}

// FuzzDecode: no frame makes the decoder panic or point outside the frame, and
// cutting the frame in two changes nothing but to split the headers.
func FuzzDecode(f *testing.F) {
	for i, frame := range seedFrames(f) {
		f.Add(frame, uint16(i), false)
		f.Add(frame, uint16(len(frame)-6), true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, at uint16, native bool) {
		framing := FramingV2IPv4
		if native {
			framing = FramingNative
		}
		frame = frame[:len(frame):len(frame)]
		cut := int(at) % (len(frame) + 1)
		var whole, p Packet
		r1 := decodeAs(&whole, framing, frame, nil)
		r2 := decodeAs(&p, framing, frame[:cut:cut], frame[cut:])
		if r1 >= BadICRC || r2 >= BadICRC {
			t.Fatalf("%s and %s are not Decode's to give", r1, r2)
		}
		checkAccess(t, &whole, r1, len(frame))
		checkAccess(t, &p, r2, len(frame))
		if r2 == SplitHeader && cut < len(frame) {
			return
		}
		if r1 != r2 {
			t.Fatalf("whole: %s, cut at %d: %s", r1, cut, r2)
		}
		if r1 == OK {
			if err := samePacket(&whole, &p); err != nil {
				t.Fatal(err)
			}
			if whole.VerifyICRC() != p.VerifyICRC() || whole.VerifyVCRC() != p.VerifyVCRC() {
				t.Fatal("the cut changes what the checksums say")
			}
		}
	})
}

// FuzzICRC: the ICRC is that of the slow rule, for any bytes, framing and cut.
func FuzzICRC(f *testing.F) {
	for i, frame := range seedFrames(f) {
		f.Add(frame, uint8(i), uint16(60+i))
	}
	f.Fuzz(func(t *testing.T, b []byte, framing uint8, at uint16) {
		fr := framings[int(framing)%len(framings)]
		n := fr.netLen() + BTHLen
		if len(b) < n {
			if ICRC(fr, b, nil) != 0 {
				t.Fatalf("%s: an ICRC of a header cut short", fr)
			}
			return
		}
		cut := n + int(at)%(len(b)-n+1)
		if got, want := ICRC(fr, b[:cut], b[cut:]), slowICRC(fr, b); got != want {
			t.Fatalf("%s of %d bytes cut at %d: 0x%08x, want 0x%08x", fr, len(b), cut, got, want)
		}
	})
}

// checkAccess uses all of a packet and checks that its lengths add up.
func checkAccess(t *testing.T, p *Packet, r Reason, frame int) {
	t.Helper()
	icrc, vcrc := p.VerifyICRC(), p.VerifyVCRC()
	n := p.CopyPayload(make([]byte, frame))
	if r != OK {
		_, kept := p.CopyTo(make([]byte, frame))
		if icrc || vcrc || n != 0 || p.Spec != nil || kept || p.TransportLen() != 0 ||
			p.ICRC() != 0 {
			t.Fatalf("%s, but ICRC %t, VCRC %t, payload %d", r, icrc, vcrc, n)
		}
		return
	}
	sum := BTHLen + int(p.Spec.HeaderLen) + n + int(p.BTH.PadCnt) + ICRCLen
	if n != p.PayloadLen() || sum != p.TransportLen() || p.NetworkLen() > frame {
		t.Fatalf("payload %d, transport %d, network %d, frame %d", n, p.TransportLen(),
			p.NetworkLen(), frame)
	}
	kept, ok := p.CopyTo(make([]byte, p.NetworkLen()))
	if err := sameCopy(p, &kept); !ok || err != nil {
		t.Fatalf("held %t: %v", ok, err)
	}
	var grh [GRHLen]byte
	p.PutGRH(grh[:])
	_, err := ParseReplyGRH(grh[:])
	if (err == nil) != (p.Framing != FramingNative) {
		t.Fatalf("%s: GRH %x: %v", p.Framing, grh, err)
	}
	if p.RETH().String() == "" || p.AETH().String() == "" || p.BTH.String() == "" {
		t.Fatal("a header without text")
	}
}

// FuzzHeaders: no bytes make a Parse function panic, and what it accepts
// survives Put and Parse.
func FuzzHeaders(f *testing.F) {
	for _, c := range codecs {
		f.Add(unhex(f, c.golden))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range codecs {
			h, err := c.parse(b)
			if (err == nil) != (len(b) >= c.len) {
				t.Fatalf("%s of %d bytes: %v", c.name, len(b), err)
			}
			if err != nil {
				continue
			}
			out := make([]byte, c.len)
			h.Put(out)
			if again, err := c.parse(out); err != nil || again != h || h.String() == "" {
				t.Fatalf("%s: %v came back as %v, %v", c.name, h, again, err)
			}
		}
	})
}
