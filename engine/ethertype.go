package engine

import (
	"encoding/binary"
	"fmt"

	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// EtherTypes that say where the next one is, or that there is none.
const (
	minEtherType  = 0x0600 // below it, the field is a length (IEEE 802.3 3.2.6)
	etherTypeVLAN = 0x8100
	etherTypeQinQ = 0x88a8
)

// An etherTypeHandler takes the frames of an EtherType that are no RoCE packets. A QP of
// type RAW_PACKET is one, a NativePort another.
type etherTypeHandler interface {
	// handleFrame takes a frame that came to q, whose progress lock is held: it must not
	// block, nor keep the frame. forwarded says that another queue has seen the frame
	// first; then it must not be forwarded again.
	handleFrame(q *queue, now roce.Time, f *xsk.RxFrame, forwarded bool)
}

// addEtherType has a handler take the frames of an EtherType, which no other handler takes. The
// caller holds life.
func (d *Device) addEtherType(etherType uint16, h etherTypeHandler) error {
	switch {
	case etherType < minEtherType, etherType == etherTypeVLAN, etherType == etherTypeQinQ,
		etherType == wire.EtherTypeV1:
		return fmt.Errorf("%w: no raw frame has EtherType 0x%04x", roce.ErrInvalid, etherType)
	case d.etherTypes.load()[etherType] != nil:
		return fmt.Errorf("%w: EtherType 0x%04x is taken", roce.ErrInvalid, etherType)
	}
	d.etherTypes.set(etherType, h)
	return nil
}

// removeEtherTypes takes a handler out, and reports whether it was one. It may be in the
// middle of a frame on a queue whose progress lock the caller does not hold. The caller
// holds life.
func (d *Device) removeEtherTypes(h etherTypeHandler) (found bool) {
	for etherType, other := range d.etherTypes.load() {
		if other == h {
			d.etherTypes.remove(etherType)
			found = true
		}
	}
	return found
}

// demuxEtherType hands a frame that is no RoCE packet to the handler of its EtherType, and
// reports whether there is one.
func (q *queue) demuxEtherType(now roce.Time, f *xsk.RxFrame, forwarded bool) bool {
	handlers := q.device.etherTypes.load()
	if len(handlers) == 0 {
		return false
	}
	h := handlers[etherTypeOf(f.Head)]
	if h == nil {
		return false
	}
	h.handleFrame(q, now, f, forwarded)
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
