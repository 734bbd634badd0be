package verbs_test

import (
	"errors"
	"strings"
	"testing"

	"xroce/roce/verbs"
)

// TestCompletionErr: success is no error, and any other status is one that says what
// failed, where and why.
func TestCompletionErr(t *testing.T) {
	if err := (&verbs.Completion{Opcode: verbs.WCRead, QPN: 3}).Err(); err != nil {
		t.Errorf("success: %v", err)
	}
	for s := verbs.StatusLocLenErr; s.String() != "unknown" || s < verbs.StatusGeneralErr; s++ {
		wc := verbs.Completion{WRID: 7, Status: s, Opcode: verbs.WCRead, QPN: 0x1234}
		err := wc.Err()
		var failed *verbs.WorkError
		if !errors.As(err, &failed) || !errors.Is(err, verbs.ErrFailed) {
			t.Fatalf("%s: %v", s, err)
		}
		if want := (verbs.WorkError{7, s, verbs.WCRead, 0x1234, 0}); *failed != want {
			t.Errorf("%s: %+v", s, *failed)
		}
		for _, part := range []string{"RDMA_READ", "0x001234", s.String()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
}

// TestLargeLost: that large packets alone were lost is said, and can be asked for.
func TestLargeLost(t *testing.T) {
	wc := verbs.Completion{Status: verbs.StatusRetryExcErr}
	err := wc.Err()
	if errors.Is(err, verbs.ErrLargeLost) || strings.Contains(err.Error(), "large") {
		t.Errorf("nothing is known, and it says: %v", err)
	}
	wc.VendorErr = verbs.VendorLargeLost
	err = wc.Err()
	if !errors.Is(err, verbs.ErrLargeLost) || !errors.Is(err, verbs.ErrFailed) ||
		!strings.Contains(err.Error(), "answers small packets, so large ones alone were lost") {
		t.Errorf("large packets were lost, and it says: %v", err)
	}
}
