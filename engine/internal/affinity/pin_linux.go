package affinity

import "golang.org/x/sys/unix"

// Pin keeps the calling thread on a CPU, the first of which is 0. A CPU that is not there leaves
// the thread where it is. The goroutine must be locked to the thread (runtime.LockOSThread), and
// is to end with it: the thread is of no use to others any more.
func Pin(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set) // a wish
}
