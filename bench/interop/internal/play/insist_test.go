package play

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/softroce"
)

// A script is what comes of each try of a case; more tries than that are a fault.
type script struct {
	t        *testing.T
	outcomes []cases.Outcome
	told     []string // of tries that were not the last
}

func (s *script) try() cases.Outcome {
	s.t.Helper()
	if len(s.outcomes) == 0 {
		s.t.Fatal("it was tried once too often")
	}
	o := s.outcomes[0]
	s.outcomes = s.outcomes[1:]
	return o
}

func (s *script) again(o cases.Outcome) { s.told = append(s.told, o.Line()) }

// A fakeHost is a host that lives, or does not until it is booted anew.
type fakeHost struct {
	err   error
	boots int
}

func (h *fakeHost) Check(context.Context) error { return h.err }

func (h *fakeHost) Reboot(context.Context) error {
	h.boots++
	h.err = nil
	return nil
}

func TestInsist(t *testing.T) {
	passed := cases.Outcome{Verdict: cases.Passed}
	late := cases.Outcome{Verdict: cases.Failed, Reason: "not done in time", Late: true}
	wrong := cases.Outcome{Verdict: cases.Failed, Reason: "status 1"}
	damaged := cases.Outcome{Verdict: cases.Failed, Reason: "byte 7 is wrong", Damaged: true}
	skipped := cases.Outcome{Verdict: cases.Skipped, Reason: "they cannot"}
	for name, c := range map[string]struct {
		outcomes []cases.Outcome
		want     cases.Verdict
		tries    int
	}{
		"passes":              {[]cases.Outcome{passed}, cases.Passed, 0},
		"skips":               {[]cases.Outcome{skipped}, cases.Skipped, 0},
		"is late":             {[]cases.Outcome{late, passed}, cases.Passed, 2},
		"is late twice":       {[]cases.Outcome{late, late, passed}, cases.Passed, 3},
		"is always late":      {[]cases.Outcome{late, late, late, late, late}, cases.Failed, 5},
		"fails":               {[]cases.Outcome{wrong, passed}, cases.Passed, 2},
		"always fails":        {[]cases.Outcome{wrong, wrong}, cases.Failed, 2},
		"is damaged":          {[]cases.Outcome{damaged}, cases.Failed, 0},
		"is late, then bad":   {[]cases.Outcome{late, damaged}, cases.Failed, 2},
		"fails, then is late": {[]cases.Outcome{wrong, late, passed}, cases.Passed, 3},
	} {
		s := &script{t: t, outcomes: c.outcomes}
		o, err := (&Player{Again: s.again}).insist(t.Context(), s.try, &fakeHost{})
		if o.Verdict != c.want || o.Tries != c.tries || err != nil {
			t.Errorf("%s: %q, %v", name, o.Line(), err)
		}
		if len(s.outcomes) > 0 {
			t.Errorf("%s: %d tries were left out", name, len(s.outcomes))
		}
		if want := max(1, c.tries) - 1; len(s.told) != want {
			t.Errorf("%s: told %q, want %d", name, s.told, want)
		}
		if c.tries > 1 && !strings.Contains(o.Line(), c.outcomes[0].Reason) {
			t.Errorf("%s: %q does not say why it was tried again", name, o.Line())
		}
	}
}

// TestInsistOnNothing: there is no second try without a host, or when the run is to end.
func TestInsistOnNothing(t *testing.T) {
	late := cases.Outcome{Verdict: cases.Failed, Reason: "not done in time", Late: true}
	s := &script{t: t, outcomes: []cases.Outcome{late}}
	_, err := (&Player{Again: s.again, Reboots: 1}).insist(t.Context(), s.try,
		&fakeHost{}, &fakeHost{err: softroce.ErrGone})
	if !errors.Is(err, softroce.ErrGone) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	terminated := errors.New("terminated")
	cancel(terminated)
	s = &script{t: t, outcomes: []cases.Outcome{late}}
	_, err = (&Player{Again: s.again}).insist(ctx, s.try, &fakeHost{})
	if !errors.Is(err, terminated) {
		t.Error(err)
	}
	if len(s.told) > 0 {
		t.Errorf("told %q", s.told)
	}
}

// TestInsistAfterPanic: the VM whose kernel panicked is booted anew as often as the run may, the
// case is tried again, and all of that is told. Wrong data is not excused by it.
func TestInsistAfterPanic(t *testing.T) {
	const last = "Kernel panic - not syncing"
	panicked := fmt.Errorf("%w: %w: %s", softroce.ErrGone, softroce.ErrPanic, last)
	wrong := cases.Outcome{Verdict: cases.Failed, Reason: "status -1"}
	passed := cases.Outcome{Verdict: cases.Passed}
	damaged := cases.Outcome{Verdict: cases.Failed, Reason: "byte 7 is wrong", Damaged: true}
	for name, c := range map[string]struct {
		outcomes []cases.Outcome
		reboots  int
		gone     bool
		want     cases.Verdict
		boots    int
	}{
		"may not":     {[]cases.Outcome{wrong}, 0, true, cases.Failed, 0},
		"may":         {[]cases.Outcome{wrong, passed}, 1, false, cases.Passed, 1},
		"then fails":  {[]cases.Outcome{wrong, wrong}, 2, false, cases.Failed, 1},
		"and damaged": {[]cases.Outcome{damaged}, 1, false, cases.Failed, 1},
	} {
		s := &script{t: t, outcomes: c.outcomes}
		p := &Player{Again: s.again, Reboots: c.reboots}
		h := &fakeHost{err: panicked}
		o, err := p.insist(t.Context(), s.try, &fakeHost{}, h)
		if errors.Is(err, softroce.ErrPanic) != c.gone || (err != nil) != c.gone ||
			o.Verdict != c.want || h.boots != c.boots || o.Panicked != c.boots ||
			p.Reboots != c.reboots-c.boots || len(s.outcomes) > 0 {
			t.Errorf("%s: %+v, %v; %d boots, %d left", name, o, err, h.boots, p.Reboots)
		}
		for _, told := range s.told {
			if !strings.Contains(told, "the kernel of a VM panicked: status -1") ||
				!strings.Contains(told, last) {
				t.Errorf("%s: told %q", name, told)
			}
		}
	}
	// It panics each time: the budget is of the run.
	s := &script{t: t, outcomes: []cases.Outcome{wrong, wrong, wrong}}
	p, h := &Player{Again: s.again, Reboots: 2}, &fakeHost{}
	o, err := p.insist(t.Context(), func() cases.Outcome { h.err = panicked; return s.try() }, h)
	if !errors.Is(err, softroce.ErrPanic) || o.Panicked != 2 || h.boots != 2 || o.Tries != 3 {
		t.Errorf("%+v, %v, %d boots", o, err, h.boots)
	}
}

func TestIsLate(t *testing.T) {
	for output, want := range map[string]bool{
		"xroce: the peer does not answer: transport retry counter exceeded": true,
		"Failed status transport retry counter exceeded (12) for wr_id 2":   true,
		"no neighbour answers for this address":                             true,
		"rping: event RDMA_CM_EVENT_ADDR_ERROR, error -110":                 true,
		"invalid data in page 3":                                            false,
		"":                                                                  false,
	} {
		o := cases.Outcome{Reason: "client ended with status 1", Output: output}
		if isLate(t.Context(), o) != want {
			t.Errorf("%q", output)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !isLate(ctx, cases.Outcome{}) {
		t.Error("the limit of a case was over")
	}
}
