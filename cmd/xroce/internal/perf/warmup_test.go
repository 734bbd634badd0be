package perf

import (
	"errors"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
)

// TestWarmUpUnanswered: a peer that is connected and whose queue pair answers nothing is not
// waited for for ever, also before the test and without an ACK timeout.
func TestWarmUpUnanswered(t *testing.T) {
	c := brief(Test{Verb: Write})
	c.WarmUp, c.Timeout = true, 0
	p := newPair(t, c)
	p.ends[0].hurry.silence, p.ends[1].hurry.silence = time.Second, time.Second
	if err := p.network.SetFaults(sim.Faults{Drop: 1}); err != nil {
		t.Fatal(err)
	}
	errs := p.run(t)
	p.wantsNoResult(t, errs)
	if errs[0] == nil || errors.Is(errs[0], roce.ErrFailed) ||
		!strings.Contains(errs[0].Error(), "nothing happened") {
		t.Errorf("the client: %v", errs[0])
	}
}
