package xsktest

import (
	"os"
	"testing"
)

// NeedRoot skips the test, loudly, when it cannot have network namespaces and
// AF_XDP; with XROCE_ROOT_TESTS=1 it fails instead.
func NeedRoot(t testing.TB) {
	t.Helper()
	if err := rootError(); err != nil {
		if os.Getenv("XROCE_ROOT_TESTS") == "1" {
			t.Fatalf("XROCE_ROOT_TESTS=1, but %v", err)
		}
		t.Skipf("SKIPPED, needs root: %v", err)
	}
}
