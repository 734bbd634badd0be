package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// programs are what a run needs on this machine, by the Debian packages that have them.
var programs = []struct{ program, pkg string }{
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"ip", "iproute2"},
	{"dpkg-deb", "dpkg"},
	{"xz", "xz-utils"},
	{"zstd", "zstd"},
	{"tshark", "tshark"},
}

// Prepare makes sure that this user may run the cases and that all programs are
// there. The error is errors.ErrUnsupported when that cannot be had here.
func Prepare(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: tap devices and network namespaces need root: sudo make interop",
			errors.ErrUnsupported)
	}
	var missing []string
	for _, t := range programs {
		if _, err := exec.LookPath(t.program); err != nil {
			missing = append(missing, t.pkg)
		}
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: no apt-get: the VM is made of Debian packages",
			errors.ErrUnsupported)
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintln(os.Stderr, "interop: installing", strings.Join(missing, ", "))
	for _, args := range [][]string{
		{"-q", "-o", "DPkg::Lock::Timeout=120", "update"},
		append([]string{
			"-q", "-y", "-o", "DPkg::Lock::Timeout=120", "install", "--no-install-recommends",
		}, missing...),
	} {
		if err := apt(ctx, args); err != nil {
			return fmt.Errorf("%w: apt-get %s: %w", errors.ErrUnsupported, args[len(args)-1], err)
		}
	}
	return nil
}

// aptTries is how often apt-get is called before it is given up, and aptPause how long others, such
// as a second run on this machine, may take meanwhile: for the lock of the lists of packages it
// does not wait by itself. A variable for tests.
const aptTries = 4

var aptPause = 15 * time.Second

// apt runs apt-get, which is tried again when others have a lock.
func apt(ctx context.Context, args []string) error {
	for try := 1; ; try++ {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.WaitDelay = 3 * time.Second // for who has its stderr and outlives it
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = os.Stderr, io.MultiWriter(os.Stderr, &said)
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) { // it has succeeded
			err = nil
		}
		if err == nil || try == aptTries || !bytes.Contains(said.Bytes(), []byte("lock")) {
			return err
		}
		select {
		case <-time.After(timeout.Scaled(aptPause)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
