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
	// beside says that there are such goroutines. In a simulation there are none: a run can
	// be repeated.
	beside bool

	mu      sync.Mutex
	over    sync.Cond // a job has ended, or will not begin
	waiting []syncJob // the oldest first
	running []syncJob
	closed  bool
	workers sync.WaitGroup
}

// A syncJob is what a QP waits for.
type syncJob struct {
	job *mem.SyncJob
	qp  *QP
}

func (s *syncs) init(c Clock) {
	_, s.beside = c.(systemClock)
	s.over.L = &s.mu
}

// add has a job carried out, if there is room for it.
func (s *syncs) add(j syncJob) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || len(s.waiting) == maxSyncs:
		return false
	case len(s.running) < syncWorkers:
		s.running = append(s.running, j)
		s.workers.Go(func() { s.work(j) })
	default:
		s.waiting = append(s.waiting, j)
	}
	return true
}

// work carries out a job, and then those that wait.
func (s *syncs) work(j syncJob) {
	for more := true; more; {
		err := j.job.Run()
		done := j
		j, more = s.next(done)
		done.qp.syncDone(done.job, err)
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

// cancel takes a job out that has not begun.
func (s *syncs) cancel(job *mem.SyncJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(j syncJob) bool { return j.job == job })
	s.over.Broadcast()
}

// wait waits until no job is about a region, whose key nobody can use any more.
func (s *syncs) wait(r *mem.Region) {
	about := func(j syncJob) bool { return j.job.Of(r) }
	s.mu.Lock()
	defer s.mu.Unlock()
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

// A qpSyncer is a QP as its transport has memory made persistent.
type qpSyncer struct{ qp *QP }

// StartSync implements roce.Syncer.
func (s qpSyncer) StartSync(job *mem.SyncJob) bool {
	return s.qp.device().syncs.add(syncJob{job, s.qp})
}

// CancelSync implements roce.Syncer.
func (s qpSyncer) CancelSync(job *mem.SyncJob) { s.qp.device().syncs.cancel(job) }

// syncDone tells the QP how a job has ended, which it may not wait for any more.
func (q *QP) syncDone(job *mem.SyncJob, err error) {
	queue := q.queue
	queue.lock()
	defer queue.mu.Unlock()
	if q.core.SyncDone(queue.clock.Now(), job, err) {
		queue.reschedule(q)
		queue.wake()
	}
}
