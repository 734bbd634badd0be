package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Facts describe the machine and the code. What cannot be learnt is "unknown".
type Facts struct {
	Kernel     string `json:"kernel"`     // release, as uname -r
	CPU        string `json:"cpu"`        // model name
	CPUs       int    `json:"cpus"`       // that this process may use
	Hypervisor bool   `json:"hypervisor"` // the processor says that it is a virtual one
	Go         string `json:"go"`
	Arch       string `json:"arch"`
	Commit     string `json:"commit"` // with -dirty when the tree differs
}

// Look collects the facts. dir is a directory of the repository.
func Look(ctx context.Context, dir string) Facts {
	f := Facts{
		Kernel: "unknown", CPU: "unknown", CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Arch: runtime.GOARCH, Commit: commit(ctx, dir),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		f.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		f.CPU, f.Hypervisor = parseCPU(string(info))
	}
	return f
}

// parseCPU reads the first processor of /proc/cpuinfo.
func parseCPU(info string) (model string, hypervisor bool) {
	model = "unknown"
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "model name":
			model = value
		case "flags":
			for flag := range strings.FieldsSeq(value) {
				hypervisor = hypervisor || flag == "hypervisor"
			}
		case "":
			return model, hypervisor
		}
	}
	return model, hypervisor
}

// commit asks git, which go run does not do.
func commit(ctx context.Context, dir string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// Load is the load average of the last minute, -1 when the machine does not
// tell. The run itself is in it: only the first value says whether others were
// at work.
func Load() float64 {
	line, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(line), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}

// String is one line for people.
func (f Facts) String() string {
	kind := ""
	if f.Hypervisor {
		kind = ", virtual machine"
	}
	return fmt.Sprintf("%d × %s%s, Linux %s, %s/%s, commit %s",
		f.CPUs, f.CPU, kind, f.Kernel, f.Go, f.Arch, f.Commit)
}
