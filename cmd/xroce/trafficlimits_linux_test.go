package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// This file is about test frames where a process may not have the memory that they take by default.

// startChild starts a child in a namespace, as an invocation.
func startChild(t *testing.T, p *vethpair.Pair, side vethpair.Side, cmd *exec.Cmd) *invocation {
	t.Helper()
	var stdout, stderr lockedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := p.Do(side, cmd.Start); err != nil {
		t.Fatal(err)
	}
	i := &invocation{out: &stdout, errs: &stderr, done: make(chan struct{})}
	i.cancel = func() { _ = cmd.Process.Kill() }
	go func() {
		defer close(i.done)
		if err := cmd.Wait(); err != nil {
			stderr.Write([]byte(err.Error())) // that it was killed, for one
		}
		i.code, i.stdout, i.stderr = cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}()
	t.Cleanup(func() {
		i.cancel()
		i.wait(t)
	})
	return i
}

// alone starts a command until it finds nothing locked by others of this user, who are those before
// it: the kernel gives back in a worker what they had. It returns when the command has ended, or is
// ready.
func alone(t *testing.T, start func() *invocation) (i *invocation) {
	t.Helper()
	patiently(func() bool {
		i = start()
		for late := time.After(timeout.Scaled(time.Minute)); ; {
			select {
			case <-late:
				t.Fatal("neither ready nor at its end")
			case <-i.done:
			case <-time.After(time.Millisecond):
				if !strings.Contains(i.errs.String(), "xroce: ready") {
					continue
				}
			}
			break
		}
		said := i.errs.String()
		if strings.Contains(said, "locked by others") || strings.Contains(said, "locked already") {
			i.cancel()
			i.wait(t)
			return false
		}
		return true
	})
	return i
}

// trafficLimited has each command that sends or takes test frames do its work as a child that has
// little memory, and say why its frames are fewer.
func trafficLimited(
	t *testing.T, limited func(t *testing.T, args ...string) *exec.Cmd, why string,
) {
	one, in := pair(t, vethpair.Options{})
	four, _ := pair(t, vethpair.Options{Queues: 4})
	t.Run("sink", func(t *testing.T) {
		sink := alone(t, func() *invocation {
			return startChild(t, one, vethpair.B, limited(t, "sink", "-d", "xr0", "-n", few))
		})
		sink.awaitStderr(t, "xroce: ready")
		gen := in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", one.B.IPv4.Addr().String(),
			"-n", few, "--rate", "20kpps")
		gen.exited(t, exitOK)
		sink.wait(t).exited(t, exitOK)
		contains(t, sink.stdout, "received 200 of 200 frames")
		contains(t, sink.stderr, "level=WARN", "fewer frames than by default", "device=xr0", why)
	})
	for name, c := range map[string]struct {
		pair *vethpair.Pair
		args string
		code int
		says string
	}{
		"fuzz": {one, "fuzz -d xr0 -n 20 --wait 0s", exitOK, "packets 0 to 19 of seed 1"},
		"pktgen with connections": {
			one, "pktgen -d xr0 --stateful --dest-qp 5 -n 1 --ack-timeout 1ms --retry-count 0 --to",
			exitFailure, "answered 0 of 1 packets", // there is no such queue pair
		},
		"pktgen of four queues": {
			four, "pktgen -d xr0 --queues 4 --flows 4 -n 2000 --to", exitOK,
			": 2000 frames",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(c.args), c.pair.B.IPv4.Addr().String())
			i := alone(t, func() *invocation {
				return startChild(t, c.pair, vethpair.A, limited(t, args...))
			}).wait(t)
			i.exited(t, c.code)
			contains(t, i.stdout, c.says)
			contains(t, i.stderr, "level=WARN", "fewer frames than by default", "device=xr0", why)
		})
	}
}

// TestRootTrafficSmallCgroup: in a cgroup of 24 MiB, less than the frames by default.
func TestRootTrafficSmallCgroup(t *testing.T) {
	if raceDetector {
		t.Skip("SKIPPED: the race detector alone needs more than the limit")
	}
	trafficLimited(t, func(t *testing.T, args ...string) *exec.Cmd {
		t.Helper()
		return inCgroup(t, memoryCgroup(t, 24<<20), args...) // another one for each
	}, "memory cgroup")
}

// TestRootTrafficLockedMemory: 8 MiB may be locked, as systemd has it, without CAP_IPC_LOCK.
func TestRootTrafficLockedMemory(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("SKIPPED: there is no setpriv")
	}
	trafficLimited(t, lockingLittle, "8192 KiB may be locked (ulimit -l")
}

// lockingLittle is a child that may lock 8 MiB and has no CAP_IPC_LOCK.
func lockingLittle(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := child(t, 0, args...)
	drop := []string{"-c", `ulimit -l 8192 && exec setpriv --bounding-set=-ipc_lock "$0" "$@"`}
	cmd := exec.Command("/bin/sh", append(drop, c.Args...)...)
	cmd.Env = c.Env
	return cmd
}
