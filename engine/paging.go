package engine

import (
	"sync"
	"sync/atomic"

	"xroce/engine/pager"
	"xroce/roce"
)

// paging is what a device has for on-demand paging.
type paging struct {
	pager pager.Pager
	// used says that there was a region with paging: without one the pager is not told
	// the time.
	used atomic.Bool

	mu sync.Mutex
	// regions are the open ones, by the part of a key that does not change.
	regions map[uint32]*MR
}

// tick tells the pager the time of a round. The caller holds the progress lock.
func (p *paging) tick(now roce.Time) {
	if p.used.Load() {
		p.pager.SetTime(int64(now))
	}
}
