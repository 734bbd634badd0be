package roce

import (
	"xroce/roce/counter"
	"xroce/roce/recovery"
	"xroce/roce/wire"
)

// earlyRequests are those that came behind a gap, at the responder of a QP with
// extensions. Nothing is executed early: they wait and pass through the same steps as
// all others when their turn comes, so that order, MSN, RNR and errors are those of the
// architecture. What the peer is told that waits here waits until it is executed; the
// one exception is a packet that is then refused with an RNR NAK.
type earlyRequests struct {
	buffer recovery.Reassembly
	gap    recovery.Gap
	// bitmaps says that the peer is told what waits (ExtSelectiveRepeat).
	bitmaps bool
}

func newEarlyRequests(e Extensions, pool *recovery.Pool) *earlyRequests {
	x := &earlyRequests{
		gap: recovery.NewGap(e&ExtReorderWindow != 0), bitmaps: e&ExtSelectiveRepeat != 0,
	}
	x.buffer.Init(pool)
	return x
}

// clear gives back what waits.
func (x *earlyRequests) clear() {
	x.buffer.Clear()
	x.gap.Close()
}

// keepEarly keeps a request that lies ahead PSNs behind the expected one. It reports
// false when there is no room: then it is one behind a gap like any other.
func (s *responder) keepEarly(now Time, p *wire.Packet, ahead uint32) bool {
	x := s.early
	if x == nil || ahead >= recovery.Span {
		return false
	}
	x.buffer.Advance(s.psn)
	switch {
	case x.buffer.Has(p.BTH.PSN):
		s.count.Inc(counter.DuplicateRequest)
		s.outcome.judge(VerdictDuplicate, reasonAdmitted)
	case x.buffer.Put(p):
		s.count.Inc(counter.HeldEarly)
		s.outcome.judge(VerdictHeld, reasonAdmitted)
	default:
		return false
	}
	switch {
	case s.gap:
		// It was told. Who asks hears it again if that says more than the first time.
		if p.BTH.AckReq && s.tellsAgain() {
			s.responses.nak(s.psn, wire.NAKPSNSequenceError)
		}
	case x.gap.Lost(now, x.buffer.Len()):
		s.tellGap()
	}
	return true
}

// tellGap reports the gap at the expected PSN.
func (s *responder) tellGap() {
	if s.gap || s.State() == StateErr {
		return
	}
	s.count.Inc(counter.OutOfSequence)
	s.count.Inc(counter.SentSeqNAK)
	s.gap, s.refused = true, false
	s.responses.nak(s.psn, wire.NAKPSNSequenceError)
}

// tellsAgain reports whether a peer that asks hears of the gap, of which it was told once, rather
// than that all before it has come. Others are told once (IBA 9.7.5.2).
func (s *responder) tellsAgain() bool {
	return s.early != nil && s.early.bitmaps && s.gap && !s.refused
}

// nextEarly returns the request that is expected now, nil when it has not come. What
// waits behind it then makes the next gap.
func (s *responder) nextEarly(now Time) *wire.Packet {
	x := s.early
	if x == nil {
		return nil
	}
	x.gap.Close()
	if x.buffer.Len() == 0 {
		return nil
	}
	x.buffer.Advance(s.psn)
	if p := x.buffer.Take(s.psn); p != nil {
		return p
	}
	if x.buffer.Len() > 0 && x.gap.Lost(now, x.buffer.Len()) {
		s.tellGap()
	}
	return nil
}

// putGapNAK tells what is expected, and what waits behind it if the peer understands
// that. When the gap has closed meanwhile it is an ordinary acknowledge.
func (s *responder) putGapNAK(frame []byte) int {
	x := s.early
	if !s.gap {
		return s.putAck(s.psn.Sub(1), s.credits(), s.msn, frame)
	}
	if !x.bitmaps {
		return s.putAck(s.psn, wire.NAKPSNSequenceError, s.msn, frame)
	}
	b := frame[s.path.Len():]
	spec := s.putBTH(b, &wire.BTH{Opcode: wire.SelectiveAck, PSN: s.psn}, 0)
	wire.AETH{Syndrome: wire.NAKPSNSequenceError, MSN: s.msn}.
		Put(b[spec.Offsets[wire.HeaderAETH]:])
	headers := wire.BTHLen + int(spec.HeaderLen)
	x.buffer.Advance(s.psn)
	x.buffer.Bitmap(s.psn, b[headers:][:wire.SelectiveBits/8])
	return s.seal(&s.path, frame, headers, wire.SelectiveBits/8)
}
