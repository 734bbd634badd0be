package main

import (
	"os/exec"
	"strings"
	"testing"
)

// inC compiles the C peers when they are first asked for, for all tests. TestInterrupt has a run
// that compiles them itself, as those of users do.
var inC func() (peers, error)

// compiled returns the C peers.
func compiled(t *testing.T) peers {
	t.Helper()
	p, err := inC()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPeersCompile holds the C peers to what the compiler can find fault with.
func TestPeersCompile(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("SKIPPED, the C peers were not compiled: %v", err)
	}
	p, err := buildPeers(t.Context(), t.TempDir(), "-Werror", "-Wshadow", "-std=gnu11")
	if err != nil {
		t.Fatal(err)
	}
	if p.udppeerMissing != "" {
		t.Error(p.udppeerMissing)
	}
	switch {
	case strings.Contains(p.cpeerMissing, "No such file"):
		t.Skipf("SKIPPED, cpeer was not compiled: %s", p.cpeerMissing)
	case p.cpeerMissing != "":
		t.Error(p.cpeerMissing)
	}
}

func TestCompileSaysWhatIsMissing(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	why := compile(t.Context(), t.TempDir(), []string{"none.c"})
	if !strings.Contains(why, "none.c") {
		t.Errorf("compile of no file: %q", why)
	}
}
