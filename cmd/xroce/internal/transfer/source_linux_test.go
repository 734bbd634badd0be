package transfer

import (
	"errors"
	"testing"

	"xroce/engine/sim"
)

// TestFilesLargerThanTheySay: those that the kernel makes while they are read have a size
// of 0. Nothing of one is sent, and nobody hears that it was.
func TestFilesLargerThanTheySay(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	r.file = "/proc/version"
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if !errors.Is(sendErr, ErrChanged) || receiveErr == nil {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}
