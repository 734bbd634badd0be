package analyze

import (
	"testing"

	"xroce/roce/dissect"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// feed feeds a frame of the first host as it is.
func (r *rig) feed(frame []byte) {
	r.number++
	var packet dissect.Packet
	r.d.Dissect(dissect.LinkEthernet, frame, len(frame), &packet)
	r.a.Add(r.number, r.now, 0, &packet)
}

// TestPadding: padding that is not zero is named. More of it than to the next word there cannot
// be, because it has two bits and packets have whole words: such a length is refused.
func TestPadding(t *testing.T) {
	r := newRig(t)
	path := &r.paths[0]
	p := roctest.Packet{Opcode: wire.RCSendOnly, DestQP: 0x22, Payload: []byte("12345")}
	frame := p.Frame(path)
	r.feed(frame)
	if list := r.a.Report().Violations; len(list) != 0 {
		t.Fatalf("padding of zeros: %+v", list)
	}
	frame[len(frame)-wire.ICRCLen-1] = 1
	r.feed(frame[:path.Seal(frame, len(frame)-path.Len()-wire.ICRCLen, 0)])
	list := r.a.Report().Violations
	if len(list) != 1 || list[0].Rule != ZeroPad.String() || list[0].Packets[0] != 2 {
		t.Errorf("%+v", list)
	}
}

// TestFragmentedRoCE: the first fragment of a packet, which says that it is RoCE, is named.
func TestFragmentedRoCE(t *testing.T) {
	r := newRig(t)
	p := roctest.Packet{Opcode: wire.RCSendOnly, DestQP: 0x22, Payload: make([]byte, 64)}
	frame := p.Frame(&r.paths[0])
	frame[14+6] = 0x20 // more fragments
	r.feed(frame)
	list := r.a.Report().Violations
	if len(list) != 1 || list[0].Rule != FragmentedRoCE.String() || list[0].Packets[0] != 1 {
		t.Errorf("%+v", list)
	}
}
