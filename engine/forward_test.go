package engine

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
	"xroce/xsk"
)

// TestForwardedToTheWrongQueue: between two queues a number, or an EtherType, may go to a
// QP of another queue. A frame that finds that is counted, not lost in silence, and not
// forwarded for ever.
func TestForwardedToTheWrongQueue(t *testing.T) {
	o := Options{Clock: NewSystemClock(), RawPackets: true}
	o.setDefaults()
	d := newDevice(nullHost{}, nil, o)
	d.addQueue(nullLink{}, [6]byte{})
	d.addQueue(nullLink{}, [6]byte{})
	cq, err := d.CreateCQ(16)
	if err != nil {
		t.Fatal(err)
	}
	pd := d.AllocPD()
	create := func(typ roce.QPType) *QP {
		qp, err := d.CreateQP(pd, QPInit{Type: typ, SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		return qp
	}
	connected, raw := create(roce.TypeRC), create(roce.TypeRawPacket)
	if err := raw.AttachEtherType(0x88b5); err != nil {
		t.Fatal(err)
	}
	other := func(qp *QP) *queue {
		if qp.home() == d.queues[0] {
			return d.queues[1]
		}
		return d.queues[0]
	}

	var path wire.Template
	if err := path.Init(wire.Path{
		Framing: wire.FramingV2IPv4, Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}),
		Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, 2}), SrcPort: 0xc000, HopLimit: 64,
	}); err != nil {
		t.Fatal(err)
	}
	packet := roctest.Packet{Opcode: wire.RCSendOnly, DestQP: connected.QPN()}
	q := other(connected)
	q.handleForwarded(1, []xsk.RxFrame{{Head: packet.Frame(&path)}})
	if got := q.count[counter.DropUnknownQPN]; got != 1 {
		t.Errorf("the packet was counted %d times", got)
	}
	q = other(raw)
	frame := make([]byte, 60)
	frame[12], frame[13] = 0x88, 0xb5
	q.handleForwarded(1, []xsk.RxFrame{{Head: frame}})
	if got := q.drops[wire.NotRoCE]; got != 1 {
		t.Errorf("the raw frame was counted %d times", got)
	}
	for i, q := range d.queues {
		if !q.inbox.empty() {
			t.Errorf("queue %d was forwarded a frame", i)
		}
	}
}
