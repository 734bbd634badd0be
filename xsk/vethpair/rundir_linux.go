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
func shareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	share := func() error { return unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	if err := share(); !errors.Is(err, unix.EINVAL) { // EINVAL: it is no mount
		return sharing(dir, err)
	}
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it goes the lock
	// Whoever may read the directory may hold its lock, for as long as he likes.
	err = await(func() (bool, error) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	err = share() // somebody may have made it one meanwhile
	if errors.Is(err, unix.EINVAL) {
		if err = unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = share()
		}
	}
	return sharing(dir, err)
}

// sharing says what failed. No error stays none.
func sharing(dir string, err error) error {
	if err != nil {
		err = fmt.Errorf("make %s a mount that is shared: %w", dir, err)
	}
	return err
}
