package host

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// A namespace is a network namespace that threads can enter.
type namespace struct{ fd int }

// openNamespace opens that of the calling thread.
func openNamespace() (namespace, error) {
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return namespace{-1}, fmt.Errorf("host: network namespace: %w", err)
	}
	return namespace{fd}, nil
}

// close gives it back; one that was never opened is fine.
func (n namespace) close() error {
	if n.fd < 0 {
		return nil
	}
	return unix.Close(n.fd)
}

// clone opens it once more.
func (n namespace) clone() (namespace, error) {
	fd, err := unix.FcntlInt(uintptr(n.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return namespace{-1}, fmt.Errorf("host: network namespace: %w", err)
	}
	return namespace{fd}, nil
}

// same reports whether both are one.
func (n namespace) same(o namespace) bool {
	var a, b unix.Stat_t
	if unix.Fstat(n.fd, &a) != nil || unix.Fstat(o.fd, &b) != nil {
		return false
	}
	return a.Dev == b.Dev && a.Ino == b.Ino
}

// do runs f on a thread in the namespace. Where the thread is there already, as it is unless the
// program has several, nothing needs a privilege; to enter another one needs CAP_SYS_ADMIN.
func (n namespace) do(f func() error) (err error) {
	runtime.LockOSThread()
	unlock := true
	defer func() {
		if unlock {
			runtime.UnlockOSThread()
		}
	}()
	old, err := openNamespace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.close()) }()
	if n.same(old) {
		return f()
	}
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("host: enter the network namespace of the interface: %w", err)
	}
	defer func() {
		// A thread that cannot go back stays locked, and ends with the goroutine.
		unlock = unix.Setns(old.fd, unix.CLONE_NEWNET) == nil
	}()
	return f()
}
