package xsktest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Overruns is how many packets the backlogs of all processors had no room for so far, which all
// network namespaces of the host fill: the second column of softnet_stat, hexadecimal (kernel
// net/core/net-procfs.c). A frame on a veth pair may be among them.
func Overruns(t testing.TB) (n uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		dropped, err := strconv.ParseUint(strings.Fields(line)[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		n += dropped
	}
	return n
}
