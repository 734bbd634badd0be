package engine_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/pager"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
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

// TestODPCapsFollowKernel: where the kernel does not tell which pages are present, the
// device has no on-demand paging and says so; all else it has.
func TestODPCapsFollowKernel(t *testing.T) {
	if os.Getenv(withoutMincore) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestODPCapsFollowKernel$", "-test.v")
		c.Env = append(os.Environ(), withoutMincore+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	forbid(t, unix.SYS_MINCORE)
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	dev := w.devs[1]
	if caps := dev.ODPCaps(); caps != (engine.ODPCaps{}) || caps != dev.Query().ODP ||
		caps != engine.Attributes(engine.Options{}).ODP {
		t.Errorf("capabilities %+v, those queried %+v", caps, dev.Query().ODP)
	}
	err := pager.Supported()
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, unix.EPERM) {
		t.Errorf("the pager says %v", err)
	}
	pd := dev.AllocPD()
	_, err = dev.RegODP(pd, make([]byte, 8), mem.LocalWrite)
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("RegODP says %v", err)
	}
	must(t, pd.Close()) // nothing is left of it
	// A file that gets shorter needs no such call.
	a, b := pairOn(t, w)
	mr, f := regFile(t, b, 4)
	must(t, f.Truncate(int64(odpPage)))
	refusedAccess(t, w, a, b, through(a, roce.OpWrite, mr.RKey(), mr.Addr()+uint64(cut), 8))
}
