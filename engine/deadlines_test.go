package engine

import (
	"math/rand/v2"
	"testing"

	"xroce/roce"
)

// TestDeadlinesAgainstModel arms, removes and pops at random and compares with
// a map.
func TestDeadlinesAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	qps := make([]*QP, 100)
	for i := range qps {
		qps[i] = &QP{}
	}
	var d deadlines
	model := map[*QP]roce.Time{}
	now := roce.Time(0)
	for range 20000 {
		qp := qps[rng.IntN(len(qps))]
		switch rng.IntN(4) {
		case 0, 1:
			at := now + roce.Time(rng.IntN(1000))
			d.arm(qp, at)
			if old, in := model[qp]; !in || at < old {
				model[qp] = at
			}
		case 2:
			d.remove(qp)
			delete(model, qp)
		case 3:
			now += roce.Time(rng.IntN(20))
			for got := d.pop(now); got != nil; got = d.pop(now) {
				at, in := model[got]
				if !in || at > now {
					t.Fatalf("popped at %d what was armed for %d (%t)", now, at, in)
				}
				delete(model, got)
			}
			for _, at := range model {
				if at <= now {
					t.Fatalf("at %d one armed for %d was left", now, at)
				}
			}
		}
		if at, ok := d.next(); ok != (len(model) > 0) {
			t.Fatalf("next is %d, %t with %d armed", at, ok, len(model))
		}
	}
}

func TestReadyListIsFair(t *testing.T) {
	var l readyList
	qps := []*QP{{}, {}, {}, {}}
	for _, qp := range qps {
		l.push(qp)
		l.push(qp)
	}
	l.remove(qps[1])
	l.remove(qps[1])
	qps[3].closed = true
	for _, want := range []*QP{qps[0], qps[2], qps[3]} {
		got := l.pop()
		if got != want {
			t.Fatal("not in the order of their turns")
		}
		l.push(got)
	}
	if l.pop() != qps[0] || l.pop() != qps[2] || !l.empty() {
		t.Error("a closed QP came back, or another did not")
	}
}
