package engine

import "xroce/xsk"

// A loopback has the packets that the QPs of a queue sent to its own MAC
// address, from the send step of one round to the receive step of the next. No
// link carries them: a switch sends nothing back to where it came from.
//
// Receiving empties it, so it needs room for what one round sends; when it is full
// the round is over. Nothing is lost, as on a link with pause frames.
type loopback struct {
	mac [6]byte
	// members says that multicast groups have members here.
	members bool
	room    int // bytes of the longest frame
	frames  [burst]xsk.RxFrame
	n       int
	total   uint64 // frames since the queue was made
}

func (l *loopback) full() bool { return l.n == len(l.frames) }

// put takes a copy of a frame if it is for this host alone, and reports that. Of
// one for a multicast group it takes a copy too when there are members here, but
// others wait for it as well. There must be room.
func (l *loopback) put(frame []byte) bool {
	back := [6]byte(frame) == l.mac
	if !back && (!l.members || frame[0]&1 == 0) {
		return false
	}
	b := l.frames[l.n].Head
	if cap(b) < len(frame) {
		// Made at first use: few devices talk to themselves.
		b = make([]byte, 0, max(l.room, len(frame)))
	}
	l.frames[l.n].Head = append(b[:0], frame...)
	l.n++
	l.total++
	return back
}

// take returns the frames and is empty. They are valid until the next put.
func (l *loopback) take() []xsk.RxFrame {
	taken := l.frames[:l.n]
	l.n = 0
	return taken
}
