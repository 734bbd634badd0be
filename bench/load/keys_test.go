package load

import (
	"testing"

	"xroce/bench/worker"
)

func TestKeySteps(t *testing.T) {
	for _, mode := range []string{"register", "bind", "rebind"} {
		k, err := newKeyBench(worker.Options{Mode: mode, Message: 1 << 30})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		step, err := k.step(mode)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		for i := range 300 { // the low 8 bits of keys come round
			if err := step(); err != nil {
				t.Fatalf("%s, step %d: %v", mode, i, err)
			}
		}
		if k.window != nil && k.window.Bound() != (mode == "rebind") {
			t.Errorf("%s: bound %t", mode, k.window.Bound())
		}
		if err := k.dev.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := newKeyBench(worker.Options{}); err == nil {
		t.Error("a region of nothing")
	}
	k, err := newKeyBench(worker.Options{Message: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer k.dev.Close()
	if _, err := k.step("none"); err == nil {
		t.Error("a step that there is not")
	}
}
