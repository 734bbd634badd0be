package engine

import "golang.org/x/sys/unix"

// pinThread keeps the calling thread on a CPU, the first of which is 0. A CPU that is
// not there leaves the thread where it is.
func pinThread(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}
