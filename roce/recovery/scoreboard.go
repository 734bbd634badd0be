package recovery

import (
	mathbits "math/bits"

	"xroce/roce/wire"
)

// A Scoreboard is what a sender knows of the PSNs from the oldest unacknowledged
// one on: which of them the peer holds, and which were lost.
//
//	cumAcked            recoveryPoint        highest sent
//	   |  sacked, lost, on the way  |  sent once      |
//
// Some PSNs have responses with data, one packet a PSN, as those of a READ. For these
// it is noted which of the data was requested again.
type Scoreboard struct {
	reorder bool // packets may overtake each other

	cumAcked      wire.PSN // the oldest unacknowledged PSN
	sacked        Set      // what the peer holds behind it
	requested     Set      // data that is missing here and was requested again
	retransmitted Set      // what was sent again since all was last taken for lost

	// Everything before executed was executed by the peer, though data of it may be
	// missing here; from cumAcked up to reported there are requests that the peer said
	// are missing there. Neither lies before cumAcked.
	executed, reported wire.PSN

	// A repetition goes up to recoveryPoint. What is sent from roundHigh on was not
	// sent yet when it began: when its acknowledge comes and data of the repetition
	// has not, that was lost again.
	recoveryPoint, roundHigh wire.PSN
	overtakes                int // responses behind a gap since its data was last requested

	// Transmissions are numbered, repetitions too, modulo 2^32.
	lastTx      uint32       // the number of the last
	deliveredTx uint32       // the latest that may have arrived
	certainTx   uint32       // the latest that is known to have
	txOf        [Span]uint32 // the number under which a PSN was last sent
}

// NewScoreboard returns the scoreboard of a connection that begins at PSN 0; see
// Restart.
func NewScoreboard(reorder bool) Scoreboard { return Scoreboard{reorder: reorder} }

// Restart begins a connection at a PSN.
func (s *Scoreboard) Restart(psn wire.PSN) {
	s.ForgetSacked()
	s.cumAcked, s.executed, s.reported = psn, psn, psn
	s.recoveryPoint, s.roundHigh = psn, psn
}

// ForgetSacked takes the peer to hold nothing, so it is sent all again.
func (s *Scoreboard) ForgetSacked() { s.sacked = Set{} }

// Unsack takes the peer not to hold one PSN.
func (s *Scoreboard) Unsack(psn wire.PSN) { s.sacked.Remove(psn) }

// Sacked returns what the peer holds. It changes with the scoreboard.
func (s *Scoreboard) Sacked() *Set { return &s.sacked }

// Retransmitted reports whether a PSN was sent again since all was last taken for lost.
func (s *Scoreboard) Retransmitted(psn wire.PSN) bool { return s.retransmitted.Has(psn) }

// Sent follows a packet that left, for the first time or again.
func (s *Scoreboard) Sent(psn wire.PSN, first bool) {
	s.lastTx++
	s.txOf[psn%Span] = s.lastTx
	if s.retransmitted.Remove(psn); !first {
		s.retransmitted.Add(psn)
	}
}

// delivered notes that the peer has what was sent with a PSN. Of what was sent more than
// once it is not known which has arrived (Karn). The PSNs of the responses to a READ were
// never sent: what stands for them is old.
func (s *Scoreboard) delivered(psn wire.PSN) {
	n := s.txOf[psn%Span]
	if n-s.deliveredTx <= s.lastTx-s.deliveredTx {
		s.deliveredTx = n
	}
	if n-s.certainTx <= s.lastTx-s.certainTx && !s.retransmitted.Has(psn) {
		s.certainTx = n
	}
}

// Lost reports whether a PSN that has not arrived was lost, since something that was
// sent after it has. Where packets overtake each other the peer has waited before it
// called its first gap a loss; of others, and of repetitions, it is for the sender to
// judge. What has arrived may be of before, when it was sent twice.
func (s *Scoreboard) Lost(psn wire.PSN) bool { return s.sentBefore(psn, s.deliveredTx) }

// CertainlyLost reports whether something has arrived that was sent after a PSN, which has
// not, and only then.
func (s *Scoreboard) CertainlyLost(psn wire.PSN) bool { return s.sentBefore(psn, s.certainTx) }

// sentBefore reports whether a PSN was last sent so long before a transmission that it does
// not come any more when that has.
func (s *Scoreboard) sentBefore(psn wire.PSN, tx uint32) bool {
	n := s.txOf[psn%Span]
	if s.reorder && (psn != s.cumAcked || s.retransmitted.Has(psn)) {
		n += reorderPackets
	}
	return int32(n-tx) <= 0
}

// MarkLost takes a PSN for lost.
func (s *Scoreboard) MarkLost(psn wire.PSN) {
	s.sacked.Remove(psn)
	s.retransmitted.Remove(psn)
	s.txOf[psn%Span] = s.deliveredTx
}

// MarkAllLost takes everything that was sent and is not known to have arrived for lost.
func (s *Scoreboard) MarkAllLost() {
	s.deliveredTx, s.certainTx, s.retransmitted = s.lastTx, s.lastTx, Set{}
}

// BeginRound makes everything before highSent, which is all that was ever sent, the
// next repetition.
func (s *Scoreboard) BeginRound(highSent wire.PSN) {
	s.recoveryPoint, s.roundHigh, s.overtakes = highSent, highSent, 0
	s.MarkAllLost()
	s.requested = Set{}
}

// ContinueRound notes that part of a round goes again.
func (s *Scoreboard) ContinueRound(highSent wire.PSN) { s.roundHigh = highSent }

// Probe makes one packet a repetition of its own.
func (s *Scoreboard) Probe(psn, highSent wire.PSN) {
	s.MarkLost(psn)
	s.Extend(psn.Add(1))
	s.roundHigh, s.overtakes = highSent, 0
}

// RecoveryPoint returns the PSN behind the repetition under way.
func (s *Scoreboard) RecoveryPoint() wire.PSN { return s.recoveryPoint }

// Limit ends the repetition under way before a PSN.
func (s *Scoreboard) Limit(psn wire.PSN) { s.recoveryPoint = psn }

// Extend lets the repetition under way go up to a PSN at least.
func (s *Scoreboard) Extend(psn wire.PSN) {
	if psn.After(s.recoveryPoint) {
		s.recoveryPoint = psn
	}
}

// Advance forgets what lies before the oldest unacknowledged PSN, which moved.
func (s *Scoreboard) Advance(cumAcked wire.PSN) {
	for n := min(uint32(cumAcked.Sub(uint32(s.cumAcked))), Span); n > 0; n-- {
		p := cumAcked.Sub(n)
		if s.sacked.Has(p) {
			s.sacked.Remove(p)
		} else {
			s.delivered(p)
		}
		s.requested.Remove(p)
	}
	s.cumAcked = cumAcked
	for _, p := range [...]*wire.PSN{&s.executed, &s.reported, &s.recoveryPoint, &s.roundHigh} {
		if !p.After(cumAcked) {
			*p = cumAcked
		}
	}
}

// TakeBitmap notes what the peer holds behind psn, which it does not: bit i of bits,
// counted from the lowest of the first byte, stands for psn + 1 + i. It returns the PSN
// behind the last. highSent is the PSN behind all that was ever sent. A peer that holds
// nothing had no room for what came: then all from psn on is lost, unless it was sent
// again for that already.
func (s *Scoreboard) TakeBitmap(psn, highSent wire.PSN, bits []byte) (top wire.PSN) {
	sent := uint32(highSent.Sub(uint32(s.cumAcked)))
	top = psn.Add(1)
	s.sacked.Remove(psn)
	none := true
	for i, b := range bits {
		for ; b != 0; b &= b - 1 {
			none = false
			p := psn.Add(uint32(1 + 8*i + mathbits.TrailingZeros8(b)))
			if d := uint32(p.Sub(uint32(s.cumAcked))); d < sent && d < Span {
				if !s.sacked.Has(p) {
					s.sacked.Add(p)
					s.delivered(p)
				}
				top = p.Add(1)
			}
		}
	}
	if none && !s.recoveryPoint.After(psn) {
		s.MarkAllLost()
		top = highSent
	}
	return top
}
