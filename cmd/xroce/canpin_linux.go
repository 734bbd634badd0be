package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// canPin tries what the packet loop does later, on a thread that ends with it.
func canPin(cpu int) bool {
	var set unix.CPUSet
	set.Set(cpu)
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- unix.SchedSetaffinity(0, &set)
	}()
	return <-result == nil
}
