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

// TestOneSignal: a second signal ends a program that is stuck, here because nobody ends its input,
// but not one that comes right behind the first, as timeout(1) sends them.
func TestOneSignal(t *testing.T) {
	cmd := child(t, 0, "decode", "-")
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
	// It reads as soon as it has asked to be told of signals.
	head := append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 16)...)
	if _, err := out.Write(head); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); ; {
		waiting, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		if waiting == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not read")
		}
		<-time.After(time.Millisecond)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	begun, again := time.Now(), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for late := time.After(timeout.Scaled(20 * time.Second)); ; {
		err := cmd.Process.Signal(unix.SIGTERM)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != -1 {
				t.Errorf("it ends with %v", err)
			}
			if took := time.Since(begun); took < oneSignal {
				t.Errorf("it ends after %v", took)
			}
			return
		case <-late:
			t.Fatal("it does not end")
		case <-again.C:
		}
	}
}
