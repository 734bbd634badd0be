package recovery_test

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/recovery"
	"xroce/roce/wire"
)

// bitmap is what a peer that awaits psn says of the PSNs it holds behind it.
func bitmap(psn wire.PSN, kept ...wire.PSN) []byte {
	b := make([]byte, wire.SelectiveBits/8)
	for _, p := range kept {
		i := uint32(p.Sub(uint32(psn))) - 1
		b[i/8] |= 1 << (i % 8)
	}
	return b
}

// sendAll sends n packets for the first time from a PSN on and returns the board.
func sendAll(from wire.PSN, n uint32) *recovery.Scoreboard {
	s := recovery.NewScoreboard(false)
	s.Restart(from)
	for i := range n {
		s.Sent(from.Add(i), true)
	}
	return &s
}

// TestScoreboardLost: of what was sent, that is lost which something sent later has
// overtaken; a repetition is lost again when something sent after it arrives.
func TestScoreboardLost(t *testing.T) {
	const base = wire.PSN(0xfffffe) // goes over the end of the PSN space
	s := sendAll(base, 6)
	top := s.TakeBitmap(base.Add(1), base.Add(6), bitmap(base.Add(1), base.Add(3)))
	if top != base.Add(4) {
		t.Fatalf("top %#x", top)
	}
	for i, want := range []bool{true, true, true, true, false, false} {
		if got := s.Lost(base.Add(uint32(i))); got != want {
			t.Errorf("packet %d is lost: %v", i, got)
		}
	}
	s.Sent(base.Add(1), false) // again: now after all that has arrived
	if s.Lost(base.Add(1)) || !s.Retransmitted(base.Add(1)) {
		t.Error("what has just been sent again is lost")
	}
	s.Sent(base.Add(2), false)
	s.TakeBitmap(base.Add(1), base.Add(6), bitmap(base.Add(1), base.Add(2), base.Add(3)))
	if !s.Lost(base.Add(1)) {
		t.Error("what was sent after the repetition has arrived, so that was lost")
	}
	if s.CertainlyLost(base.Add(1)) {
		t.Error("what has arrived may have been sent before the repetition")
	}
	s.Sent(base.Add(6), true)
	s.TakeBitmap(base.Add(1), base.Add(7), bitmap(base.Add(1), base.Add(6)))
	if !s.CertainlyLost(base.Add(1)) {
		t.Error("what has arrived was sent after the repetition, and once")
	}
}

// TestScoreboardReorder: where packets overtake each other, 64 must have done so,
// except for the first gap, of which the peer waited before it told.
func TestScoreboardReorder(t *testing.T) {
	s := recovery.NewScoreboard(true)
	s.Restart(0)
	for i := range uint32(100) {
		s.Sent(wire.PSN(i), true)
	}
	s.TakeBitmap(0, 100, bitmap(0, 70))
	for psn, want := range map[wire.PSN]bool{0: true, 1: true, 6: true, 7: false, 69: false} {
		if got := s.Lost(psn); got != want {
			t.Errorf("%d is lost: %v", psn, got)
		}
	}
	s.Sent(0, false)
	if s.Lost(0) {
		t.Error("a repetition is lost at once")
	}
}

// TestScoreboardHoldsNothing: a peer that holds nothing had no room for what came, so
// everything goes again; once, not for each such answer.
func TestScoreboardHoldsNothing(t *testing.T) {
	s := sendAll(10, 5)
	if top := s.TakeBitmap(10, 15, bitmap(10)); top != 15 || !s.Lost(14) {
		t.Fatalf("top %d, the last is lost: %v", top, s.Lost(14))
	}
	s.RepeatUpTo(15, 15)
	s.Sent(10, false)
	if top := s.TakeBitmap(10, 15, bitmap(10)); top != 11 || s.Lost(10) {
		t.Fatalf("the same answer again: top %d", top)
	}
}

// TestScoreboardLies: what a peer claims to hold that was never sent, or lies before
// what it answered, changes nothing.
func TestScoreboardLies(t *testing.T) {
	s := sendAll(100, 3)
	kept := make([]wire.PSN, 0, wire.SelectiveBits)
	for i := range uint32(wire.SelectiveBits) {
		kept = append(kept, wire.PSN(100).Add(1+i))
	}
	if top := s.TakeBitmap(100, 103, bitmap(100, kept...)); top != 103 {
		t.Fatalf("top %d", top)
	}
	for p := wire.PSN(103); p != 103+recovery.Span-3; p++ {
		if s.Sacked().Has(p) {
			t.Fatalf("%d counts as held", p)
		}
	}
	if top := s.TakeBitmap(90, 103, bitmap(90, 91, 92)); top != 91 {
		t.Fatalf("news from before: top %d", top)
	}
}

// TestScoreboardSkip: what a repetition leaves out, by kind of request.
func TestScoreboardSkip(t *testing.T) {
	s := sendAll(0, 8)
	s.TakeBitmap(1, 8, bitmap(1, 3, 5))
	for _, tt := range []struct {
		name       string
		psn, last  wire.PSN
		data, kept bool
		want       wire.PSN
	}{
		{"lost", 1, 2, false, false, 1},
		{"held by the peer", 3, 4, false, false, 4},
		{"on its way", 6, 7, false, false, 7},
		{"data that is here", 2, 4, true, true, 3},
		{"data that is missing", 2, 4, true, false, 2},
		{"data whose request the peer holds", 3, 4, true, false, 5},
	} {
		if got := s.Skip(tt.psn, tt.last, tt.data, tt.kept); got != tt.want {
			t.Errorf("%s: goes on at %d, not %d", tt.name, got, tt.want)
		}
	}
	s.Request(4, 6)
	s.Sent(4, false)
	if got := s.Skip(4, 6, true, false); got != 7 {
		t.Errorf("data that was requested again: goes on at %d", got)
	}
	s.CancelRequests(7)
	if s.Requested(4) || s.Requested(5) {
		t.Error("what was lost on its way counts as requested")
	}
}

// TestScoreboardNeverSkipsAll: whatever a peer says and in whatever order, the oldest
// PSN without an answer is never left out for good: once everything is taken for lost
// and forgotten it goes again.
func TestScoreboardNeverSkipsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := wire.PSN(rapid.SampledFrom([]uint32{0, 0xffffc0}).Draw(t, "base"))
		s := recovery.NewScoreboard(rapid.Bool().Draw(t, "reorder"))
		s.Restart(base)
		una, sent := uint32(0), uint32(0)
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				if sent-una < recovery.Span {
					s.Sent(base.Add(sent), true)
					sent++
				}
			},
			"again": func(t *rapid.T) {
				if una != sent {
					s.Sent(base.Add(rapid.Uint32Range(una, sent-1).Draw(t, "psn")), false)
				}
			},
			"bitmap": func(t *rapid.T) {
				bits := rapid.SliceOfN(rapid.Byte(), wire.SelectiveBits/8,
					wire.SelectiveBits/8).Draw(t, "bits")
				at := base.Add(rapid.Uint32Range(0, sent+4).Draw(t, "psn"))
				s.TakeBitmap(at, base.Add(sent), bits)
			},
			"answer": func(t *rapid.T) {
				una = rapid.Uint32Range(una, sent).Draw(t, "una")
				s.Advance(base.Add(una))
			},
			"overtaken": func(t *rapid.T) {
				s.Overtaken(base.Add(rapid.Uint32Range(una, sent).Draw(t, "psn")))
				s.RepeatData(base.Add(sent))
			},
		})
		s.Unsack(base.Add(una))
		s.BeginRound(base.Add(sent))
		s.Restart(base.Add(una))
		if psn := base.Add(una); una != sent && s.Skip(psn, psn, false, false) != psn {
			t.Fatalf("%#x is left out", psn)
		}
	})
}
