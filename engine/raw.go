package engine

import (
	"encoding/binary"
	"fmt"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// EtherTypes that matter to raw frames.
const (
	minEtherType  = 0x0600 // below it, the field is a length (IEEE 802.3 3.2.6)
	etherTypeVLAN = 0x8100
	etherTypeQinQ = 0x88a8
)

// AttachEtherType lets a QP of type RAW_PACKET receive the frames of an EtherType
// that are not RoCE packets, whole and from the Ethernet header on: one QP for
// each EtherType, that behind up to two VLAN tags. It ends with Close of the QP.
//
// The XDP program hands over frames of EtherType 0x88b5 (IEEE 802 local
// experimental 1) that are addressed to the interface's MAC address, or to that of
// a group to which a QP is attached; what else a link brings depends on it. A
// frame without a receive is dropped and counted as out_of_buffer, one that is
// longer than its receive as drop_too_long.
//
// Raw QPs need Options.RawPackets, because they can send in anybody's name. What
// they send goes to the link and never to a QP of this device.
func (q *QP) AttachEtherType(etherType uint16) error {
	switch {
	case q.Type() != roce.TypeRawPacket:
		return fmt.Errorf("%w: frames are for RAW_PACKET, the QP is of type %s",
			roce.ErrInvalid, q.Type())
	case etherType < minEtherType, etherType == etherTypeVLAN, etherType == etherTypeQinQ,
		etherType == wire.EtherTypeV1:
		return fmt.Errorf("%w: no raw frame has EtherType 0x%04x", roce.ErrInvalid, etherType)
	}
	d := q.device()
	d.life.Lock()
	defer d.life.Unlock()
	switch {
	case q.closed:
		return errClosed
	case d.raw.load()[etherType] != nil:
		return fmt.Errorf("%w: EtherType 0x%04x has a QP", roce.ErrInvalid, etherType)
	}
	d.raw.set(etherType, q)
	return nil
}

// detachRaw takes a QP out of the EtherTypes. The caller holds life.
func (d *Device) detachRaw(qp *QP) {
	for etherType, member := range d.raw.load() {
		if member == qp {
			d.raw.remove(etherType)
		}
	}
}

// demuxRaw hands a frame that is no RoCE packet to the QP of its EtherType, and
// reports whether there is one.
func (q *queue) demuxRaw(now roce.Time, f *xsk.RxFrame, forwarded bool) bool {
	raw := q.device.raw.load()
	if len(raw) == 0 {
		return false
	}
	qp := raw[etherTypeOf(f.Head)]
	if qp == nil {
		return false
	}
	if qp.queue != q {
		if !forwarded {
			qp.queue.forward(f)
		}
		return true
	}
	q.count.Add(counter.RcvdBytes, uint64(f.Len()))
	// The QP is raw, and that is all that could be wrong.
	_ = qp.core.HandleFrame(now, f.Head, f.Tail)
	q.reschedule(qp)
	return true
}

// etherTypeOf returns the EtherType of a frame behind up to two VLAN tags, 0 when
// the frame ends before it.
func etherTypeOf(frame []byte) uint16 {
	const maxTags = 2
	for off := ethernetHeader; off <= ethernetHeader+maxTags*vlanTag; off += vlanTag {
		if len(frame) < off {
			return 0
		}
		etherType := binary.BigEndian.Uint16(frame[off-2:])
		if etherType != etherTypeVLAN && etherType != etherTypeQinQ {
			return etherType
		}
	}
	return 0
}
