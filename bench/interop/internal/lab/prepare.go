package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: apt-get %s: %w", errors.ErrUnsupported, args[len(args)-1], err)
		}
	}
	return nil
}
