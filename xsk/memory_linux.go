package xsk

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where cgroups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// MemoryLimits needs no privilege. What cannot be read is no limit.
func (linux) MemoryLimits() MemoryLimits {
	m := MemoryLimits{Locked: Unlimited, Charged: Unlimited}
	var lock unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lock)
	if err == nil && lock.Cur <= math.MaxInt64 && !mayLock() {
		m.Locked = int64(lock.Cur)
	}
	if groups, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		m.charge(string(groups), cgroupRoot)
	}
	return m
}

// mayLock reports whether this thread has CAP_IPC_LOCK, which lifts the limit of locked
// memory. In a user namespace it does not, and then registering the frames fails.
func mayLock() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&hdr, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}

// A cgroupFiles are the names of the memory controller's files in a version of cgroups
// (kernel Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
// reclaimable are the lines of memory.stat about pages that the kernel takes away before it kills.
type cgroupFiles struct {
	limit, usage string
	reclaimable  [2]string
}

var (
	cgroup2 = cgroupFiles{
		"memory.max", "memory.current", [2]string{"inactive_file", "active_file"},
	}
	cgroup1 = cgroupFiles{
		"memory.limit_in_bytes", "memory.usage_in_bytes",
		[2]string{"total_inactive_file", "total_active_file"},
	}
)

// charge takes over what the memory cgroups of a process have left, that it is in
// according to a file like /proc/self/cgroup. Those above it limit it as well.
func (m *MemoryLimits) charge(groups, root string) {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		files, mount := cgroup1, filepath.Join(root, "memory")
		switch {
		case fields[1] == "":
			files, mount = cgroup2, root
		case !strings.Contains(","+fields[1]+",", ",memory,"):
			continue
		}
		// In a container the group may be mounted as the root, and have another name.
		for group := filepath.Clean("/" + fields[2]); ; group = filepath.Dir(group) {
			if left, ok := files.left(filepath.Join(mount, group)); ok && left < m.Charged {
				m.Charged, m.Cgroup = left, group
			}
			if group == "/" {
				break
			}
		}
	}
}

// left is how many bytes a cgroup has left, and whether it has a limit.
func (f cgroupFiles) left(dir string) (left int64, ok bool) {
	limit, ok := readNumber(filepath.Join(dir, f.limit))
	if !ok || limit > 1<<60 { // what cgroups of version 1 have for none
		return 0, false
	}
	usage, ok := readNumber(filepath.Join(dir, f.usage))
	if !ok {
		return 0, false
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat")) // without it nothing is
	for line := range strings.Lines(string(stat)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains(f.reclaimable[:], name) {
			n, _ := strconv.ParseInt(value, 10, 64)
			usage -= max(0, n)
		}
	}
	return max(0, limit-usage), true
}

// readNumber reads a file with a number, and reports whether there is one: "max" is none.
func readNumber(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n >= 0
}
