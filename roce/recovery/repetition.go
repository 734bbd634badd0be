package recovery

import "xroce/roce/wire"

// This file is about which PSNs a repetition leaves out, and about those that have
// responses with data.

// Skip returns the PSN behind those, from psn on and of one request that ends with
// last, that need not be sent again; psn itself when it must be. data says that the
// response to the request carries data, and kept that the data of psn is here already.
func (s *Scoreboard) Skip(psn, last wire.PSN, data, kept bool) wire.PSN {
	executed := s.executed.After(psn)
	switch {
	case !data:
		if executed || s.sacked.Has(psn) || !s.Lost(psn) {
			return psn.Add(1)
		}
	case kept:
		return psn.Add(1)
	case !executed && s.sacked.Has(psn),
		s.requested.Has(psn) && psn != s.cumAcked && (executed || !s.Lost(psn)):
		return last.Add(1)
	}
	return psn
}

// RepeatUpTo begins a repetition from cumAcked up to a PSN, of what is lost. highSent
// is the PSN behind all that was ever sent. What was known of transmissions stays
// known, other than with BeginRound.
func (s *Scoreboard) RepeatUpTo(top, highSent wire.PSN) {
	s.recoveryPoint, s.roundHigh, s.overtakes = top, highSent, 0
	s.requested = Set{}
	if !s.reported.After(top) {
		s.reported = s.cumAcked
	}
}

// Reported returns the PSN up to which the peer said that requests are missing there.
func (s *Scoreboard) Reported() wire.PSN { return s.reported }

// Report notes that the peer said that requests up to a PSN are missing there.
func (s *Scoreboard) Report(top wire.PSN) {
	if top.After(s.reported) {
		s.reported = top
	}
}

// SetReported replaces what Report noted.
func (s *Scoreboard) SetReported(psn wire.PSN) { s.reported = psn }

// Executed returns the PSN before which the peer executed everything.
func (s *Scoreboard) Executed() wire.PSN { return s.executed }

// Requested reports whether the data of a PSN was requested again.
func (s *Scoreboard) Requested(psn wire.PSN) bool { return s.requested.Has(psn) }

// Request notes that the data from a PSN up to another was requested again.
func (s *Scoreboard) Request(from, to wire.PSN) {
	for ; from != to && uint32(from.Sub(uint32(s.cumAcked))) < Span; from = from.Add(1) {
		s.requested.Add(from)
	}
}

// CancelRequests notes that what was requested again of the PSNs from cumAcked through
// last was lost on its way.
func (s *Scoreboard) CancelRequests(last wire.PSN) {
	n := min(uint32(last.Sub(uint32(s.cumAcked)))+1, Span)
	for i := range n {
		s.requested.Remove(s.cumAcked.Add(i))
	}
}

// RepeatData begins a repetition of the data that is missing from cumAcked on, and of
// what else is known to be missing.
func (s *Scoreboard) RepeatData(highSent wire.PSN) {
	requested := s.requested
	requested.Add(s.cumAcked)
	s.RepeatUpTo(s.missingUpTo(), highSent)
	s.requested = requested
}

// missingUpTo returns the PSN behind the last that is missing for sure.
func (s *Scoreboard) missingUpTo() wire.PSN {
	top := s.cumAcked.Add(1)
	for _, p := range [...]wire.PSN{s.executed, s.reported} {
		if p.After(top) {
			top = p
		}
	}
	return top
}

// Overtaken notes an acknowledge of everything before a PSN while data from cumAcked on
// is missing. It reports whether that data may be lost: when it was requested again
// already, it is lost once more only if something that was sent after the request has
// been acknowledged, or more than can have been on its way before.
func (s *Scoreboard) Overtaken(psn wire.PSN) bool {
	if psn.After(s.executed) {
		s.executed = psn
	}
	s.overtakes++
	return !s.requested.Has(s.cumAcked) || psn.After(s.roundHigh) || s.overtakes >= Span
}
