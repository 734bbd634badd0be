package roce

import "testing"

// TestStepNames: every step has a name, and unknown ones print too.
func TestStepNames(t *testing.T) {
	if got := stepRKey.String(); got != "rkey" {
		t.Errorf("got %q, want rkey", got)
	}
	if got := Step(99).String(); got != "unknown" {
		t.Errorf("got %q, want unknown", got)
	}
	for s := range stepCount {
		if s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
	}
}
