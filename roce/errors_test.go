package roce_test

import (
	"errors"
	"strings"
	"testing"
)

// wantErr wants an error of a kind whose text has all the words.
func wantErr(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
