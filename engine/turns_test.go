package engine

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// A talker is a QP of a test with what it wants to send.
type talker struct {
	qp      QP
	packet  int  // bytes of each packet
	backlog int  // packets
	answers bool // what it sends are answers
	sent    int  // bytes since the last look
}

// A floor lets talkers take turns as queue.send does, with so many frames.
type floor struct {
	turns   turns
	talkers map[*QP]*talker
}

// burst sends at most so many packets and returns how many it did.
func (f *floor) burst(t *rapid.T, frames int) (used int) {
	for used < frames {
		qp := f.turns.pick()
		if qp == nil {
			return used
		}
		who := f.talkers[qp]
		if qp.waiting || who.qp.closed {
			t.Fatal("picked a QP that still waits, or one that is closed")
		}
		for used < frames && who.backlog > 0 && qp.maySend(who.answers) {
			who.backlog--
			who.sent += who.packet
			qp.credit -= int32(who.packet)
			used++
		}
		if who.backlog > 0 {
			f.turns.push(qp, who.answers)
		}
	}
	return used
}

// longestFrame is that of the largest path MTU, and more.
const longestFrame = 4500

// TestTurnsAreFair gives QPs work at random and compares what those that always
// had some could send: the same, but for what a turn is made of.
func TestTurnsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := floor{talkers: map[*QP]*talker{}}
		var greedy, others []*talker
		for i := range rapid.IntRange(2, 8).Draw(t, "QPs") {
			who := &talker{
				packet:  rapid.IntRange(60, longestFrame).Draw(t, "packet"),
				answers: rapid.Bool().Draw(t, "answers"),
			}
			f.talkers[&who.qp] = who
			if i < 2 || rapid.Bool().Draw(t, "greedy") {
				who.backlog = 1 << 30
				greedy = append(greedy, who)
				f.turns.push(&who.qp, who.answers)
			} else {
				others = append(others, who)
			}
		}
		for range 200 {
			if len(others) > 0 {
				who := rapid.SampledFrom(others).Draw(t, "who")
				who.backlog += rapid.IntRange(0, 50).Draw(t, "more")
				who.answers = rapid.Bool().Draw(t, "answers")
				f.turns.push(&who.qp, who.answers)
			}
			frames := rapid.IntRange(1, burst).Draw(t, "frames")
			if used := f.burst(t, frames); used != frames {
				t.Fatalf("%d of %d frames used", used, frames)
			}
		}
		for _, who := range greedy[1:] {
			// Each may be a turn ahead, on credit of another, and one packet.
			if d := who.sent - greedy[0].sent; max(d, -d) > 2*quantum+longestFrame {
				t.Errorf("one sent %d bytes, another %d", who.sent, greedy[0].sent)
			}
		}
		// What is left of the others' work ends, however greedy the rest is.
		for range 8 * 50 * 200 {
			if left := f.backlog(others); left == 0 {
				return
			}
			f.burst(t, burst)
		}
		t.Error("work is left")
	})
}

func (f *floor) backlog(of []*talker) (n int) {
	for _, who := range of {
		n += who.backlog
	}
	return n
}

// TestTurnWait bounds how much others may send while a QP waits: with infinite
// work each one turn, and what it may answer on credit.
func TestTurnWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := floor{talkers: map[*QP]*talker{}}
		others := rapid.IntRange(1, 8).Draw(t, "others")
		for range others {
			who := &talker{
				packet: rapid.IntRange(60, longestFrame).Draw(t, "packet"), backlog: 1 << 30,
				answers: rapid.Bool().Draw(t, "answers"),
			}
			f.talkers[&who.qp] = who
			f.turns.push(&who.qp, who.answers)
		}
		f.burst(t, rapid.IntRange(1, 2000).Draw(t, "before"))
		for _, who := range f.talkers {
			who.sent = 0
		}
		late := &talker{packet: 100, backlog: 1}
		f.talkers[&late.qp] = late
		f.turns.push(&late.qp, rapid.Bool().Draw(t, "late answers"))
		for late.backlog > 0 {
			f.burst(t, 1)
			for _, who := range f.talkers {
				if who.sent > 2*quantum+longestFrame {
					t.Fatalf("another sent %d bytes meanwhile", who.sent)
				}
			}
		}
	})
}

// TestAnswersComeFirst has QPs wait in turn for each reason to be before or
// behind another.
func TestAnswersComeFirst(t *testing.T) {
	var l turns
	ask, tell, spent, broke := &QP{}, &QP{}, &QP{}, &QP{}
	gone := &QP{closed: true}
	l.round = 1
	// The turn of spent is over; broke has answered on credit as well.
	spent.round, spent.credit = 1, 0
	broke.round, broke.credit = 1, -quantum
	push := func(qp *QP, answering bool) {
		l.push(qp, answering)
		l.push(qp, false)
	}
	order := func(want ...*QP) {
		t.Helper()
		for i, qp := range want {
			if got := l.pick(); got != qp {
				t.Fatalf("turn %d is not whose it should be", i)
			}
		}
		if !l.empty() || l.pick() != nil {
			t.Fatal("somebody is left")
		}
	}
	push(gone, true)
	push(ask, false)
	push(broke, true)
	push(spent, true)
	push(tell, true)
	order(spent, tell, ask, broke)

	// In the next round: one that was to ask has to answer meanwhile.
	for _, qp := range []*QP{ask, tell, spent, broke} {
		qp.credit = 0
		l.push(qp, false)
	}
	l.push(spent, true)
	l.remove(tell)
	l.remove(tell)
	order(spent, ask, broke)
}

// BenchmarkTurns measures a turn of a QP, from pick to push, among so many.
func BenchmarkTurns(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		b.Run(fmt.Sprintf("QPs=%d", n), func(b *testing.B) {
			var l turns
			for range n {
				l.push(&QP{}, false)
			}
			b.ReportAllocs()
			for range b.N {
				qp := l.pick()
				qp.credit -= quantum
				l.push(qp, false)
			}
		})
	}
}
