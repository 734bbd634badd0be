package engine

import (
	"encoding/binary"
	"fmt"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/xsk"
)

// AttachEtherType lets a QP of type RAW_PACKET receive the frames of an EtherType
// that are not RoCE packets: one QP for each. The XDP program hands over RoCE
// and 0x88B5; what else a link brings depends on it. Raw QPs need
// Options.RawPackets, because they can send in anybody's name.
func (q *QP) AttachEtherType(etherType uint16) error {
	if q.machine.Type() != roce.TypeRawPacket {
		return fmt.Errorf("%w: frames are for RAW_PACKET, the QP is of type %s",
			roce.ErrInvalid, q.machine.Type())
	}
	queue := q.device.queue
	queue.mu.Lock()
	defer queue.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case queue.raw[etherType] != nil:
		return fmt.Errorf("%w: EtherType 0x%04x has a QP", roce.ErrInvalid, etherType)
	}
	if queue.raw == nil {
		queue.raw = map[uint16]*QP{}
	}
	queue.raw[etherType] = q
	return nil
}

// detachRaw takes a QP out of the EtherTypes.
func (q *queue) detachRaw(qp *QP) {
	for etherType, member := range q.raw {
		if member == qp {
			delete(q.raw, etherType)
		}
	}
}

// demuxRaw hands a frame that is no RoCE packet to the QP of its EtherType, and
// reports whether there is one.
func (q *queue) demuxRaw(now roce.Time, f *xsk.RxFrame) bool {
	if len(q.raw) == 0 || len(f.Head) < ethernetHeader {
		return false
	}
	qp := q.raw[binary.BigEndian.Uint16(f.Head[ethernetHeader-2:])]
	if qp == nil {
		return false
	}
	q.count.Add(counter.RcvdBytes, uint64(f.Len()))
	// The QP is raw, and that is all that could be wrong.
	_ = qp.machine.HandleFrame(now, f.Head, f.Tail)
	q.touched(qp)
	return true
}
