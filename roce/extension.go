package roce

import "xroce/roce/recovery"

// This file switches extensions on, in each half.

// earlyExtensions are those for which packets that come early are kept.
const earlyExtensions = ExtSelectiveRepeat | ExtReorderWindow

// extend chooses how losses are recovered from.
func (r *requester) extend(e Extensions, pool *recovery.Pool) {
	r.recovery.stop()
	r.recovery, r.window = goBackN{r}, r.configured
	if e&earlyExtensions != 0 {
		r.recovery = newSelectiveRepeat(r, e, pool)
		r.window = min(r.configured, recovery.Span)
	}
}

// tolerate lets requests of a peer without extensions overtake each other, if the QP does.
func (s *responder) tolerate(pool *recovery.Pool) {
	if s.tolerance != 0 {
		pool.Reserve()
		s.early = newEarlyRequests(0, pool)
		s.early.gap = recovery.NewGapOf(int(s.tolerance))
	}
}

// extend says whether requests that come early wait.
func (s *responder) extend(e Extensions, pool *recovery.Pool) {
	if s.early != nil {
		s.early.clear()
		s.early = nil
	}
	if e&earlyExtensions != 0 {
		s.early = newEarlyRequests(e, pool)
	}
}
