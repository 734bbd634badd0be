package softroce

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dead is a process that lives no more.
func dead(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return cmd.Process.Pid
}

// TestLeftBehind: a run takes nothing from another one that lives, nor from one of which
// it cannot know.
func TestLeftBehind(t *testing.T) {
	here, err := self()
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	gone := owner{pid: dead(t), space: here.space}
	elsewhere := owner{pid: gone.pid, space: here.space + 1}
	for name, want := range map[string]bool{
		gone.String() + "1":                         true,
		gone.String() + "4711":                      true,
		here.String() + "1":                         false,
		owner{pid: 1, space: here.space}.String():   false,
		elsewhere.String() + "1":                    false,
		fmt.Sprintf("xroce-vm-%d-1", gone.pid):      false,
		fmt.Sprintf("xroce-%d-1-a", gone.pid):       false,
		fmt.Sprintf("my-xroce-vm-%d-2-3", gone.pid): false,
		"xroce-vm--1-2-3":                           false,
	} {
		if leftBehind(name, here) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if other := (owner{pid: here.pid + 1, space: here.space}); other.String() == here.String() {
		t.Errorf("two processes name what they make %s", other)
	}
}

// TestSweep removes the directory of a run that was killed, and no other.
func TestSweep(t *testing.T) {
	here, err := self()
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	gone := owner{pid: dead(t), space: here.space}.String() + "1"
	for _, name := range []string{gone, here.String() + "1", "xroce-vm-1", "notes"} {
		if err := os.MkdirAll(filepath.Join(tmp, name, "files"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to sweep namespaces")
	}
	// What is left of a name when it was removed halfway.
	file := filepath.Join(namespaces, gone)
	err = errors.Join(os.MkdirAll(namespaces, 0o755), os.WriteFile(file, nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	if err := Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", file, err)
	}
	entries, err := os.ReadDir(tmp)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if e.Name() == gone {
			t.Errorf("%s is still there", gone)
		}
	}
}

// TestTwoVMsDoNotMeet: what QEMU is told of two VMs is in the image, which nobody writes,
// or below the directory of the one; it has no name, port or display that others see.
func TestTwoVMsDoNotMeet(t *testing.T) {
	image := Image{Kernel: "/image/kernel", Root: "/image/root"}
	c := Config{Number: 2, MTU: 1500, Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24")}}
	args := func(dir string) []string {
		return qemuArgs(image, filepath.Join(dir, "root"), filepath.Join(dir, "agent"), c)
	}
	one, two := args("/one"), args("/two")
	for i, arg := range one {
		if strings.Contains(arg, "/") && arg == two[i] && !strings.HasPrefix(arg, "/image/") &&
			!strings.HasPrefix(arg, "console=") {
			t.Errorf("both VMs are told %q", arg)
		}
	}
	for _, flag := range []string{"-name", "-monitor", "-qmp", "-vnc", "-gdb", "-pidfile", "-s"} {
		if slices.Contains(one, flag) {
			t.Errorf("QEMU has %s", flag)
		}
	}
	for _, arg := range one {
		for _, word := range []string{"tcp:", "hostfwd", "mcast", "ifname="} {
			if strings.Contains(arg, word) {
				t.Errorf("%q is of the whole machine", arg)
			}
		}
	}
}
