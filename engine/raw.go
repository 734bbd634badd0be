package engine

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// AttachEtherType lets a QP of type RAW_PACKET receive the frames of an EtherType
// that are not RoCE packets, whole and from the Ethernet header on: one QP for
// each EtherType, that behind up to two VLAN tags. It ends with Close of the QP.
//
// The XDP program hands over frames of EtherType 0x88b5 (IEEE 802 local
// experimental 1) that are addressed to the interface's MAC address, or to that of
// a group to which a QP is attached, while a QP is attached to that EtherType, which
// a NativePort cannot have meanwhile; what else a link brings depends on it. A
// frame without a receive is dropped and counted as out_of_buffer, one that is
// longer than its receive as drop_too_long.
//
// Raw QPs need Options.RawPackets, because they can send in anybody's name. What
// they send goes to the link and never to a QP of this device.
func (q *QP) AttachEtherType(etherType uint16) error {
	if q.Type() != roce.TypeRawPacket {
		return fmt.Errorf("%w: frames are for RAW_PACKET, the QP is of type %s",
			roce.ErrInvalid, q.Type())
	}
	d := q.device()
	d.life.Lock()
	defer d.life.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := d.addEtherType(etherType, q); err != nil {
		return err
	}
	if err := d.steer(nil); err != nil {
		d.etherTypes.remove(etherType)
		return err
	}
	return nil
}

// handleFrame implements etherTypeHandler: the QP receives the frame, on its own queue.
func (q *QP) handleFrame(at *queue, now roce.Time, f *xsk.RxFrame, forwarded bool) {
	if q.home() != at {
		if forwarded { // for another QP, which gave the EtherType up meanwhile
			at.drops[wire.NotRoCE]++
			at.dropped(wire.NotRoCE.String())
		} else {
			at.forward(q.home(), f)
		}
		return
	}
	q.receiveFrame(at, now, f)
	at.reschedule(q)
}

// rawDrops are the counters of frames that a raw QP drops, one of which it raises for each.
var rawDrops = [...]counter.ID{
	counter.DropQPState, counter.OutOfBuffer, counter.DropTooLong, counter.DropPageAbsent,
}

// receiveFrame has the QP receive a frame that came to its own queue, and notes why it does not.
// The core tells that by what it counts.
func (q *QP) receiveFrame(at *queue, now roce.Time, f *xsk.RxFrame) {
	count := at.counts(at, q)
	received := count[counter.RDMARecvs]
	var before [len(rawDrops)]uint64
	for i, id := range rawDrops {
		before[i] = count[id]
	}
	q.core.AddRcvdBytes(f.Len())
	// The QP is raw, and that is all that could be wrong.
	_ = q.core.HandleFrame(now, f.Head, f.Tail)
	if count[counter.RDMARecvs] != received {
		return
	}
	// None of them counts a receive that fails because its memory is not the QP's.
	at.dropped(dropReason(counter.DropLocalMemory))
	for i, id := range rawDrops {
		if count[id] != before[i] {
			at.dropped(dropReason(id))
		}
	}
}
