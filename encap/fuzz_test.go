package encap

import (
	"bytes"
	"testing"

	"xroce/roce/clock"
)

// seeds adds packets of a format: whole ones, those written by hand, and a segment.
func seeds(f *testing.F, formats ...Format) {
	f.Helper()
	for _, format := range formats {
		for _, code := range format.Spec().Codes {
			f.Add(packetOf(f, format, code.Kind, 64))
			f.Add(packetOf(f, format, code.Kind, 61))
		}
		for _, v := range vectors {
			if v.format == format {
				f.Add(unhex(f, v.packet))
			}
		}
		tp := template(format)
		tp.Room = 1024
		if c, r := tp.Cut(Ethernet, make([]byte, 1500), 7); r == OK {
			b := make([]byte, tp.Room)
			f.Add(bytes.Clone(b[:c.Next(b)]))
			f.Add(b[:c.Next(b)])
		}
	}
}

// checkDecoded uses all of a packet: what is in it lies in the bytes that it is from, its
// fields are all of these, and what it carries makes the same packet again.
func checkDecoded(t *testing.T, f Format, b []byte, p *Packet, r Reason) {
	t.Helper()
	if r != OK {
		if p.Datagram != nil || p.Tail != nil || p.Kind != 0 {
			t.Fatalf("%s, but there is a datagram", r)
		}
		if r.String() == "" || int(r) >= NumReasons || r >= NotCarried && r <= Own {
			t.Fatalf("%s is not for packets that come", r)
		}
		return
	}
	if p.Len() == 0 || p.Len() > len(b) || !p.Format.Spec().Carries(p.Kind) {
		t.Fatalf("%d bytes of %s from %d", p.Len(), p.Kind, len(b))
	}
	if p.Segment.Whole() && p.Len() < p.Kind.MinLen() {
		t.Fatalf("%d bytes of %s", p.Len(), p.Kind)
	}
	list, r := Fields(p.Format, b)
	var all []byte
	for _, field := range list {
		all = append(all, field.Bytes...)
	}
	if r != OK || !bytes.HasPrefix(b, all) || f > RawGRH && len(all) != len(b) {
		t.Fatalf("%s: fields of %d bytes in %d", r, len(all), len(b))
	}
	tp := Template{
		Format: p.Format, Room: p.Format.Spec().Room, VL: p.LRH.VL, SL: p.LRH.SL,
		DLID: p.LRH.DLID, SLID: p.LRH.SLID, TClass: p.GRH.TClass, FlowLabel: p.GRH.FlowLabel,
		HopLimit: p.GRH.HopLmt, SGID: p.GRH.SGID, DGID: p.GRH.DGID, Switch: p.Switch,
		Checks: p.Checks,
	}
	if !p.Segment.Whole() {
		return
	}
	frame := make([]byte, tp.Room)
	n, r := tp.Put(frame, p.Kind, p.Datagram)
	if r == Nested || r == TooLong {
		return
	}
	var again Packet
	if r != OK || decode(&again, p.Format, frame[:n]) != OK || again.Kind != p.Kind ||
		!bytes.Equal(again.Datagram, p.Datagram) || again.GRH.SGID != p.GRH.SGID ||
		again.Switch != p.Switch || again.Checks != p.Checks && p.Format != Raw {
		t.Fatalf("%s: %+v came back as %+v", r, p, again)
	}
}

// FuzzDecodeNative: raw packets, whole and in two pieces. The VCRC is made right half of the
// time, so that what is behind it is reached.
func FuzzDecodeNative(f *testing.F) {
	seeds(f, Raw, RawIPv6, RawGRH)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 16 && len(b)%2 == 0 {
			b = nativeOf(b[:len(b)-2])
		}
		var p, split Packet
		r := p.DecodeNative(b, nil)
		checkDecoded(t, Raw, b, &p, r)
		if r != OK {
			return
		}
		at := len(b) / 2
		switch r2 := split.DecodeNative(b[:at:at], b[at:]); {
		case r2 == SplitHeader:
		case r2 != OK || split.Len() != p.Len() || split.Segment != p.Segment:
			t.Fatalf("in two pieces: %s, %d bytes of %d", r2, split.Len(), p.Len())
		}
	})
}

// fuzzPayload fuzzes the parser of one format.
func fuzzPayload(f *testing.F, format Format) {
	f.Helper()
	seeds(f, format)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Packet
		r := p.Decode(format, b)
		checkDecoded(t, format, b, &p, r)
	})
}

func FuzzEoIB(f *testing.F)  { fuzzPayload(f, EoIB) }
func FuzzIPoIB(f *testing.F) { fuzzPayload(f, IPoIB) }
func FuzzVNIC(f *testing.F)  { fuzzPayload(f, VNIC) }

// FuzzIPoIBConnected is the same parser with fewer types.
func FuzzIPoIBConnected(f *testing.F) { fuzzPayload(f, IPoIBConnected) }

// FuzzNesting: whatever a datagram is, looking into it ends.
func FuzzNesting(f *testing.F) {
	seeds(f, Raw, EoIB, VNIC)
	for _, v := range vectors {
		f.Add(onEthernet(EtherTypeNative, 1, unhex(f, v.packet)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for k := range Kind(len(kinds)) {
			if n := Nesting(k, b); n < 0 || n > maxNesting+1 {
				t.Fatalf("nested %d times", n)
			}
		}
	})
}

// FuzzReassembler: each segment is four bytes, of which the last is its length, and as many of
// the bytes behind it. Whatever comes, no more is held than may be, and a frame that comes out
// has a length that it may have.
func FuzzReassembler(f *testing.F) {
	f.Add([]byte("\x00\x00\x80\x08abcdefgh\x00\x00\x01\x08ijklmnop"))
	f.Add([]byte("\x00\x00\x01\x08ijklmnop\x00\x00\x80\x08abcdefgh"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReassembler(ReassemblerConfig{
			Frames: 4, PerSource: 2, Largest: 64, Lifetime: 16,
		})
		if err != nil {
			t.Fatal(err)
		}
		var now clock.Time
		for len(b) > 4 {
			n := min(int(b[3]), len(b)-4)
			if n == 0 {
				break
			}
			p := seg(uint16(b[1]), int(b[2]&31), b[2]&0x80 != 0, b[4:][:n])
			p.FCS = b[2]&0x40 != 0
			now += clock.Time(b[0] >> 4)
			frame, reason := r.Add(now, uint64(b[0]&3), p)
			if frame != nil && (reason != OK || len(frame) < 14 || len(frame) > 64) ||
				r.Held() > 4 {
				t.Fatalf("%s, %d bytes, %d held", reason, len(frame), r.Held())
			}
			b = b[4+n:]
		}
	})
}
