package perf

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// withoutMincore says that this process is the one that may not ask for pages.
const withoutMincore = "XROCE_TEST_WITHOUT_MINCORE"

// forbid has the kernel refuse a system call to all threads from now on.
func forbid(t *testing.T, call uint32) {
	t.Helper()
	const load, jumpEqual, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS,
		unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // the number of the call comes first in struct seccomp_data
		{Code: jumpEqual, K: call, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Fatal(errno)
	}
}

// TestReadyWithoutPaging: where the kernel does not tell which pages are present, --odp is refused
// before the peer is met, and other memory is not.
func TestReadyWithoutPaging(t *testing.T) {
	if os.Getenv(withoutMincore) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
		defer cancel()
		c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestReadyWithoutPaging$", "-test.v")
		c.Env = append(os.Environ(), withoutMincore+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	forbid(t, unix.SYS_MINCORE)
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{})
	o := Options{Config: brief(Test{Verb: Write})}
	must(t, o.Ready(dev))
	o.Release()
	o.ODP = true
	err = o.Ready(dev)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "--odp: ") {
		t.Errorf("%v", err)
	}
	if left := dev.Resources(1).Total; left != (engine.ResourceCount{}) {
		t.Errorf("left: %+v", left)
	}
}
