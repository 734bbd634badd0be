package vethpair

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// shareDir makes the directory of named namespaces a mount of its own, whose mounts others see, as
// `ip netns add` does when it finds none (ip/ipnetns.c of iproute2, whose lock this takes). When it
// finds ours without, it covers them with copies of themselves, and who removes one removes the
// copy: the namespace stays for ever, "device or resource busy".
func shareDir(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it goes the lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	share := func() error { return unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err = share()
	if errors.Is(err, unix.EINVAL) { // it is no mount
		if err = unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = share()
		}
	}
	if err != nil {
		return fmt.Errorf("make %s a mount that is shared: %w", dir, err)
	}
	return nil
}
