package pager

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"xroce/roce/mem"
)

// Implementation constants.
const (
	// workers bring pages in: two, so that one that waits for a slow disk does not
	// hold up what is quick.
	workers = 2
	// maxJobs is how many requests may wait or be under way. One that finds no room
	// is made again at the next try of the access.
	maxJobs = 256
	// maxAdvised is how many may be there when advice is still added: the rest is for
	// what is waited for.
	maxAdvised = maxJobs / 2
	// failureLasts is how long it is remembered that a page cannot be brought in, if
	// no access asks: longer than any wait until the next try, and not long enough to be
	// taken for what is mapped there next.
	failureLasts = time.Second
)

// ErrClosed says that a Pager or a Region was used after its Close.
var ErrClosed = errors.New("pager: used after Close")

// A Pager brings pages in for the regions of one device. The zero value is ready for
// use.
type Pager struct {
	total   tally
	latency latency
	began   time.Time
	touches bool // the kernel does not know populate
	clock   atomic.Int64
	gone    atomic.Uint64

	mu      sync.Mutex
	started bool
	closed  bool
	jobs    []job // in the order in which they came
	id      uint64
	full    uint64
	work    sync.Cond // there may be a job for a worker
	done    sync.Cond // a job ended
	running sync.WaitGroup
}

// A job is a request for the pages from first up to end.
type job struct {
	region     *Region
	first, end uint64
	write      bool
	prefetch   bool // no access waits for it
	running    bool
	id         uint64
	asked      int64 // pager time
}

// add makes a page part of what is wanted.
func (j *job) add(page uint64) {
	if j.end == 0 {
		j.first = page
	}
	j.end = page + pageSize
}

// start lets the workers run, once.
func (p *Pager) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.started:
		return nil
	}
	p.started, p.began, p.touches = true, time.Now(), p.touches || !populates()
	p.jobs = make([]job, 0, maxJobs)
	p.work.L, p.done.L = &p.mu, &p.mu
	for range workers {
		p.running.Go(p.run)
	}
	return nil
}

// Close ends the workers, and waits for what they are about. Regions that are still
// open are of no more use. It is idempotent.
func (p *Pager) Close() {
	p.mu.Lock()
	p.closed = true
	if p.started {
		p.jobs = slices.DeleteFunc(p.jobs, func(j job) bool { return !j.running })
		p.work.Broadcast()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// Stats returns what was counted for all regions that there ever were.
func (p *Pager) Stats() Stats { return p.total.stats() }

// Latency returns how long faults took.
func (p *Pager) Latency() Latency { return p.latency.read() }

// QueueFull returns how many requests found no room.
func (p *Pager) QueueFull() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.full
}

// Busy reports whether pages are to be brought in, or are being.
func (p *Pager) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.jobs) > 0
}

// SetTime tells the pager what time it is, in nanoseconds of any clock that does not go
// back. Until it is told, every access looks at its pages anew.
func (p *Pager) SetTime(now int64) { p.clock.Store(now) }

// now is a time of the pager, above 0.
func (p *Pager) now() int64 { return int64(time.Since(p.began)) + 1 }

// ask queues a request for pages that are absent, unless it is known that they cannot
// be had. It does not wait.
func (p *Pager) ask(want job) mem.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	want.asked = p.now()
	r := want.region
	switch {
	case p.closed || r.closed, r.failedIn(&want, want.asked):
		return mem.FaultUnmapped
	case p.asked(&want):
		return mem.FaultPage
	}
	p.queue(&want)
	return mem.FaultPage
}

// queue adds a job if there is room for it. The caller holds mu.
func (p *Pager) queue(j *job) {
	if len(p.jobs) == maxJobs || j.prefetch && len(p.jobs) >= maxAdvised {
		p.full++
		return
	}
	p.id++
	j.id = p.id
	p.jobs = append(p.jobs, *j)
	p.work.Signal()
}

// asked reports whether others asked for the pages already. One that waits for the pages
// before them takes them along. The caller holds mu.
func (p *Pager) asked(want *job) bool {
	for i := range p.jobs {
		j := &p.jobs[i]
		if j.region != want.region || j.prefetch || want.write && !j.write ||
			want.first < j.first || want.first > j.end {
			continue
		}
		if want.end <= j.end {
			return true
		}
		if !j.running && want.end-j.first <= Span {
			j.end = want.end
			return true
		}
	}
	return false
}

// run is a worker.
func (p *Pager) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		j, ok := p.pick()
		for !ok {
			if p.closed {
				return
			}
			p.work.Wait()
			j, ok = p.pick()
		}
		p.execute(&j)
	}
}

// pick returns a copy of the next job, of which a part is to be done now, if there is
// one. What is waited for comes first. The caller holds mu.
func (p *Pager) pick() (j job, ok bool) {
	next := -1
	for i := range p.jobs {
		if j := &p.jobs[i]; !j.running && (next < 0 || p.jobs[next].prefetch && !j.prefetch) {
			next = i
		}
	}
	if next < 0 {
		return job{}, false
	}
	p.jobs[next].running = true
	p.jobs[next].region.busy++
	return p.jobs[next], true
}

// execute does a job; of a prefetch one chunk, so that others get their turn. It is
// entered and left with mu held, and lets go of it meanwhile.
func (p *Pager) execute(j *job) {
	p.mu.Unlock()
	r, end := j.region, j.end
	if j.prefetch {
		end = min(end, j.first+vector*pageSize)
	}
	at, pages, errno := r.bring(j.first, end, j.write)
	switch {
	case j.prefetch:
		r.prefetched(j.first, at)
	case pages > 0:
		waited := time.Duration(p.now() - j.asked)
		r.tally.fault(pages, waited)
		p.latency.observe(waited)
	}
	p.mu.Lock()
	r.busy--
	i := slices.IndexFunc(p.jobs, func(o job) bool { return o.id == j.id })
	if errno == 0 && j.prefetch && at < j.end && !p.closed && !r.closed {
		p.jobs[i].first, p.jobs[i].running = at, false
	} else {
		p.jobs = slices.Delete(p.jobs, i, i+1)
	}
	if errno != 0 && errno != unix.ECANCELED && !j.prefetch {
		r.fail(at, j.write, p.now())
	}
	p.done.Broadcast()
}

// populate brings pages in.
func (p *Pager) populate(addr, n uint64, write bool) unix.Errno {
	if !p.touches {
		return populate(addr, n, write)
	}
	for end := addr + n; addr < end; addr += pageSize {
		if errno := touch(addr, write); errno != 0 {
			return errno
		}
	}
	return 0
}

// ended reports whether a region is closed, or the pager.
func (p *Pager) ended(r *Region) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || r.closed
}

// Close ends bringing pages in for the region, and waits for what is under way. For an
// access afterwards no absent page is brought in. It is idempotent.
func (r *Region) Close() {
	p := r.pager
	p.mu.Lock()
	defer p.mu.Unlock()
	r.closed = true
	p.jobs = slices.DeleteFunc(p.jobs, func(j job) bool { return j.region == r && !j.running })
	for r.busy > 0 {
		p.done.Wait()
	}
}
