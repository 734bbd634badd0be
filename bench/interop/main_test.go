package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// TestLimit: a run has time for its cases, also when there are many.
func TestLimit(t *testing.T) {
	f, err := parseFlags(nil)
	if err != nil {
		t.Fatal(err)
	}
	few, many := f.limitOf(1), f.limitOf(600)
	if many < timeout.Scaled(25*time.Minute) || few >= many {
		t.Errorf("one case has %v, 600 have %v", few, many)
	}
	if f, err = parseFlags([]string{"--limit=3m"}); err != nil || f.limitOf(600) != 3*time.Minute {
		t.Errorf("%v, %v", f.limitOf(600), err)
	}
}

// TestMakeHeedsSIGTERM: whoever ends make ends the run, and make waits for its end. The
// program that is built here only says what it was told.
func TestMakeHeedsSIGTERM(t *testing.T) {
	for _, program := range []string{"make", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/bash\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := write("run", "trap 'echo ended >"+said+"; exit 1' TERM\n"+
		"echo ready\nwhile :; do sleep 0.1; done\n")
	// go build -o FILE PACKAGE
	fake := write("go", `[[ $1 == build ]] && cp `+run+` "$3"`+"\n")
	cmd := exec.Command("make", "-s", "--no-print-directory", "-C", "../..", "interop",
		"GO="+fake, "BIN="+dir)
	// A make below another one, as that of make soak, tells where it works.
	cmd.Env = append(os.Environ(), timeout.Variable+"=1", "MAKEFLAGS=w", "MAKELEVEL=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("make says that all is well")
	}
	if text, err := os.ReadFile(said); strings.TrimSpace(string(text)) != "ended" {
		t.Errorf("the run was not told: %v", err)
	}
}
