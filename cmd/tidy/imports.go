package tidy

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// module is the prefix of our own import paths. It is that of this package, so that
// `make module` need not change it.
var module = strings.TrimSuffix(reflect.TypeFor[source]().PkgPath(), "cmd/tidy")

// floors are the floors of the house from the ground up, each a list of the
// directories on it. A package imports its own floor and those below. On the last
// one are modules of their own, which use this one as anybody may.
var floors = [][]string{
	{"roce", "encap"},
	{"xsk", "bpf"},
	{"engine"},
	{"cmd", "bench"},
	{"docs/example", "docs/grpc"},
}

// speaking are the floors that speak to people.
var speaking = slices.Concat(floors[3:]...)

// pureRooms are the packages of the lowest floor from the ground up: each may
// import those before it. A new one has to be given its place here.
var pureRooms = []string{
	"roce/clock",
	"roce/counter",
	"roce/wire",
	"roce/internal/handle",
	"roce/internal/list",
	"roce/internal/timer",
	"roce/mem",
	"roce/recovery",
	"roce/cc",
	"roce/verbs",
	"roce/queue",
	"roce/cm",
	"roce/msg/match",
	"roce/msg",
	"roce/msg/dissect",
	"roce",
	"encap",
	"roce/gen",
	"roce/dissect",
	"encap/inner",
	"encap/bridge",
	"roce/dissect",
	"encap/ipoib",
	"encap/seal",
	"roce/analyze",
	"roce/roctest",
	"roce/internal/conversation",
}

// guests are the packages of others and the directories that may import them
// outside tests. docs/decisions.md has the reason for each.
var guests = []struct {
	prefix string
	dirs   []string
}{
	{"golang.org/x/sys", []string{"xsk", "bpf", "engine", "cmd", "bench"}},
	{"github.com/flynn/noise", []string{"engine/tunnel"}},
	{"golang.org/x/sync", []string{"engine", "cmd", "bench"}},
	{"github.com/cilium/ebpf", []string{"xsk", "bpf", "engine", "cmd", "bench"}},
	{"github.com/asavie/xdp", []string{"xsk/asavie", "bench"}},
	{"github.com/vishvananda/netlink", []string{
		"xsk/asavie", "xsk/vethpair", "engine/host", "engine/nic", "cmd", "bench",
	}},
	{"github.com/vishvananda/netns", []string{"xsk/vethpair", "engine", "cmd", "bench"}},
	{"github.com/safchain/ethtool", []string{
		"xsk/deepstack", "xsk/vethpair", "engine", "cmd", "bench",
	}},
	// Not in a command: the tables of its layers cost each start of one a third of its time.
	{"github.com/google/gopacket", []string{"engine/gopacketlayer", "engine/capture"}},
	{"github.com/klauspost/compress", []string{"engine/capture/read"}},
	{"github.com/spf13/cobra", []string{"cmd", "bench"}},
	{"github.com/spf13/pflag", []string{"cmd", "bench"}},
	{"github.com/prometheus", []string{"engine/metrics", "cmd", "bench"}},
	{"github.com/charmbracelet", []string{"cmd"}},
	{"github.com/HdrHistogram", []string{"cmd", "bench"}},
	{"go.yaml.in/yaml", []string{"cmd"}},
	{"gonum.org/v1/plot", []string{"bench"}},
	{"gonum.org/v1/plot", []string{"cmd", "bench"}},
	{"golang.org/x/perf", []string{"bench"}},
	{"golang.org/x/tools", []string{"cmd/crossvet"}},
	{"google.golang.org", []string{"docs/grpc"}},
}

// testGuests may be imported by tests and by packages made for them.
var testGuests = []string{
	"pgregory.net/rapid", "github.com/google/go-cmp", "go.uber.org/goleak",
	"golang.org/x/net/nettest",
}

// fenced are the only hand-written files that use unsafe and raw system calls, each
// with its reason. It is the one list of them: others refer to it.
var fenced = map[string]string{
	"xsk/sys_linux.go":           "rings shared with the kernel, and the calls of AF_XDP",
	"bpf/sys_linux.go":           "the question what a link is, which the library allocates for",
	"bpf/live/sys_linux.go":      "memory shared with a program, and the call that runs it",
	"roce/mem/address.go":        "regions are address ranges, not Go slices",
	"engine/nic/sys_linux.go":    "the ioctl of ethtool, for what no library has",
	"engine/tunnel/sys_linux.go": "TAP and TUN devices read and written without the runtime",
	"engine/pager/sys_linux.go": "memory that is named by address and may not be there, " +
		"and the calls that ask for it",
	"engine/internal/pagertest/place_linux.go": "the same for tests, which map it and unmap it",
	"xsk/xsktest/forbid_linux.go":              "a filter of system calls, for tests",
}

// importRules judge what a file imports.
var importRules = []rule{
	{"arrows", checkArrows},
	{"guests", checkGuests},
	{"unsafe", checkUnsafe},
	{"math/rand", checkRand},
}

// floorOf is the number of the floor that dir is on, -1 when on none.
func floorOf(dir string) int {
	return slices.IndexFunc(floors, func(dirs []string) bool { return within(dir, dirs...) })
}

// arrow says what is wrong with package from importing package to, both
// directories of this module. It returns "" when nothing is.
func arrow(from, to string) string {
	f, t := floorOf(from), floorOf(to)
	switch {
	case f < 0:
		return from + " is on no floor of the house"
	case t < 0:
		return to + " is on no floor of the house"
	case t > f:
		return fmt.Sprintf("%s imports %s, which is above it", from, to)
	case f == 1 && t == 0:
		return fmt.Sprintf("%s imports %s: only engine joins rings and transport", from, to)
	case f == 0 && t == 0:
		return pureArrow(from, to)
	}
	return ""
}

// pureArrow is arrow between two packages of the pure floor.
func pureArrow(from, to string) string {
	f, t := slices.Index(pureRooms, from), slices.Index(pureRooms, to)
	switch {
	case f < 0:
		return from + " has no place in pureRooms"
	case t < 0:
		return to + " has no place in pureRooms"
	case t >= f:
		return fmt.Sprintf("%s imports %s, which is above it in pureRooms", from, to)
	}
	return ""
}

// own returns the directory of a package of this module.
func own(importPath string) (dir string, ok bool) {
	return strings.CutPrefix(importPath, module)
}

// standard reports whether a package comes with Go.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	_, ours := own(importPath)
	return !strings.Contains(first, ".") && !ours
}

func checkArrows(s *source, report report) {
	if !s.isGo() || s.isTest() || s.tool() || s.inTestdata() {
		return
	}
	if floorOf(s.dir()) < 0 {
		report(0, "%s is on no floor of the house", s.dir())
		return
	}
	for _, im := range s.imports() {
		if to, ok := own(im.path); ok {
			if wrong := arrow(s.dir(), to); wrong != "" {
				report(im.line, "%s", wrong)
			}
		}
	}
}

// checkGuests lets the packages of others in where the table says so. Tests,
// and packages made for tests, may use any of them.
func checkGuests(s *source, report report) {
	if !s.isGo() || s.tool() || s.inTestdata() {
		return
	}
	forTests := s.isTest() || strings.HasSuffix(path.Base(s.dir()), "test")
	for _, im := range s.imports() {
		if _, ours := own(im.path); ours || standard(im.path) {
			continue
		}
		known, allowed := false, false
		for _, g := range guests {
			if within(im.path, g.prefix) {
				known, allowed = true, forTests || s.under(g.dirs...)
			}
		}
		if within(im.path, testGuests...) {
			known, allowed = true, forTests
		}
		switch {
		case !known:
			report(im.line, "%q is not in the table of guests", im.path)
		case !allowed:
			report(im.line, "%q must not be imported in %s", im.path, s.dir())
		}
	}
}

// checkUnsafe keeps unsafe and system calls by number to the fenced files.
// Generated BPF bindings and tests of layouts may import unsafe. Of package
// syscall the names of errors and signals remain; calls go through x/sys.
func checkUnsafe(s *source, report report) {
	if !s.isGo() || s.isTest() || fenced[s.path] != "" {
		return
	}
	for _, im := range s.imports() {
		switch {
		case im.path == "C":
			report(im.line, "cgo")
		case im.path == "unsafe" && !(s.generated() && s.under("bpf")):
			report(im.line, "unsafe outside the fenced files")
		}
	}
	s.uses("syscall", func(name string, line int) {
		if !syscallName.MatchString(name) {
			report(line, "syscall.%s: use golang.org/x/sys/unix", name)
		}
	})
	s.uses("golang.org/x/sys/unix", func(name string, line int) {
		if strings.HasPrefix(name, "Syscall") || strings.HasPrefix(name, "RawSyscall") {
			report(line, "raw system call unix.%s outside the fenced files", name)
		}
	})
}

// syscallName matches what package syscall is good for: the types and values
// that the standard library itself hands out.
var syscallName = regexp.MustCompile(
	`^(Errno|Signal|SysProcAttr|Conn|RawConn|SIG[A-Z]+|E[A-Z0-9]+)$`)

// checkRand refuses the old generator, whose global state is shared and whose
// seeds do not replay.
func checkRand(s *source, report report) {
	if !s.isGo() {
		return
	}
	for _, im := range s.imports() {
		if im.path == "math/rand" {
			report(im.line, "math/rand: use math/rand/v2")
		}
	}
}

// A node is a package of this module with all it depends on, directly or not.
type node struct {
	ImportPath string
	Deps       []string
}

// climbs names the packages that depend on a floor above their own. It repeats
// the rule on arrows on what the go command really builds.
func climbs(nodes []node) []string {
	var list []string
	for _, n := range nodes {
		from, ok := own(n.ImportPath)
		if !ok {
			continue
		}
		for _, dep := range n.Deps {
			to, ok := own(dep)
			if !ok {
				continue
			}
			f, t := floorOf(from), floorOf(to)
			if f < 0 || t < 0 || t > f || f == 1 && t == 0 {
				list = append(list, fmt.Sprintf("%s depends on %s", from, to))
			}
		}
	}
	return list
}
