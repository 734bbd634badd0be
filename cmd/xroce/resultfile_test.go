package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
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

// TestResultHasItsName: a file that loses its name while all is measured is not written for nobody.
func TestResultHasItsName(t *testing.T) {
	for what, take := range map[string]func(name string, first *resultFile) error{
		"removed": func(name string, _ *resultFile) error { return os.Remove(name) },
		"of another that comes to nothing": func(_ string, first *resultFile) error {
			first.close()
			return nil
		},
		"replaced": func(name string, _ *resultFile) error {
			if err := os.WriteFile(name+".new", []byte("other"), 0o600); err != nil {
				return err
			}
			return os.Rename(name+".new", name)
		},
	} {
		name := filepath.Join(t.TempDir(), "result")
		first, err := openResult(name)
		if err != nil {
			t.Fatal(err)
		}
		second, err := openResult(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := take(name, &first); err != nil {
			t.Fatal(err)
		}
		err = second.fill(func(w io.Writer) error {
			_, err := io.WriteString(w, "result")
			return err
		})
		if got, lost := os.ReadFile(name); err != nil || string(got) != "result" {
			t.Errorf("%s: %v, and there is %q, %v", what, err, got, lost)
		}
		first.close()
	}
}

// TestResultsOfAFullDisk: what cannot be written to a file is told on standard output all the same.
func TestResultsOfAFullDisk(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	for _, flags := range []string{
		"--json --dump /dev/full", "--json --out_json --out_json_file /dev/full",
	} {
		_, client := perfPair(t, b, "send-bw", "-n 5 -s 1000", flags)
		client.exited(t, exitFailure)
		contains(t, client.stdout, `"results"`)
		contains(t, client.stderr+client.stdout, "no space left on device")
	}
	if raceDetector {
		return // a scenario is computed by one goroutine
	}
	i := bench{machine: goodMachine()}.run(t, "--json", "sim", "--congestion", "incast-8-dcqcn",
		"--svg", "/dev/full")
	i.exited(t, exitFailure)
	contains(t, i.stdout, `"scenario"`)
	contains(t, i.stderr+i.stdout, "no space left on device")
}

// TestResultIsNoInput: neither what is read nor another result is overwritten.
func TestResultIsNoInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	capture := filepath.Join(dir, "c.pcap")
	content, err := os.ReadFile(captures + "/rc_send_v4.pcap")
	if err == nil {
		err = os.WriteFile(capture, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(dir, "both")
	b, _ := simBench(t)
	for _, line := range []string{
		"analyze --html " + capture + " " + capture,
		"perf send-bw -d xr1 --dump " + both + " --out_json --out_json_file " + both,
		"pktgen -d xr1 --to 192.0.2.2 --max-loss nan",
	} {
		b.run(t, strings.Fields(line)...).exited(t, exitUsage)
	}
	if got, err := os.ReadFile(capture); string(got) != string(content) {
		t.Errorf("the capture has %d bytes of %d, %v", len(got), len(content), err)
	}
	onlyFiles(t, dir, "c.pcap")
}
