package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/engine/capture"
)

// A frameTap keeps the frames that came.
type frameTap struct {
	mu     sync.Mutex
	frames [][]byte
}

func (f *frameTap) Frame(dir capture.Direction, head, tail []byte) {
	if dir == capture.Inbound {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.frames = append(f.frames, slices.Concat(head, tail))
	}
}

// take returns the frames that came since the last time.
func (f *frameTap) take() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	frames := f.frames
	f.frames = nil
	return frames
}

// tsharkAgrees lets tshark decode frames, if it is there: all must match the filter.
func tsharkAgrees(t *testing.T, frames [][]byte, filter string) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Log("tshark is not installed, so it was not asked")
		return
	}
	path := filepath.Join(t.TempDir(), "frames.pcapng")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	writer := capture.NewWriter(file, "test", capture.DefaultBuffer)
	for _, f := range frames {
		writer.Frame(time.Unix(0, 0), capture.Inbound, f, nil)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-Y", "infiniband.bth && "+filter, "-T", "fields",
		"-e", "infiniband.bth.psn").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "\n"); n != len(frames) || n == 0 {
		t.Errorf("tshark finds %d of %d frames by %q", n, len(frames), filter)
	}
}
