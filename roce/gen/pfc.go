package gen

import "encoding/binary"

// PFC is what a frame of priority-based flow control says (IEEE 802.1Q clause 36, in the form of
// IEEE 802.3 annex 31D): the sender is to wait with frames of some priorities.
type PFC struct {
	Priorities uint8  // a bit for each: 1<<3 is priority 3
	Quanta     uint16 // how long, in times of 512 bits; 0 to go on
}

// Numbers of MAC control frames.
const (
	typeMACControl = 0x8808
	opcodePFC      = 0x0101
	pfcLen         = 60 // without FCS: the shortest frame
)

// pfcMAC is where such frames go: to the neighbour, over no bridge.
var pfcMAC = [6]byte{0x01, 0x80, 0xc2, 0, 0, 0x01}

// initPFC prepares a flow of such frames, which are all alike: without a tag and a signature, so
// that nobody counts them.
func (f *Flow) initPFC() error {
	if f.c.PFC.Priorities == 0 {
		return wrong("flow control of no priority")
	}
	if f.c.MaxFrame < pfcLen {
		return wrong("frames of %d bytes, and the interface takes %d", pfcLen, f.c.MaxFrame)
	}
	h := make([]byte, pfcLen)
	copy(h, pfcMAC[:])
	copy(h[6:], f.c.Path.SrcMAC[:])
	binary.BigEndian.PutUint16(h[12:], typeMACControl)
	binary.BigEndian.PutUint16(h[14:], opcodePFC)
	h[17] = f.c.PFC.Priorities
	for i := range 8 {
		if f.c.PFC.Priorities>>i&1 != 0 {
			binary.BigEndian.PutUint16(h[18+2*i:], f.c.PFC.Quanta)
		}
	}
	f.head = h
	f.stack.payload = ethLen
	return f.addPatches()
}

// makePFC writes one.
func (f *Flow) makePFC(frame []byte) int {
	n := copy(frame, f.head)
	f.seq++
	for i := range f.patches {
		f.patches[i].apply(frame[:n])
	}
	return n
}

// Silent reports whether frames have no signature: no sink counts them, and the flow has no end
// to tell.
func (f *Flow) Silent() bool { return f.c.Kind == KindPFC }
