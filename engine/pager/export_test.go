package pager

// WithoutPopulate makes a pager behave as on a kernel that does not know populate. It is
// to be called before the first region.
func (p *Pager) WithoutPopulate() { p.touches = true }

// HugeIn is the check for huge pages, of mappings that a test made up.
var HugeIn = hugeIn

// RaceDetector says that a word which is taken away within an atomic operation ends the
// process, as the race detector makes those in C.
const RaceDetector = raceDetector

// Idle returns when nothing that was asked for is waiting or under way.
func (p *Pager) Idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.jobs) > 0 {
		p.done.Wait()
	}
}
