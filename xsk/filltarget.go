package xsk

// A fillTarget is how many receive chunks the kernel is to have: in the fill ring, or in
// the RX ring and not taken yet. The kernel uses the chunks in turn, the one that was
// given back longest ago first: with more of them than the cache holds, each frame comes
// to memory that the cache does not know. So the target is low as long as that suffices,
// and rises, up to all chunks, when a reader that comes late finds many frames waiting.
// It never falls: what came once may come again.
type fillTarget struct {
	total      uint32   // receive chunks that there are
	target     uint32   // how many of them the kernel is to have
	withKernel uint32   // how many it has
	spare      []uint32 // those without an owner; the most recently used is the last
}

// fillGrowth is the factor by which the target rises when more than half of it is found
// waiting. It leaves room for what comes meanwhile.
const fillGrowth = 4

// init sets the target for a kernel that has no chunk yet: all of them are spare.
func (f *fillTarget) init(target, total uint32) {
	*f = fillTarget{total: total, target: target, spare: make([]uint32, total)}
	for i := range f.spare {
		f.spare[i] = total - 1 - uint32(i)
	}
}

// raiseTo makes the target at least n, or all chunks if there are fewer.
func (f *fillTarget) raiseTo(n uint32) { f.target = max(f.target, min(n, f.total)) }

// missing is how many chunks the kernel has less than it is to have.
func (f *fillTarget) missing() uint32 { return f.target - min(f.withKernel, f.target) }

// refillable reports whether the kernel has much less than it is to have, because the
// application keeps what it received, and spare chunks can take the place of those.
func (f *fillTarget) refillable() bool {
	return len(f.spare) > 0 && f.missing() > f.target/4
}

// adapt raises the target if too many frames were waiting to be received, and reports
// whether it did.
func (f *fillTarget) adapt(waiting uint32) bool {
	before := f.target
	switch {
	case before == f.total || waiting <= before/2:
		return false
	case waiting >= f.withKernel: // it had no more, so frames may have been lost
		f.target = f.total
	default:
		f.raiseTo(fillGrowth * before)
	}
	return true
}
