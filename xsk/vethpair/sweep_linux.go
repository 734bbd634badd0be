package vethpair

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespaces is where named network namespaces are, as iproute2 has it.
const namespaces = "/run/netns"

// prefix starts the name of every namespace of this package.
const prefix = "xroce"

// name makes the name of a namespace: xroce-PID-NUMBER-SIDE.
func name(pid int, number uint32, s Side) string {
	return fmt.Sprintf("%s-%d-%d-%v", prefix, pid, number, s)
}

// owner returns the process id in a name that this package made.
func owner(name string) (pid int, ok bool) {
	f := strings.Split(name, "-")
	if len(f) != 4 || f[0] != prefix || !slices.Contains([]string{"a", "b", "s"}, f[3]) {
		return 0, false
	}
	if _, err := strconv.ParseUint(f[2], 10, 32); err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(f[1])
	return pid, err == nil && pid > 0
}

// Remove unmounts and unlinks a named network namespace, also a name that another one who removes
// it, or a try that was killed, has left as a plain file. One that is gone is fine.
func Remove(name string) error {
	err := netns.DeleteNamed(name)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) {
		// EINVAL: a file without namespace.
		err = os.Remove(namespaces + "/" + name)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes the pairs of processes that do not live any more and returns the
// names of the namespaces. Pairs of living processes are left alone.
func Sweep() ([]string, error) {
	entries, err := os.ReadDir(namespaces)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("vethpair: %w", err)
	}
	var swept []string
	for _, e := range entries {
		pid, ok := owner(e.Name())
		if !ok || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if rmErr := Remove(e.Name()); rmErr != nil {
			err = errors.Join(err, fmt.Errorf("vethpair: %w", rmErr))
			continue
		}
		swept = append(swept, e.Name())
	}
	return swept, err
}
