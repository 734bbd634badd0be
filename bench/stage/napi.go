package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Settle makes the receiving of each end threaded, if the stage wants that, and
// pins the threads. An end of a veth pair has NAPI only while an XDP program is
// attached to it, so Settle is called when all workers are ready; an end without
// a program is left as it is.
func (s *Stage) Settle(ctx context.Context) error {
	if !s.options.Threaded {
		return nil
	}
	for _, side := range []Side{A, B} {
		if !s.hasProgram(ctx, side) {
			continue
		}
		file := "/sys/class/net/" + s.Interface(side) + "/threaded"
		if err := s.inside(ctx, side, "sh", "-c", "echo 1 > "+file); err != nil {
			return err
		}
		if err := pinThreads(s.Interface(side), s.cpus[side]); err != nil {
			return err
		}
	}
	return nil
}

// hasProgram tells whether an XDP program is attached to a side.
func (s *Stage) hasProgram(ctx context.Context, side Side) bool {
	out, err := s.Command(ctx, side, "ip", "link", "show", "dev", s.Interface(side)).Output()
	return err == nil && strings.Contains(string(out), "prog/xdp")
}

// pinThreads moves the NAPI threads of an interface to a processor. The kernel
// names them napi/INTERFACE-ID (net/core/dev.c, napi_kthread_create).
func pinThreads(ifname string, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	pinned := 0
	for _, file := range comms {
		comm, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(comm), "napi/"+ifname+"-") {
			continue // another process, or one that is gone by now
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(pid, &set); err != nil {
			return fmt.Errorf("stage: pin the NAPI thread of %s: %w", ifname, err)
		}
		pinned++
	}
	if pinned == 0 {
		return fmt.Errorf("stage: %s has no NAPI thread to pin", ifname)
	}
	return nil
}
