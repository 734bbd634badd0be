package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// member is what the lists of these tests have.
type member struct {
	name int
	link Link[member]
}

// walk returns the members of a list, by their links.
func walk(l *List[member]) (names []int) {
	for m := l.First(); m != nil; m = m.link.Next() {
		names = append(names, m.name)
	}
	return names
}

// TestListModel has members join and leave two lists at random, and compares them with slices.
func TestListModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	members := make([]*member, 12)
	for i := range members {
		members[i] = &member{name: i}
	}
	var lists [2]List[member]
	var models [2][]int
	in := func(name int) bool {
		return slices.Contains(models[0], name) || slices.Contains(models[1], name)
	}
	for step := range 20_000 {
		m, which := members[r.IntN(len(members))], r.IntN(2)
		l, model := &lists[which], &models[which]
		switch r.IntN(5) {
		case 0, 1:
			if !in(m.name) {
				*model = append(*model, m.name)
			}
			l.Push(&m.link, m)
		case 2, 3:
			at := slices.Index(*model, m.name)
			if at >= 0 {
				*model = slices.Delete(*model, at, at+1)
			}
			if got := l.Remove(&m.link); got != (at >= 0) {
				t.Fatalf("step %d: %d was in the list: %t", step, m.name, got)
			}
		default:
			got := l.Pop()
			if got == nil != (len(*model) == 0) || got != nil && got.name != (*model)[0] {
				t.Fatalf("step %d: the first of %v is %v", step, *model, got)
			}
			*model = (*model)[min(1, len(*model)):]
		}
		if m.link.In() != in(m.name) {
			t.Fatalf("step %d: %d is in a list: %t", step, m.name, m.link.In())
		}
		for i := range lists {
			if got := walk(&lists[i]); !slices.Equal(got, models[i]) ||
				lists[i].Len() != len(models[i]) {
				t.Fatalf("step %d: list %d has %d, %v, want %v", step, i, lists[i].Len(), got,
					models[i])
			}
		}
	}
}

// TestListAllocatesNothing has a member join and leave.
func TestListAllocatesNothing(t *testing.T) {
	var l List[member]
	a, b := &member{}, &member{}
	if n := testing.AllocsPerRun(100, func() {
		l.Push(&a.link, a)
		l.Push(&b.link, b)
		l.Remove(&a.link)
		l.Pop()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
