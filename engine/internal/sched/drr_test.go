package sched

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// A talker is an object of a test with what it wants to send.
type talker struct {
	entity  Entity[talker]
	packet  int  // bytes of each packet
	backlog int  // packets
	urgent  bool // what it sends is urgent
	sent    int  // bytes since the last look
}

// newTalker makes one with so many packets of a size.
func newTalker(packet, backlog int, urgent bool) *talker {
	who := &talker{packet: packet, backlog: backlog, urgent: urgent}
	who.entity.Init(who)
	return who
}

// A floor lets talkers send as queue.send does, with so many frames.
type floor struct {
	drr     DRR[talker]
	talkers []*talker
}

// add lets one more talk.
func (f *floor) add(who *talker) *talker {
	f.talkers = append(f.talkers, who)
	return who
}

func (f *floor) enqueue(who *talker) { f.drr.Enqueue(&who.entity, who.urgent) }

// burst sends at most so many packets and returns how many it did.
func (f *floor) burst(t *rapid.T, frames int) (used int) {
	for used < frames {
		who := f.drr.Dequeue()
		if who == nil {
			return used
		}
		if who.entity.Queued() {
			t.Fatal("dequeued an entity that is still on a list")
		}
		for used < frames && who.backlog > 0 && who.entity.MaySend(who.urgent) {
			who.backlog--
			who.sent += who.packet
			who.entity.Charge(who.packet)
			used++
		}
		if who.backlog > 0 {
			f.enqueue(who)
		}
	}
	return used
}

// longestFrame is that of the largest path MTU, and more.
const longestFrame = 4500

// burst is how many frames queue.send has at most.
const burst = 64

// TestDRRIsFair gives entities work at random and compares what those that always
// had some could send: the same, but for a quantum.
func TestDRRIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f floor
		var greedy, others []*talker
		for i := range rapid.IntRange(2, 8).Draw(t, "entities") {
			packet := rapid.IntRange(60, longestFrame).Draw(t, "packet")
			who := f.add(newTalker(packet, 0, rapid.Bool().Draw(t, "urgent")))
			if i < 2 || rapid.Bool().Draw(t, "greedy") {
				who.backlog = 1 << 30
				greedy = append(greedy, who)
				f.enqueue(who)
			} else {
				others = append(others, who)
			}
		}
		for range 200 {
			if len(others) > 0 {
				who := rapid.SampledFrom(others).Draw(t, "who")
				who.backlog += rapid.IntRange(0, 50).Draw(t, "more")
				who.urgent = rapid.Bool().Draw(t, "urgent")
				f.enqueue(who)
			}
			frames := rapid.IntRange(1, burst).Draw(t, "frames")
			if used := f.burst(t, frames); used != frames {
				t.Fatalf("%d of %d frames used", used, frames)
			}
		}
		for _, who := range greedy[1:] {
			// Each may be a quantum ahead, another in advance, and one packet.
			if d := who.sent - greedy[0].sent; max(d, -d) > 2*Quantum+longestFrame {
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

// TestDRRWait bounds how much others may send while an entity waits: with infinite
// work each one quantum, and what is urgent in advance of the next.
func TestDRRWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f floor
		others := rapid.IntRange(1, 8).Draw(t, "others")
		for range others {
			packet := rapid.IntRange(60, longestFrame).Draw(t, "packet")
			f.enqueue(f.add(newTalker(packet, 1<<30, rapid.Bool().Draw(t, "urgent"))))
		}
		f.burst(t, rapid.IntRange(1, 2000).Draw(t, "before"))
		for _, who := range f.talkers {
			who.sent = 0
		}
		late := f.add(newTalker(100, 1, false))
		f.drr.Enqueue(&late.entity, rapid.Bool().Draw(t, "late is urgent"))
		for late.backlog > 0 {
			f.burst(t, 1)
			for _, who := range f.talkers {
				if who.sent > 2*Quantum+longestFrame {
					t.Fatalf("another sent %d bytes meanwhile", who.sent)
				}
			}
		}
	})
}

// TestUrgentComesFirst has entities wait for each reason to be before or behind
// another.
func TestUrgentComesFirst(t *testing.T) {
	var l DRR[talker]
	ask, tell := newTalker(0, 0, false), newTalker(0, 0, false)
	spent, broke := newTalker(0, 0, false), newTalker(0, 0, false)
	l.round = 1
	// The quantum of spent is used up; broke has sent as much in advance as well.
	spent.entity.round, spent.entity.deficit = 1, 0
	broke.entity.round, broke.entity.deficit = 1, -Quantum
	enqueue := func(who *talker, urgent bool) {
		l.Enqueue(&who.entity, urgent)
		l.Enqueue(&who.entity, false)
	}
	order := func(want ...*talker) {
		t.Helper()
		for i, who := range want {
			if got := l.Dequeue(); got != who {
				t.Fatalf("number %d is not who it should be", i)
			}
		}
		if !l.Empty() || l.Dequeue() != nil {
			t.Fatal("somebody is left")
		}
	}
	enqueue(ask, false)
	enqueue(broke, true)
	enqueue(spent, true)
	enqueue(tell, true)
	order(spent, tell, ask, broke)

	// In the next round: one that was not urgent becomes so meanwhile.
	for _, who := range []*talker{ask, tell, spent, broke} {
		who.entity.deficit = 0
		l.Enqueue(&who.entity, false)
	}
	l.Enqueue(&spent.entity, true)
	l.Remove(&tell.entity)
	l.Remove(&tell.entity)
	order(spent, ask, broke)
}

// BenchmarkDRR measures an entity that is served, from Dequeue to Enqueue, among so
// many.
func BenchmarkDRR(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			var l DRR[talker]
			for range n {
				l.Enqueue(&newTalker(0, 0, false).entity, false)
			}
			b.ReportAllocs()
			for range b.N {
				who := l.Dequeue()
				who.entity.Charge(Quantum)
				l.Enqueue(&who.entity, false)
			}
		})
	}
}
