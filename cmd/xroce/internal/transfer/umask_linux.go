package transfer

import (
	"io/fs"
	"os"
	"regexp"
	"strconv"
)

var umaskLine = regexp.MustCompile(`(?m)^Umask:\s*([0-7]+)$`)

// umask is which permission bits no file of this process gets, as proc(5) has it: umask(2) says it
// to who changes it, for all threads. Where there is no /proc it is what most have.
func umask() fs.FileMode {
	status, _ := os.ReadFile("/proc/self/status")
	if m := umaskLine.FindSubmatch(status); m != nil {
		if mask, err := strconv.ParseUint(string(m[1]), 8, 32); err == nil {
			return fs.FileMode(mask).Perm()
		}
	}
	return usualUmask
}
