package xsk

import "testing"

// TestLevel: how many chunks the kernel is to have, by what was found waiting.
func TestLevel(t *testing.T) {
	for name, tt := range map[string]struct {
		now, most, lent, waiting uint32
		want                     uint32
	}{
		"nothing waits":            {16, 100, 16, 0, 16},
		"half of it":               {16, 100, 16, 8, 16},
		"more than half":           {16, 100, 16, 9, 64},
		"and there are not enough": {32, 100, 32, 17, 100},
		"all that it had":          {16, 1000, 16, 16, 1000},
		"all but what is kept":     {16, 1000, 10, 10, 1000},
		"a little, which was all":  {16, 1000, 4, 4, 16},
		"there are no more":        {100, 100, 100, 100, 100},
	} {
		l := level{now: tt.now, most: tt.most, lent: tt.lent}
		if rose := l.found(tt.waiting); l.now != tt.want || rose != (tt.want > tt.now) {
			t.Errorf("%s: %d, rose %t, want %d", name, l.now, rose, tt.want)
		}
	}
	var l level
	l.init(3, 10)
	if l.room() != 3 || !l.low() || len(l.spare) != 10 || l.spare[9] != 0 {
		t.Errorf("at first %+v", l)
	}
	l.lent = 3
	if l.raise(2); l.now != 3 || l.room() != 0 || l.low() {
		t.Errorf("it fell: %+v", l)
	}
	if l.raise(1 << 31); l.now != 10 || l.room() != 7 {
		t.Errorf("after asking for all %+v", l)
	}
}
