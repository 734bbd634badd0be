package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/stat"
)

// TestStat: the counters of a program that runs, once and as rates.
func TestStat(t *testing.T) {
	b, _, _ := pingpongBench(t)
	i := b.run(t, "stat")
	if i.code != exitOK || !strings.HasPrefix(i.stdout, "xr1: pid ") {
		t.Errorf("code %d: %s%s", i.code, i.stdout, i.stderr)
	}
	if i = b.run(t, "stat", "-a", "-i", "xr1"); !strings.Contains(i.stdout, "\n  page_faults ") ||
		!strings.Contains(i.stdout, "\n  drop_bad_icrc              0\n") {
		t.Errorf("code %d: %s%s", i.code, i.stdout, i.stderr)
	}
	i = b.run(t, "stat", "--json")
	var devices []stat.Device
	if err := json.Unmarshal([]byte(i.stdout), &devices); err != nil || len(devices) != 1 ||
		devices[0].PID != os.Getpid() || devices[0].Counters["sent_pkts"] != 0 ||
		len(devices[0].Counters) < 50 {
		t.Errorf("%v: %s", err, i.stdout)
	}
	i = b.run(t, "stat", "-w", "0.1", "-c", "2", "-j")
	if lines := strings.Split(strings.TrimSpace(i.stdout), "\n"); i.code != exitOK ||
		len(lines) != 2 || !strings.HasPrefix(lines[1], `{"pid":`) {
		t.Errorf("code %d: %s%s", i.code, i.stdout, i.stderr)
	}
	i = b.run(t, "top", "-w", "0.1", "-c", "1")
	if i.code != exitOK || !strings.HasPrefix(i.stdout, "DEVICE ") ||
		!strings.Contains(i.stdout, "\nxr1 ") || strings.Contains(i.stdout, "\x1b") {
		t.Errorf("code %d: %q%s", i.code, i.stdout, i.stderr)
	}
	top := b.start(t, "top", "-w", "0.1")
	top.awaitStdout(t, "\nxr1 ")
	top.cancel()
	if top.wait(t).code != exitOK {
		t.Errorf("interrupted: code %d: %s", top.code, top.stderr)
	}
}

// TestStatFails: what is wrong with a command line is said, and what is not there.
func TestStatFails(t *testing.T) {
	b, _, _ := pingpongBench(t)
	for args, code := range map[string]int{
		"stat -w 0": exitUsage, "stat -w NaN": exitUsage, "stat -c 3": exitUsage,
		"stat --pid -1": exitUsage, "top -w 1e9": exitUsage, "top -c -1": exitUsage,
		"stat -i none": exitFailure, "stat --pid 1": exitFailure, "top -i none": exitFailure,
	} {
		if i := b.run(t, strings.Fields(args)...); i.code != code {
			t.Errorf("%s: code %d, %s", args, i.code, i.stderr)
		}
	}
}

// TestForeignDirectory: who may not look into a directory of control sockets is told so, and does
// not take it that nothing runs.
func TestForeignDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "xroce")
	if err := os.Mkdir(dir, 0o755); err != nil { // others might have put sockets there
		t.Fatal(err)
	}
	b := bench{machine: goodMachine(), runtime: dir}
	for _, command := range []string{"stat", "res", "top", "tcpdump"} {
		i := b.run(t, command)
		if i.code == exitOK || !strings.Contains(i.stderr, dir) || i.stdout != "" {
			t.Errorf("%s: code %d, %s%s", command, i.code, i.stdout, i.stderr)
		}
	}
}
