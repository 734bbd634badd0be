package xsk_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain fails the run when a test left a socket or the mapping of one behind.
func TestMain(m *testing.M) {
	if task := os.Getenv(taskEnv); task != "" {
		os.Exit(tasks[task]())
	}
	before := readHoldings()
	code := m.Run()
	if after := readHoldings(); code == 0 && after.leakedSince(before) {
		fmt.Fprintf(os.Stderr, "left behind: %+v, at the start %+v\n", after, before)
		code = 1
	}
	os.Exit(code)
}

// holdings are what a process holds of what a socket is made of.
type holdings struct {
	fds      int // open descriptors of any kind
	sockets  int // descriptors that are sockets
	events   int // descriptors that are eventfds
	mappings int // memory mappings of sockets: rings
	memoryKB int // size of the address space
}

// leakedSince reports whether there is more of something that only sockets have.
func (h holdings) leakedSince(before holdings) bool {
	return h.sockets > before.sockets || h.mappings > before.mappings
}

// readHoldings asks /proc.
func readHoldings() (h holdings) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the descriptor that read the directory
		}
		h.fds++
		if strings.HasPrefix(target, "socket:") {
			h.sockets++
		}
		if strings.Contains(target, "eventfd") {
			h.events++
		}
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	h.mappings = strings.Count(string(maps), "socket:[")
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		fmt.Sscanf(line, "VmSize: %d kB", &h.memoryKB)
	}
	return h
}
