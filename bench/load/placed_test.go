package load

import (
	"bytes"
	"testing"

	"xroce/roce/wire"
)

// TestPlacer sends the payloads of a message through frames, whole and in two pieces.
func TestPlacer(t *testing.T) {
	const payload, message = 256, 1024
	header := Header(payload+RCOverhead, macB, macA, ipA, ipB)
	from, err := newPlacer(header, payload+RCOverhead, message)
	if err != nil {
		t.Fatal(err)
	}
	to, err := newPlacer(header, payload+RCOverhead, message)
	if err != nil {
		t.Fatal(err)
	}
	clear(to.memory)
	b := make([]byte, payload+RCOverhead)
	var packet wire.Packet
	for i := range 2 * message / payload {
		from.gather(b)
		if r := packet.Decode(b, nil); r != wire.OK || !packet.VerifyICRC() {
			t.Fatalf("frame %d is no packet: %v", i, r)
		}
		cut := len(b) - i*(payload/8)
		if !to.place(b[:cut], b[cut:]) {
			t.Fatalf("frame %d, cut at %d, was refused", i, cut)
		}
		if at := (i % (message / payload)) * payload; !bytes.Equal(
			to.memory[at:at+payload], from.memory[at:at+payload]) {
			t.Fatalf("frame %d: other bytes were placed", i)
		}
	}
	if !bytes.Equal(to.memory, from.memory) {
		t.Error("not all was placed")
	}
}

// TestPlacerRefuses offers frames that are damaged, short, or another's.
func TestPlacerRefuses(t *testing.T) {
	const size = 64 + RCOverhead
	header := Header(size, macB, macA, ipA, ipB)
	p, err := newPlacer(header, size, 64)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	p.gather(b)
	kept := bytes.Clone(p.memory)
	for _, i := range []int{ethernetLen, payloadAt, size - wire.ICRCLen, size - 1} {
		b[i] ^= 0x10
		if p.place(b, nil) {
			t.Errorf("byte %d may change", i)
		}
		b[i] ^= 0x10
	}
	for n := range size {
		if p.place(b[:n], nil) {
			t.Errorf("%d of %d bytes are enough", n, size)
		}
	}
	if p.place(b[:size-2], b[size-2:]) {
		t.Error("a CRC in two pieces was read")
	}
	if p.place(make([]byte, 2*size), nil) || !bytes.Equal(p.memory, kept) {
		t.Error("a frame of another length was placed")
	}
	if !p.place(b, nil) {
		t.Error("the frame itself is refused")
	}
	for _, bad := range [][2]int{{RCOverhead, 64}, {size + 1, 64}, {size, 65}} {
		if _, err := newPlacer(header, bad[0], bad[1]); err == nil {
			t.Errorf("frames of %d bytes for %d of memory", bad[0], bad[1])
		}
	}
}
