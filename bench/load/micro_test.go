package load

import (
	"testing"

	"xroce/bench/worker"
	"xroce/roce/wire"
)

func TestSealedPacket(t *testing.T) {
	frame, _, err := sealedPacket(64)
	if err != nil {
		t.Fatal(err)
	}
	if len(frame) != 64+RCOverhead {
		t.Errorf("%d bytes, want 64 and %d", len(frame), RCOverhead)
	}
	var p wire.Packet
	if reason := p.Decode(frame, nil); reason != wire.OK || !p.VerifyICRC() {
		t.Errorf("decoded as %v, ICRC right: %v", reason, p.VerifyICRC())
	}
}

func TestMicroSteps(t *testing.T) {
	for _, mode := range []string{"decode", "seal", "crc"} {
		step, err := microStep(worker.Options{Mode: mode, Message: 64})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if !step(3) {
			t.Errorf("%s went wrong", mode)
		}
		if n := testing.AllocsPerRun(10, func() { step(100) }); n != 0 {
			t.Errorf("%s: %v allocations", mode, n)
		}
	}
	for _, mode := range []string{"layout", "sges", "pack", "contiguous"} {
		o := worker.Options{Mode: transmitPrefix + mode, Message: blockSGEs * 512, Block: 512}
		step, err := microStep(o)
		if err != nil {
			t.Fatalf("%s: %v", o.Mode, err)
		}
		if !step(3) {
			t.Errorf("%s went wrong", o.Mode)
		}
		if n := testing.AllocsPerRun(10, func() { step(10) }); n != 0 {
			t.Errorf("%s: %v allocations", o.Mode, n)
		}
	}
	for _, mode := range []string{"configure-list", "configure-column"} {
		if step, err := microStep(worker.Options{Mode: mode}); err != nil || !step(2) {
			t.Errorf("%s: %v", mode, err)
		}
	}
	for _, o := range []worker.Options{
		{Mode: "none", Message: 64},
		{Mode: "crc"},
		{Mode: "seal", Message: 3},
		{Mode: "transmit-none", Message: 64 * blockSGEs, Block: 64},
		{Mode: "transmit-layout", Message: 64, Block: 64},
	} {
		if _, err := microStep(o); err == nil {
			t.Errorf("a step for %+v", o)
		}
	}
}

// TestGuardSteps: the steps of keys and of pinning do what they say, and no forged key stores
// anything, which the step looks at by itself.
func TestGuardSteps(t *testing.T) {
	for _, mode := range []string{"store-key", "store-forged", "store-copy", "copy-cold", "pin"} {
		step, err := microStep(worker.Options{Mode: mode, Message: 64})
		if err != nil {
			if mode == "pin" {
				t.Logf("SKIPPED, no memory was pinned: %v", err)
				continue
			}
			t.Fatal(err)
		}
		if !step(1000) {
			t.Errorf("%s went wrong", mode)
		}
	}
}
