package wire

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// slowICRC computes the ICRC bit by bit from the rule as data.
func slowICRC(f Framing, b []byte) uint32 {
	var in []byte
	if f != FramingNative && f != FramingNativeGRH {
		in = append(in, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	}
	var mask []byte
	if f == FramingNativeGRH {
		mask = append(mask, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		mask = append(mask, invariantMask(FramingV1, len(b)-LRHLen)...)
	} else {
		mask = invariantMask(f, len(b))
	}
	for i := range b {
		in = append(in, b[i]|mask[i])
	}
	crc := ^uint32(0)
	for _, c := range in {
		crc ^= uint32(c)
		for range 8 {
			crc = crc>>1 ^ 0xEDB88320*(crc&1)
		}
	}
	return ^crc
}

// TestICRC compares with the slow one for all framings, lengths and splits.
func TestICRC(t *testing.T) {
	for _, f := range framings {
		n := f.netLen() + BTHLen
		rapid.Check(t, func(t *rapid.T) {
			b := rapid.SliceOfN(rapid.Byte(), n, n+260).Draw(t, "packet")
			cut := rapid.IntRange(n, len(b)).Draw(t, "cut")
			got, want := ICRC(f, b[:cut], b[cut:]), slowICRC(f, b)
			if got != want {
				t.Fatalf("%s: %d bytes cut at %d: 0x%08x, want 0x%08x", f, len(b), cut, got, want)
			}
			// The register over the masked packet and its ICRC leaves a constant.
			tail := binary.LittleEndian.AppendUint32(nil, got)
			if rest := ^crc32.Update(got, crc32.IEEETable, tail); rest != 0xDEBB20E3 {
				t.Fatalf("%s: residue 0x%08x, want 0xDEBB20E3", f, rest)
			}
		})
		if ICRC(f, make([]byte, n-1), make([]byte, 100)) != 0 {
			t.Errorf("%s: an ICRC of a header cut short", f)
		}
	}
	if ICRC(FramingNone, make([]byte, 100), nil) != 0 || ICRC(99, make([]byte, 100), nil) != 0 {
		t.Error("an ICRC of no framing")
	}
}

func TestICRCSeed(t *testing.T) {
	ones := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if got := ^crc32.ChecksumIEEE(ones); got != icrcSeed {
		t.Errorf("the register behind eight 0xFF is 0x%08x, the seed is 0x%08x", got,
			uint32(icrcSeed))
	}
}

func TestCRCUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
		crc := rapid.Uint32().Draw(t, "crc")
		if got, want := ^crcUpdate(^crc, b), crc32.Update(crc, crc32.IEEETable, b); got != want {
			t.Fatalf("0x%08x, want 0x%08x", got, want)
		}
	})
}

// slowVCRC runs the register bit by bit.
func slowVCRC(crc uint16, b []byte) uint16 {
	for _, c := range b {
		for bit := range 8 {
			if (crc^uint16(c)>>bit)&1 != 0 {
				crc = crc>>1 ^ vcrcPoly
			} else {
				crc >>= 1
			}
		}
	}
	return crc
}

// TestVCRCUpdate: whatever the length, the register and where the bytes lie, the tables and
// the words that are folded say what the bits do.
func TestVCRCUpdate(t *testing.T) {
	b := make([]byte, 9*vcrcFold)
	for i := range b {
		b[i] = byte(i*i>>3 ^ i)
	}
	for n := range 3*vcrcFold + 1 {
		if got, want := updateVCRC(0xffff, b[n:2*n]), slowVCRC(0xffff, b[n:2*n]); got != want {
			t.Fatalf("%d bytes: 0x%04x, want 0x%04x", n, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { VCRC(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 9*vcrcFold).Draw(t, "bytes")
		crc := rapid.Uint16().Draw(t, "register")
		cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
		want := slowVCRC(crc, b)
		if got := updateVCRC(updateVCRC(crc, b[:cut]), b[cut:]); got != want {
			t.Fatalf("%d bytes cut at %d: 0x%04x, want 0x%04x", len(b), cut, got, want)
		}
	})
}

// TestForeignVCRC: the packets and lines of the CRC table that the packet generator of
// Mellanox's VAPI (mpga) has. Of the packets it has the first ICRC; the order of the bits
// is that of the table, and the register begins with ones and ends inverted there, too.
func TestForeignVCRC(t *testing.T) {
	local := unhex(t, "7012375c000e17d20a2024870087b1b3000dec2a01710a1c015d400238f27a05"+
		"0000000ebb884d85fd5cfba4728bc0690ed40000")
	if got := ICRC(FramingNative, local, nil); got != 0x5ab72596 {
		t.Errorf("ICRC 0x%08x, want 0x5ab72596", got)
	}
	lines := []uint16{
		0x960f, 0x8dae, 0xa14d, 0xbaec, 0xf88b, 0xe32a, 0xcfc9, 0xd468,
		0x4b07, 0x50a6, 0x7c45, 0x67e4, 0x2583, 0x3e22, 0x12c1, 0x0960,
	}
	for i, want := range lines {
		if got := vcrcTables[0][256-len(lines)+i]; got != want {
			t.Errorf("line %d of the table: 0x%04x, want 0x%04x", 256-len(lines)+i, got, want)
		}
	}
	// By these lines, the register of that generator behind the packet and its ICRC.
	if got := VCRC(append(local, 0x96, 0x25, 0xb7, 0x5a)); got != 0xfa45 {
		t.Errorf("VCRC 0x%04x, want 0xfa45", got)
	}
}

// TestVCRC: vector F, and that a packet with its VCRC behind it checks.
func TestVCRC(t *testing.T) {
	var f []byte
	for _, v := range vectors {
		if v.native {
			f = unhex(t, v.hex)
		}
	}
	if got := VCRC(f); got != 0x08e1 {
		t.Errorf("vector F: 0x%04x, want 0x08e1", got)
	}
	for _, framing := range []Framing{FramingNative, FramingNativeGRH} {
		b := build(t, framing, RCSendOnly, 33)
		var p Packet
		for cut := range len(b) {
			if p.DecodeNative(b[:cut], b[cut:]) == OK && !p.VerifyVCRC() {
				t.Errorf("%s cut at %d: wrong VCRC", framing, cut)
			}
		}
		p.DecodeNative(b, nil)
		for i := range b {
			b[i] ^= 1
			if p.VerifyVCRC() {
				t.Errorf("%s: byte %d changed unnoticed", framing, i)
			}
			b[i] ^= 1
		}
		if p.DecodeNative(b[:len(b)-1], nil) != OK || p.VerifyVCRC() {
			t.Errorf("%s: half a VCRC is right", framing)
		}
	}
	p := Packet{}
	if p.Decode(build(t, FramingV1, RCSendOnly, 33), nil) != OK || p.VerifyVCRC() {
		t.Error("RoCE has a VCRC")
	}
}
