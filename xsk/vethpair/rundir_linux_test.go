package vethpair_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestOthersAddNamespaces: where nobody has used `ip netns add` yet, somebody does so while there
// is a pair, and the pair goes nevertheless. A child does it whose /run is its own.
func TestOthersAddNamespaces(t *testing.T) {
	xsktest.NeedRoot(t)
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), "VETHPAIR_TEST_RUN=1")
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// goBesideOthers is what the child does.
func goBesideOthers() error {
	if err := unix.Mount("none", "/run", "tmpfs", 0, ""); err != nil {
		return err
	}
	p, err := vethpair.New(vethpair.Options{})
	if err != nil {
		return err
	}
	out, ipErr := exec.Command("ip", "netns", "add", "other").CombinedOutput()
	if ipErr != nil {
		ipErr = fmt.Errorf("ip netns add: %w: %s", ipErr, out)
	}
	err = errors.Join(ipErr, p.Close())
	if exists(p.A.Namespace) || exists(p.B.Namespace) || !exists("other") {
		err = errors.Join(err, errors.New("other namespaces are there than should be"))
	}
	return err
}
