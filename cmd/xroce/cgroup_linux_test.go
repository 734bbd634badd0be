package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xroce/xsk/vethpair"
)

// memoryCgroup makes a memory cgroup with a limit in bytes, of the version that is mounted.
func memoryCgroup(t *testing.T, limit int) (dir string) {
	t.Helper()
	name := fmt.Sprintf("xroce-test-%d", os.Getpid())
	for _, c := range []struct{ mount, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(c.mount, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		err := os.WriteFile(filepath.Join(dir, c.file), []byte(fmt.Sprint(limit)), 0)
		if err == nil {
			return dir
		}
	}
	t.Skip("SKIPPED: no memory cgroup can be made here")
	return ""
}

// inCgroup is a child that moves there before it becomes the program.
func inCgroup(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := child(t, 0, args...)
	move := []string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs")}
	cmd := exec.Command("/bin/sh", append(move, c.Args...)...)
	cmd.Env = append(c.Env, "GOGC=100") // that of users: tests are given more
	return cmd
}

// TestRootSmallCgroup runs a conversation in a cgroup of 24 MiB, less than the frames of a
// device by default.
func TestRootSmallCgroup(t *testing.T) {
	if raceDetector {
		t.Skip("SKIPPED: the race detector alone needs more than the limit")
	}
	p, in := pair(t, vethpair.Options{MTU: 4200})
	// Either end waits long for the other: they are processes of a busy machine.
	args := strings.Fields("perf send-lat -d xr0 -p 18610 -m 4096 -s 65536 -n 500 -u 22")
	var stderr bytes.Buffer
	server := inCgroup(t, memoryCgroup(t, 24<<20), args...)
	server.Stderr = &stderr
	if err := p.Do(vethpair.A, server.Start); err != nil {
		t.Fatal(err)
	}
	awaitListener(t, p, "18610")
	client := in(vethpair.B).run(t, append(args, p.A.IPv4.Addr().String())...)
	client.exited(t, exitOK)
	if err := server.Wait(); err != nil {
		t.Errorf("%v: %s", err, &stderr)
	}
	contains(t, stderr.String(), "level=WARN", "fewer frames than by default", "memory cgroup")
}
