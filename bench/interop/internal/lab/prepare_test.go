package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAptIsTriedAgain: while others hold its locks apt-get fails, and is called again, not for ever
// and not when the run is over.
func TestAptIsTriedAgain(t *testing.T) {
	defer func(d time.Duration) { aptPause = d }(aptPause)
	aptPause = time.Millisecond
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	calls := filepath.Join(dir, "calls")
	failing := func(n int, says string) {
		t.Helper()
		script := "#!/bin/sh\necho x >>" + calls + "\necho '" + says + "' >&2\n" +
			"[ $(wc -l <" + calls + ") -gt " + strconv.Itoa(n) + " ]\n"
		err := errors.Join(os.WriteFile(calls, nil, 0o600),
			os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o700))
		if err != nil {
			t.Fatal(err)
		}
	}
	called := func() int {
		b, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "x")
	}
	const locked = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1"
	failing(aptTries-1, locked)
	if err := apt(t.Context(), []string{"update"}); err != nil || called() != aptTries {
		t.Errorf("%v after %d calls", err, called())
	}
	failing(aptTries, locked)
	if err := apt(t.Context(), []string{"update"}); err == nil || called() != aptTries {
		t.Errorf("%v after %d calls", err, called())
	}
	failing(aptTries, "E: Unable to locate package qemu-system-x86")
	if err := apt(t.Context(), []string{"update"}); err == nil || called() != 1 {
		t.Errorf("%v after %d calls, and no lock was held", err, called())
	}
	failing(aptTries, locked)
	aptPause = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := apt(ctx, []string{"update"}); err == nil || called() > 1 {
		t.Errorf("%v after %d calls", err, called())
	}
}
