package xsk

import "testing"

// TestFillTarget: how many chunks the kernel is to have, by what was found waiting.
func TestFillTarget(t *testing.T) {
	for name, tt := range map[string]struct {
		target, total, withKernel, waiting uint32
		want                               uint32
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
		f := fillTarget{target: tt.target, total: tt.total, withKernel: tt.withKernel}
		rose := f.adapt(tt.waiting)
		if f.target != tt.want || rose != (tt.want > tt.target) {
			t.Errorf("%s: %d, rose %t, want %d", name, f.target, rose, tt.want)
		}
	}
	var f fillTarget
	f.init(3, 10)
	if f.missing() != 3 || !f.refillable() || len(f.spare) != 10 || f.spare[9] != 0 {
		t.Errorf("at first %+v", f)
	}
	f.withKernel = 3
	if f.raiseTo(2); f.target != 3 || f.missing() != 0 || f.refillable() {
		t.Errorf("it fell: %+v", f)
	}
	if f.raiseTo(1 << 31); f.target != 10 || f.missing() != 7 {
		t.Errorf("after asking for all %+v", f)
	}
}
