package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestResultNowhere: what is to be written when all is over is found not to be possible before
// anything is run or printed, and before the interface is looked for.
func TestResultNowhere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "result")
	for _, args := range [][]string{
		{"sim", "--congestion", "incast-8-dcqcn", "--svg", missing},
		{"pktgen", "-d", "nosuch0", "--to", "192.0.2.1", "--rfc2544", "--plot", missing},
		{"analyze", "--html", missing, captures + "/rc_send_v4.pcap"},
	} {
		i := bench{machine: goodMachine()}.run(t, args...)
		if i.exited(t, exitFailure); i.stdout != "" {
			t.Errorf("%q printed %s", args, i.stdout)
		}
		contains(t, i.stderr, missing, "no such file or directory")
	}
}

// TestResultIsKept: a command that comes to no result leaves what there was, and no empty file.
func TestResultIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, other := filepath.Join(dir, "kept"), filepath.Join(dir, "other")
	if err := os.WriteFile(kept, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{kept, other} {
		i := bench{machine: goodMachine()}.run(t, "pktgen", "-d", "nosuch0", "--to", "192.0.2.1",
			"--rfc2544", "--plot", file)
		if i.code == exitOK {
			t.Error("a search on no interface found something")
		}
	}
	if got, err := os.ReadFile(kept); string(got) != "before" {
		t.Errorf("it has %q, %v", got, err)
	}
	onlyFiles(t, dir, "kept")
}

// TestResultIsWhole: a picture takes the place of a longer one, to its last byte.
func TestResultIsWhole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, make([]byte, 1<<22), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"analyze", "--html", file, captures + "/rc_send_v4.pcap"}
	bench{machine: goodMachine()}.run(t, args...).exited(t, exitOK)
	page, err := os.ReadFile(file)
	if err != nil || len(page) == 0 || page[0] == 0 || page[len(page)-1] == 0 {
		t.Errorf("it has %d bytes, %v", len(page), err)
	}
}
