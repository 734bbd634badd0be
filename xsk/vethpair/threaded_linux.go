package vethpair

import (
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// setThreaded turns threaded NAPI of the end on. The only way to it on every
// kernel is a file of sysfs, and a sysfs shows the namespace it was mounted in:
// so a thread of its own, in a mount namespace of its own, mounts one, and ends.
func (e *End) setThreaded() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		done <- e.writeThreaded()
	}()
	return <-done
}

// writeThreaded mounts another /sys for the thread, which must not be used afterwards.
func (e *End) writeThreaded() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := netns.Set(e.ns); err != nil {
		return fmt.Errorf("enter %s: %w", e.Namespace, err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	return os.WriteFile("/sys/class/net/"+e.Name+"/threaded", []byte("1"), 0)
}
