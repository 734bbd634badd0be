package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/perfdump"
	"xroce/xsk/xsktest/timeout"
)

// TestPerfFilesKeepWhatTheyHave: a test that never begins changes nothing in the files that it was
// to write, and leaves none behind.
func TestPerfFilesKeepWhatTheyHave(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	kept, fresh := filepath.Join(dir, "kept"), filepath.Join(dir, "fresh")
	if err := os.WriteFile(kept, []byte("of yesterday"), 0o600); err != nil {
		t.Fatal(err)
	}
	untouched := func(line string) {
		t.Helper()
		if got, err := os.ReadFile(kept); err != nil || string(got) != "of yesterday" {
			t.Errorf("%s: %q, %v", line, got, err)
		}
		if _, err := os.Lstat(fresh); !os.IsNotExist(err) {
			t.Errorf("%s: %s is there: %v", line, fresh, err)
		}
	}
	for _, line := range []string{
		"-d eth9 --dump " + kept + " --out_json --out_json_file " + fresh,
		"-d xr1 -x 7 --dump " + fresh + " --out_json --out_json_file " + kept,
		"-d xr1 -c UD -s 4097 --dump " + fresh + " --out_json --out_json_file " + kept,
		"-d xr1 --dump " + fresh + " --out_json --out_json_file /no/such/dir/f",
	} {
		b.run(t, strings.Fields("perf send-bw "+line)...).exited(t, exitFailure)
		untouched(line)
	}
	line := "perf send-bw -d xr1 -p 0 --dump " + fresh + " --out_json --out_json_file " + kept
	server := b.start(t, strings.Fields(line)...)
	server.awaitReady(t)
	server.cancel()
	server.wait(t).exited(t, exitOK)
	untouched(line)
}

// TestPerfFilesAreWritten: nothing of what was there before is behind what is written, and a FIFO
// and a device take it, and stay.
func TestPerfFilesAreWritten(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	fifo, report := filepath.Join(dir, "fifo"), filepath.Join(dir, "report")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	// What is written while nobody has it open to read is kept for who is late.
	hold, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	read := make(chan error, 1)
	go func() {
		file, err := os.Open(fifo)
		if err == nil {
			_, err = perfdump.Read(file)
			file.Close()
		}
		read <- err
	}()
	server, client := perfPair(t, b, "send-bw", "-n 20 -s 1000 --dump /dev/null",
		"--dump "+fifo+" --out_json --out_json_file "+report)
	server.exited(t, exitOK)
	client.exited(t, exitOK)
	hold.Close() // who reads has all
	select {
	case err := <-read:
		if err != nil {
			t.Errorf("from the FIFO: %v", err)
		}
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Fatal("nobody wrote to the FIFO")
	}
	if b, err := os.ReadFile(report); err != nil || !json.Valid(b) {
		t.Errorf("the report: %.100q, %v", b, err)
	}
	for name, mode := range map[string]os.FileMode{
		fifo: os.ModeNamedPipe, "/dev/null": os.ModeDevice | os.ModeCharDevice,
	} {
		if info, err := os.Stat(name); err != nil || info.Mode().Type() != mode {
			t.Errorf("%s is no such file any more: %v", name, err)
		}
	}
}
