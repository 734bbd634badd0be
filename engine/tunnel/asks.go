package tunnel

import "slices"

// asks are when a peer asked, by its own clock: what was answered once is not answered again. Its
// queues ask by themselves, each for its connection, and what one asks may come behind what another
// asked later. So the times of the latest are kept, of one request for each connection that a peer
// may have at once, and what is older than those is refused.
type asks struct {
	floor uint64 // no later than this was, or may have been, answered
	late  []uint64
}

// isNew reports whether what was asked at a time may be answered.
func (a *asks) isNew(at uint64) bool { return at > a.floor && !slices.Contains(a.late, at) }

// note notes what is answered.
func (a *asks) note(at uint64) {
	if a.late = append(a.late, at); len(a.late) > peerPlaces {
		oldest := slices.Index(a.late, slices.Min(a.late))
		a.floor = a.late[oldest]
		a.late = slices.Delete(a.late, oldest, oldest+1)
	}
}

// noteLast notes what is answered by a peer that asks for one thing after the other.
func (a *asks) noteLast(at uint64) { a.floor = max(a.floor, at) }
