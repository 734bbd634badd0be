package counter

import (
	"regexp"
	"testing"
)

func TestEveryCounterIsDeclaredOnce(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	seen := map[string]ID{}
	for id := range Count {
		s := id.Spec()
		if !name.MatchString(s.Name) || s.Unit == "" || s.Help == "" {
			t.Errorf("counter %d is declared as %+v", id, s)
		}
		if other, dup := seen[s.Name]; dup {
			t.Errorf("counters %d and %d share the name %s", id, other, s.Name)
		}
		seen[s.Name] = id
	}
}

func TestMergeAddsEach(t *testing.T) {
	var a, b Set
	a.Inc(SentPkts)
	b.Add(SentPkts, 4)
	b.Inc(DropAfterGap)
	a.Merge(&b)
	if a[SentPkts] != 5 || a[DropAfterGap] != 1 || a[RcvdPkts] != 0 {
		t.Errorf("merged set is %v", a)
	}
}
