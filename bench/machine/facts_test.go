package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseCPU(t *testing.T) {
	tests := []struct {
		name, info, model string
		hypervisor        bool
	}{
		{"none", "", "unknown", false},
		{"metal", "processor\t: 0\nmodel name\t: Fast 9\nflags\t\t: fpu sse\n", "Fast 9", false},
		{"virtual", "model name\t: Fast 9\nflags\t\t: fpu hypervisor sse\n", "Fast 9", true},
		{"first one only", "model name\t: A\nflags\t: fpu\n\nmodel name\t: B\n" +
			"flags\t: hypervisor\n", "A", false},
		{"no such key", "processor\t: 0\nBogoMIPS\t: 48.00\n", "unknown", false},
	}
	for _, tt := range tests {
		model, hypervisor := parseCPU(tt.info)
		if model != tt.model || hypervisor != tt.hypervisor {
			t.Errorf("%s: %q, %v, want %q, %v", tt.name, model, hypervisor, tt.model, tt.hypervisor)
		}
	}
}

func TestLook(t *testing.T) {
	f := Look(t.Context(), t.TempDir())
	if f.Commit != "unknown" {
		t.Errorf("commit %q outside any repository, want unknown", f.Commit)
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if want := strings.TrimSpace(string(release)); f.Kernel != want {
		t.Errorf("kernel %q, want %q", f.Kernel, want)
	}
	if !strings.Contains(f.String(), f.Kernel) || f.CPUs < 1 {
		t.Errorf("%q does not tell", f)
	}
	if wd, err := filepath.Abs("."); err == nil && Look(t.Context(), wd).Commit == "" {
		t.Error("an empty commit, want one or unknown")
	}
}
