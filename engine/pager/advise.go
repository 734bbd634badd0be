package pager

import "golang.org/x/sys/unix"

// Prefetch brings the pages of a range in before they are needed, for writing if write.
// With wait it returns when they are there, or the error of the first that cannot be
// had: ENOMEM where nothing is mapped, EFAULT for memory behind the end of a file, or that
// is not the region's or not allowed, EINVAL for memory without the right. Without it the
// pages are brought in after those that accesses wait for, errors are not reported, and
// the request is dropped when too many are queued.
func (r *Region) Prefetch(s Range, write, wait bool) error {
	if s.Length == 0 {
		return nil
	}
	if errno := r.advisable(s); errno != 0 {
		return errno
	}
	p := r.pager
	first, end := pageOf(s.Addr), pageEnd(s.Addr+s.Length)
	p.mu.Lock()
	switch {
	case p.closed || r.closed:
		p.mu.Unlock()
		return ErrClosed
	case !wait:
		p.queue(&job{
			region: r, first: first, end: end, write: write, prefetch: true, asked: p.now(),
		})
		p.mu.Unlock()
		return nil
	}
	r.busy++
	p.mu.Unlock()
	at, _, errno := r.bring(first, end, write)
	r.prefetched(first, at)
	p.mu.Lock()
	r.busy--
	p.done.Broadcast()
	p.mu.Unlock()
	switch errno {
	case 0:
		return nil
	case unix.ECANCELED:
		return ErrClosed
	}
	return errno
}

// Map takes note of the pages of a range that are present, and brings nothing in. The
// error is ENOMEM where nothing is mapped, and EFAULT for memory that is not the region's
// or not allowed.
func (r *Region) Map(s Range) error {
	if errno := r.advisable(s); errno != 0 {
		return errno
	}
	var vec [vector]byte
	for at, end := pageOf(s.Addr), pageEnd(s.Addr+s.Length); at < end; at += vector * pageSize {
		some := vec[:min(vector, (end-at)/pageSize)]
		if errno := resident(at, some); errno != 0 {
			return errno
		}
		r.note(at, some, true, &job{})
		present := uint64(0)
		for _, b := range some {
			present += uint64(b & 1)
		}
		r.tally.prefetched(present)
	}
	return nil
}

// advisable reports whether advice may be about a range.
func (r *Region) advisable(s Range) unix.Errno {
	switch {
	case s.Addr >= addressLimit || s.Length >= addressLimit:
		return unix.ENOMEM
	case !covers([]Range{r.span}, s.Addr, s.Length),
		r.allow != nil && !covers(r.allow, s.Addr, s.Length):
		return unix.EFAULT
	}
	return 0
}
