package tidy

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xroce/xsk/xsktest/timeout"
)

// ciRun is the script of continuous integration, where it runs.
const ciRun = ".ci/run"

// census asks the script what a run in a directory would call left behind.
func census(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("bash", ciRun, "--census")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CI_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestRunsDoNotMeet: a run of continuous integration blames nobody for what another one,
// or a user of xroce, has at the same time; what is its own it finds.
func TestRunsDoNotMeet(t *testing.T) {
	files(t) // needs git
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	data, err := os.ReadFile(cat)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "xroce")
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	ours, others := t.TempDir(), t.TempDir()
	cmd := exec.Command(program)
	cmd.Env = []string{"CI_DIR=" + others}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	// It has its name and environment when it answers.
	fmt.Fprintln(in, "ready")
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("process %d\n", cmd.Process.Pid)
	if got := census(t, ours); strings.Contains(got, line) {
		t.Errorf("a process of another run is called left behind:\n%s", got)
	}
	if got := census(t, others); !strings.Contains(got, line) {
		t.Errorf("a process of the run itself is not seen:\n%s", got)
	}
}

// TestCleanBlamesWhatIsNew: what was there before a run and is gone after it was taken away by
// others, as when a dead run's namespaces are swept up; what was not there is left behind. The
// machine has namespaces of its own, which others make and leave: the test has others.
func TestCleanBlamesWhatIsNew(t *testing.T) {
	files(t) // needs git
	dir, namespaces := t.TempDir(), t.TempDir()
	const dead = "xroce-99999999-1-a" // no process has such a number
	if err := os.WriteFile(filepath.Join(namespaces, dead), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CI_NAMESPACES", namespaces)
	now := census(t, dir)
	if !strings.Contains(now, "namespace "+dead+"\n") {
		t.Fatalf("%s is not seen: %s", dead, now)
	}
	for _, c := range []struct{ before, says, fails string }{
		{now + "namespace xroce-gone-1-2-3\n", "nothing is left", ""},
		{
			"namespace " + dead + "\nworktree of another kind\n",
			"left behind: worktree ", "exit status 1",
		},
	} {
		if err := os.WriteFile(filepath.Join(dir, "census"), []byte(c.before), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", ciRun, "--step", "clean")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CI_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), c.says) || (err == nil) != (c.fails == "") {
			t.Errorf("with %q before: %v, %s", c.before, err, out)
		}
		if err != nil && err.Error() != c.fails {
			t.Errorf("with %q before: %v, want %s", c.before, err, c.fails)
		}
	}
}

// TestRunOfAnotherMake: what a make was told that started a run, for instance to do nothing, is not
// for the steps.
func TestRunOfAnotherMake(t *testing.T) {
	files(t) // needs git
	if _, err := exec.LookPath("make"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	cmd := exec.Command("bash", ciRun, "--step", "sim")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CI_DIR="+t.TempDir(), timeout.Variable+"=1",
		"MAKEFLAGS=n -- SEEDS=1", "MAKELEVEL=1", "GO=false")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("the simulator cannot be built, and yet the step passed:\n%s", out)
	}
}

// TestLanes: steps of two lanes run beside each other, with twice the time; what the first one's
// print stands together, what the other's print follows, and what failed fails the run.
func TestLanes(t *testing.T) {
	files(t) // needs git
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %v: %s", err, out)
	}
	// The step of the first lane ends after that of the other one has begun.
	for name, script := range map[string]string{
		"make": "echo \"limits $XROCE_TIMEOUT_MULTIPLIER\"; cat " + fifo,
		"go":   "echo the other one; echo came >" + fifo + "; exit 1",
	} {
		script = "#!/bin/sh\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", ciRun, "lint", "cross")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), timeout.Variable+"=7", "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil || err.Error() != "exit status 1" {
		t.Errorf("%v, though a step failed", err)
	}
	at := 0
	for _, want := range []string{
		"... beside the steps that follow: cross\n", "\n=== lint: ", "limits 14\ncame\n",
		"--- lint: passed (", "\n=== cross: ", "\nthe other one\n",
		"--- cross: FAILED: exit status 1 (", "ci: failed: cross\n", "ci: 1 passed, 1 failed\n",
	} {
		i := strings.Index(string(out)[at:], want)
		if i < 0 {
			t.Fatalf("no %q behind the first %d bytes of\n%s", want, at, out)
		}
		at += i + len(want)
	}
}
