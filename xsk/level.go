package xsk

// A level is how many receive chunks the kernel has to receive into. It takes them in
// turn, the one that was given back longest ago first: with more of them than the cache
// holds, each frame comes to memory that the cache does not know. So it has few as long
// as they suffice, and more, up to all, when a reader that comes late finds many waiting.
// Then it keeps them: what came once may come again.
type level struct {
	most  uint32   // chunks that there are
	now   uint32   // what the kernel is to have
	lent  uint32   // what it has: in the fill ring, or in the RX ring and not seen
	spare []uint32 // the others, the hottest on top
}

// levelUp is the factor by which the level rises when half of it is waiting. It leaves
// room for what comes meanwhile.
const levelUp = 4

// init says that the kernel is to have now of most chunks. It has none yet, and all are
// spare.
func (l *level) init(now, most uint32) {
	*l = level{most: most, now: now, spare: make([]uint32, most)}
	for i := range l.spare {
		l.spare[i] = most - 1 - uint32(i)
	}
}

// raise makes the level at least n, or all there is.
func (l *level) raise(n uint32) { l.now = max(l.now, min(n, l.most)) }

// room is how many chunks the kernel is to have beyond what it has.
func (l *level) room() uint32 { return l.now - min(l.lent, l.now) }

// low reports whether the kernel has much less than it is to have, because the
// application keeps what it received, and spare ones can take their place.
func (l *level) low() bool { return len(l.spare) > 0 && l.room() > l.now/4 }

// found notes that so many chunks were waiting, and reports whether the level rose.
func (l *level) found(waiting uint32) bool {
	before := l.now
	switch {
	case before == l.most || waiting <= before/2:
		return false
	case waiting >= l.lent: // it had no more, so nobody knows what was lost
		l.now = l.most
	default:
		l.raise(levelUp * before)
	}
	return true
}
