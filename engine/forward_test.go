package engine

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
	"xroce/xsk"
)

// twoIdleQueues makes a device with two queues and no network, on which nobody makes progress.
func twoIdleQueues(t *testing.T) *idleDevice {
	t.Helper()
	o := Options{Clock: NewSystemClock(), RawPackets: true}
	o.setDefaults()
	d := &idleDevice{Device: newDevice(nullHost{}, nil, o), t: t}
	d.addQueue(nullLink{}, [6]byte{})
	d.addQueue(nullLink{}, [6]byte{})
	var err error
	if d.cq, err = d.CreateCQ(16); err != nil {
		t.Fatal(err)
	}
	d.pd = d.AllocPD()
	return d
}

type idleDevice struct {
	*Device
	t  *testing.T
	pd *PD
	cq *CQ
}

// create makes a QP in RESET.
func (d *idleDevice) create(typ roce.QPType) *QP {
	d.t.Helper()
	qp, err := d.CreateQP(d.pd, QPInit{Type: typ, SendCQ: d.cq, RecvCQ: d.cq})
	if err != nil {
		d.t.Fatal(err)
	}
	return qp
}

// other is the queue on which a QP does not live.
func (d *idleDevice) other(qp *QP) *queue { return d.queues[1-qp.home().index] }

// frame is a packet to an address.
func (d *idleDevice) frame(to wire.GID, packet roctest.Packet) []byte {
	d.t.Helper()
	path := wire.Path{
		Framing: wire.FramingV2IPv4, Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}), Dst: to,
		SrcPort: 0xc000, HopLimit: 64,
	}
	if to.IsMulticast() {
		path.SrcMAC, path.DstMAC = [6]byte{2}, to.MulticastMAC(wire.FramingV2IPv4)
	}
	var header wire.Template
	if err := header.Init(path); err != nil {
		d.t.Fatal(err)
	}
	return packet.Frame(&header)
}

// idleGID is the address of an idleDevice.
var idleGID = wire.GIDFromIPv4([4]byte{192, 0, 2, 2})

// rawFrame is a frame of EtherType 0x88b5.
func rawFrame() []byte {
	frame := make([]byte, 60)
	frame[12], frame[13] = 0x88, 0xb5
	return frame
}

// TestForwardedToTheWrongQueue: between two queues a number, or an EtherType, may go to a
// QP of another queue. A frame that finds that is counted, not lost in silence, and not
// forwarded for ever.
func TestForwardedToTheWrongQueue(t *testing.T) {
	d := twoIdleQueues(t)
	connected, raw := d.create(roce.TypeRC), d.create(roce.TypeRawPacket)
	if err := raw.AttachEtherType(0x88b5); err != nil {
		t.Fatal(err)
	}
	packet := roctest.Packet{Opcode: wire.RCSendOnly, DestQP: connected.QPN()}
	q := d.other(connected)
	q.handleForwarded(1, []xsk.RxFrame{{Head: d.frame(idleGID, packet)}})
	if got := q.count[counter.DropUnknownQPN]; got != 1 {
		t.Errorf("the packet was counted %d times", got)
	}
	q = d.other(raw)
	q.handleForwarded(1, []xsk.RxFrame{{Head: rawFrame()}})
	if got := q.drops[wire.NotRoCE]; got != 1 {
		t.Errorf("the raw frame was counted %d times", got)
	}
	for i, q := range d.queues {
		if !q.inbox.empty() {
			t.Errorf("queue %d was forwarded a frame", i)
		}
	}
}
