package demo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"xroce/engine"
)

// TestCaptureOfNoHosts: where no device can be opened the capture has what it had before.
func TestCaptureOfNoHosts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(name, []byte("of yesterday"), 0o600); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no device")
	w := &cable{open: func(int, engine.Options) (*engine.Device, error) { return nil, no }}
	o := Options{Capture: name}
	o.setDefaults()
	if _, err := showScenes(t.Context(), &o, w, tally{&Report{}}); !errors.Is(err, no) {
		t.Errorf("%v, want %v", err, no)
	}
	if got, err := os.ReadFile(name); string(got) != "of yesterday" {
		t.Errorf("it has %q: %v", got, err)
	}
}
