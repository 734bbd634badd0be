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

// niceness of the NAPI thread. The reader shares the processor with it, and must
// win: at equal shares the thread receives more than a reader can handle that
// also sends, drops the rest, and who of the two gets how much is the result.
// With less, the thread receives what the reader has time for, and the rest waits
// in the veth ring and holds the sender back.
const niceness = 10

// niceness is that of the NAPI thread of a stage.
func (o Options) niceness() int {
	if o.Even {
		return 0
	}
	return niceness
}

// Settle makes the receiving of B threaded, if the stage wants that, and pins the
// thread to B's processor. An end of a veth pair has NAPI only while an XDP
// program is attached to it, so Settle is called when all workers are ready; a
// stage without a program on B is left as it is.
//
// What arrives at A is always handled within B's own send calls: a NAPI thread on
// A's processor would starve beside a sender that does not pause.
func (s *Stage) Settle(ctx context.Context) error {
	if !s.options.threaded() || !s.hasProgram(ctx, B) {
		return nil
	}
	file := "/sys/class/net/" + s.Interface(B) + "/threaded"
	if err := s.Inside(ctx, B, "sh", "-c", "echo 1 > "+file); err != nil {
		return err
	}
	return pinThreads(s.Interface(B), s.cpus[B], s.options.niceness())
}

// Unsettle gives B's receiving back to the softirq, for workers that are not ours
// and must find the kernel as it is by default. Like Settle it does nothing while
// no program is attached to B.
func (s *Stage) Unsettle(ctx context.Context) error {
	if !s.hasProgram(ctx, B) {
		return nil
	}
	return s.Inside(ctx, B, "sh", "-c", "echo 0 > /sys/class/net/"+s.Interface(B)+"/threaded")
}

// hasProgram reports whether an XDP program is attached to a side.
func (s *Stage) hasProgram(ctx context.Context, side Side) bool {
	out, err := s.Command(ctx, side, "ip", "link", "show", "dev", s.Interface(side)).Output()
	return err == nil && strings.Contains(string(out), "prog/xdp")
}

// pinThreads moves the NAPI threads of an interface to a processor and says how nice they are.
// The kernel names them napi/INTERFACE-ID (net/core/dev.c, napi_kthread_create).
func pinThreads(ifname string, cpu, nice int) error {
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
		if err := unix.Setpriority(unix.PRIO_PROCESS, pid, nice); err != nil {
			return fmt.Errorf("stage: niceness of the NAPI thread of %s: %w", ifname, err)
		}
		pinned++
	}
	if pinned == 0 {
		return fmt.Errorf("stage: %s has no NAPI thread to pin", ifname)
	}
	return nil
}
