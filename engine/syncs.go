package engine

import (
	"slices"
	"sync"

	"xroce/roce/mem"
)

// Bounds of the FLUSHes to persistence of a device.
const (
	// syncWorkers is how many are carried out at once, so that a slow disk does not hold up
	// others.
	syncWorkers = 4
	// maxSyncs is how many may wait for that. A peer whose FLUSH finds no room is told to
	// try again.
	maxSyncs = 256
)

// syncs are the FLUSHes to persistence that are under way. Goroutines carry them out, because
// a disk takes as long as it likes and a queue serves others too; they end when there is
// nothing to do. mu is one of the last locks.
type syncs struct {
	device *Device

	mu      sync.Mutex
	over    sync.Cond // a job has ended, or will not begin
	waiting []syncJob // the oldest first
	running []syncJob
	begun   uint64 // how many have come
	closed  bool
	workers sync.WaitGroup
}

// A syncJob is what a QP waits for.
type syncJob struct {
	job *mem.SyncJob
	qpn uint32
	n   uint64 // how many had come, with it
}

// init has FLUSHes carried out here, but in a simulation, where a run can be repeated.
func (s *syncs) init(d *Device) {
	s.device, s.over.L = d, &s.mu
	if _, real := d.options.Clock.(systemClock); real {
		d.keys.SetSyncer(s)
	}
}

// StartSync implements mem.Syncer.
func (s *syncs) StartSync(job *mem.SyncJob, qpn uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.waiting) == maxSyncs {
		return false
	}
	s.begun++
	j := syncJob{job, qpn, s.begun}
	if len(s.running) == syncWorkers {
		s.waiting = append(s.waiting, j)
		return true
	}
	s.running = append(s.running, j)
	s.workers.Go(func() { s.work(j) })
	return true
}

// work carries out a job, and then those that wait.
func (s *syncs) work(j syncJob) {
	for more := true; more; {
		err := j.job.Run()
		done := j
		j, more = s.next(done)
		s.tell(done, err)
	}
}

// next ends a job and returns the one to do next, if any waits.
func (s *syncs) next(done syncJob) (j syncJob, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.running, done)
	s.over.Broadcast()
	if len(s.waiting) == 0 {
		s.running = slices.Delete(s.running, i, i+1)
		return syncJob{}, false
	}
	j = s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.running[i] = j
	return j, true
}

// CancelSync implements mem.Syncer: it takes a job out that has not begun.
func (s *syncs) CancelSync(job *mem.SyncJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(j syncJob) bool { return j.job == job })
	s.over.Broadcast()
}

// wait waits until the jobs about a region are over that there are. Those that come
// meanwhile are about what its key stands for by now, and peers may have no end of them.
func (s *syncs) wait(r *mem.Region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.begun
	about := func(j syncJob) bool { return j.n <= last && j.job.Of(r) }
	for slices.ContainsFunc(s.running, about) || slices.ContainsFunc(s.waiting, about) {
		s.over.Wait()
	}
}

// close drops what waits, and waits for what is being carried out. No QP adds anything any
// more.
func (s *syncs) close() {
	s.mu.Lock()
	s.closed, s.waiting = true, nil
	s.over.Broadcast()
	s.mu.Unlock()
	s.workers.Wait()
}

// quiesce waits until nobody uses what the region was: no access, and no FLUSH.
func (m *MR) quiesce() {
	m.device.quiesce()
	m.device.syncs.wait(m.core)
}

// tell tells a QP how its job has ended, if it still waits for that. Another one may have
// its number by now.
func (s *syncs) tell(j syncJob, err error) {
	q := s.device.qps.Lookup(j.qpn)
	if q == nil {
		return
	}
	queue := q.lock()
	defer queue.mu.Unlock()
	if q.core.SyncDone(queue.clock.Now(), j.job, err) {
		queue.reschedule(q)
		queue.wake()
	}
}
