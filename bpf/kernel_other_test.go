//go:build !linux

package bpf

import (
	"errors"
	"testing"
)

// kernelOracle has no kernel to ask.
func kernelOracle(testing.TB) func(testing.TB, []byte, Verdict, Reason) { return nil }

func TestNotSupported(t *testing.T) {
	if _, err := Attach(1, Options{}); !errors.Is(err, ErrNotSupported) {
		t.Errorf("Attach: %v", err)
	}
	if _, err := Probe(); !errors.Is(err, ErrNotSupported) {
		t.Errorf("Probe: %v", err)
	}
}
