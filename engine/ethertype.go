package engine

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// minEtherType is the least EtherType: below it, the field is a length (IEEE 802.3 3.2.6).
const minEtherType = 0x0600

// An etherTypeHandler takes the frames of an EtherType that are no RoCE packets. A QP of
// type RAW_PACKET is one, a NativePort another.
type etherTypeHandler interface {
	// handleFrame takes a frame that came to q, whose progress lock is held: it must not
	// block, nor keep the frame. One that it does not take it counts, and says why to
	// q.drop or q.dropped. forwarded says that another queue has seen the frame first;
	// then it must not be forwarded again.
	handleFrame(q *queue, now roce.Time, f *xsk.RxFrame, forwarded bool)
}

// addEtherType has a handler take the frames of an EtherType, which no other handler takes. The
// caller holds life.
func (d *Device) addEtherType(etherType uint16, h etherTypeHandler) error {
	switch {
	case etherType < minEtherType, etherType == wire.TPIDCustomer, etherType == wire.TPIDService,
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
	_, etherType, _, _ := wire.ParseTags(f.Head) // 0, which has no handler, for what ends before it
	h := handlers[etherType]
	if h == nil {
		return false
	}
	h.handleFrame(q, now, f, forwarded)
	return true
}
