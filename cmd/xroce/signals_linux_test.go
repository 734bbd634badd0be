package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest/timeout"
)

// TestOneSignal: a second signal ends a program that is stuck, here because it is patient and
// nobody ends its input, but not one that comes right behind the first, as timeout(1) sends them.
func TestOneSignal(t *testing.T) {
	for range 20 {
		// One that is told before it waits for its input is not stuck, and says nothing of this.
		switch code, took := terminate(t); {
		case code == exitInterrupted:
		case code != -1:
			t.Fatalf("it ends with code %d", code)
		case took < oneSignal:
			t.Fatalf("it ends after %v", took)
		default:
			return
		}
	}
	t.Error("it never was stuck")
}

// terminate starts a command that waits for its input, sends it signals until it ends, and returns
// its exit code, -1 for the signal, and how long it took.
func terminate(t *testing.T) (code int, took time.Duration) {
	t.Helper()
	cmd := child(t, 0, "decode", "-")
	cmd.Env = append(cmd.Env, childPatience+"=1h")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdin = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	// It reads when it has asked to be told of signals.
	head := append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 16)...)
	if _, err := out.Write(head); err != nil {
		t.Fatal(err)
	}
	late := time.After(timeout.Scaled(20 * time.Second))
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for waiting := 1; waiting > 0; <-again.C {
		if waiting, err = unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatal("it does not read")
		default:
		}
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for begun := time.Now(); ; {
		err := cmd.Process.Signal(unix.SIGTERM)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("it ends with %v", err)
			}
			return exit.ExitCode(), time.Since(begun)
		case <-late:
			t.Fatal("it does not end")
		case <-again.C:
		}
	}
}
