package perftest_test

import (
	"errors"
	"math"
	"testing"

	"xroce/engine/oob/perftest"
)

// TestReportCheck: a result has numbers that can be compared; a peak may be missing.
func TestReportCheck(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		for _, r := range []perftest.Report{{Average: v}, {MsgRate: v}} {
			if err := r.Check(); !errors.Is(err, perftest.ErrMessage) {
				t.Errorf("%+v: %v", r, err)
			}
		}
		r := perftest.Report{Peak: v, Average: 2, MsgRate: 3}
		if err := r.Check(); err != nil || r != (perftest.Report{Average: 2, MsgRate: 3}) {
			t.Errorf("a peak of %g: %+v, %v", v, r, err)
		}
	}
	r := perftest.Report{Peak: 4, Average: 2, MsgRate: 3}
	if err := r.Check(); err != nil || r.Peak != 4 {
		t.Errorf("%+v: %v", r, err)
	}
}
