package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/list"
)

// An outRing is the slots that a peer made for us, and our copy of them: what goes into
// slot i of the peer is gathered in slot i here, which is free again when that one is.
// So what waits to be sent, or to be sent again, never changes.
type outRing struct {
	class   int
	epoch   uint32
	slots   int
	size    int    // bytes of a slot
	longest int    // message that is to go there
	remote  Memory // the peer's
	stage   Memory // ours
	began   uint64 // frames of the lane before the first one here
	last    uint64 // of a ring that is not used any more: those up to its last one
}

// slot returns the place of a frame, by its count.
func (r *outRing) slot(count uint64) int { return int((count - r.began - 1) % uint64(r.slots)) }

// bytes returns our copy of a slot.
func (r *outRing) bytes(slot int) []byte { return r.stage.Bytes[slot*r.size:][:r.size] }

// length returns how many bytes a slot has.
func (r *outRing) length() int {
	if r == nil {
		return 0
	}
	return r.size
}

// payload returns how long the longest message is that goes into a slot. There may be room for
// more: for the headers of several messages that are as long together.
func (r *outRing) payload() int {
	if r == nil {
		return 0
	}
	return r.longest
}

// A lane is all rings of a kind, one after the other: of small slots, or of large ones. Frames
// are counted over all of them, from 1 on.
type lane struct {
	ring    *outRing   // in use, nil for none
	old     []*outRing // with frames that are not complete
	written uint64
	flown   uint64     // whose work requests are complete
	freed   uint64     // that the peer has taken out
	used    clock.Time // when a frame was begun last

	flying  list.List[Send] // that wait for arrived
	landing list.List[Send] // that wait for freed
}

// arrived is how many frames are known to be at the peer: acknowledged, or taken out, which may
// be heard first.
func (l *lane) arrived() uint64 { return max(l.flown, l.freed) }

// free returns how many frames may be written now: the peer has taken out what was in their
// slots, and no packet of it can be sent again. Those of earlier rings are in memory of their
// own.
func (l *lane) free() int {
	if l.ring == nil {
		return 0
	}
	return l.ring.slots - int(l.written-max(min(l.freed, l.flown), l.ring.began))
}

// release takes how many frames the peer says it has taken out, modulo 2^32. It reports
// whether that can be: not more than were written, and not fewer than before.
func (l *lane) release(count uint32) bool {
	n := uint64(count - uint32(l.freed))
	if n > l.written-l.freed {
		return false
	}
	l.freed += n
	return true
}

// replace uses another ring from now on, or none. The old one is kept until its frames are
// complete.
func (l *lane) replace(r *outRing) {
	if l.ring != nil {
		l.ring.last = l.written
		l.old = append(l.old, l.ring)
	}
	if l.ring = r; r != nil {
		r.began = l.written
	}
}

// retire returns an old ring whose frames are complete, nil when there is none.
func (l *lane) retire() *outRing {
	if len(l.old) == 0 || l.flown < l.old[0].last {
		return nil
	}
	r := l.old[0]
	l.old = append(l.old[:0], l.old[1:]...)
	return r
}
