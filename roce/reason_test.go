package roce

import "testing"

// TestReasonNames: every step has a name, and unknown ones print too.
func TestReasonNames(t *testing.T) {
	if got := reasonRKey.String(); got != "rkey" {
		t.Errorf("got %q, want rkey", got)
	}
	if got := Reason(99).String(); got != "unknown" {
		t.Errorf("got %q, want unknown", got)
	}
	for s := range reasonCount {
		if s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
	}
}
