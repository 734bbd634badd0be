package engine

import (
	"math"

	"xroce/roce"
)

// How many frames the kernel has to receive into. A peer that waits for our
// acknowledgements sends a window and then stops, so few frames suffice for few
// connections, and their bytes stay in the second level of the cache.
const (
	// minFillTarget is some windows of a QP: responses to READs are not bounded by one.
	minFillTarget = 1024
	// fillTargetPerQP is two windows.
	fillTargetPerQP = 512
)

// sizeReceiveRing sees to it that there are frames for what peers of a type may send to a new QP
// of it. Nothing holds back those of unreliable types. The caller holds mu, and the
// device's life lock.
func (q *queue) sizeReceiveRing(t roce.QPType) {
	switch t {
	case roce.TypeUC, roce.TypeUD, roce.TypeRawPacket:
		q.link.RaiseFillTarget(math.MaxInt32)
	default:
		q.link.RaiseFillTarget(fillTargetPerQP * q.members)
	}
}
