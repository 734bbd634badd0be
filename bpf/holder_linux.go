package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A holder is who keeps a program on an interface, as far as it can be known.
type holder struct {
	link    uint32 // id of the bpf_link that attaches it, 0 for none that is known
	sure    bool   // all links were looked at: 0 means that there is none
	pid     int    // of a process that has the link open, 0 for none that is visible
	command string // its command line
}

// findHolder looks for what attaches a program. A process that has the link open tells in
// /proc, to those who may look into it; all links can be listed with CAP_SYS_ADMIN.
func findHolder(prog uint32) holder {
	var h holder
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil || !strings.Contains(target, "bpf_link") {
			continue
		}
		dir, fd := filepath.Split(file)
		info, err := os.ReadFile(filepath.Join(dir, "../fdinfo", fd))
		if id, ok := linkOf(string(info), prog); err == nil && ok {
			pid := strings.Split(file, "/")[2]
			h.link, h.command = id, commandOf(pid)
			h.pid, _ = strconv.Atoi(pid) // a number, as the pattern has it
			return h
		}
	}
	var all link.Iterator
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err == nil && info.Type == link.XDPType && uint32(info.Program) == prog {
			h.link = uint32(info.ID)
		}
	}
	h.sure = all.Err() == nil
	return h
}

// linkOf reads what /proc/PID/fdinfo says of a bpf_link (kernel kernel/bpf/syscall.c
// bpf_link_show_fdinfo), and reports whether it attaches this program.
func linkOf(info string, prog uint32) (id uint32, ok bool) {
	values := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	n, err := strconv.ParseUint(values["link_id"], 10, 32)
	ok = err == nil && values["link_type"] == "xdp" &&
		values["prog_id"] == strconv.FormatUint(uint64(prog), 10)
	return uint32(n), ok
}

// maxCommand bounds how much of a command line is told, in bytes.
const maxCommand = 200

// commandOf is the command line of a process, on one line whatever is in it.
func commandOf(pid string) string {
	line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // gone: the number is all there is
	text := strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
	quoted := strconv.QuoteToASCII(text[:min(len(text), maxCommand)])
	return quoted[1 : len(quoted)-1]
}

// cure says how to get rid of the program. One that is attached by a link goes with that
// and by nothing else: the kernel refuses to replace it.
func (h holder) cure(iface string) string {
	off := "ip link set dev " + iface + " xdp off"
	switch {
	case h.link != 0 && h.pid != 0:
		return fmt.Sprintf("end that process, or run: bpftool link detach id %d", h.link)
	case h.link != 0:
		return fmt.Sprintf("end the process that holds it, which is not visible from here, or "+
			"run: bpftool link detach id %d", h.link)
	case h.sure:
		return "no process holds it; run: " + off
	}
	return "end the process that owns it; 'bpftool link' (as root) tells whether a link holds " +
		"it, for: bpftool link detach id ID; if none does, run: " + off
}

// foreignProgram is the error of an interface that has a program of somebody else.
type foreignProgram struct{ text string }

func (e foreignProgram) Error() string { return e.text }

// Unwrap makes it both ErrForeignProgram and the errno that the kernel has for it.
func (e foreignProgram) Unwrap() []error { return []error{ErrForeignProgram, unix.EBUSY} }

// foreignError says who is in the way and how to get rid of it.
func foreignError(dev device) error {
	name := "of unknown name"
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(dev.progID))
	switch {
	case errors.Is(err, unix.EPERM):
		name += " (reading it needs CAP_SYS_ADMIN)"
	case err == nil:
		if info, err := prog.Info(); err == nil {
			name = strconv.Quote(info.Name)
		}
		prog.Close()
	}
	h := findHolder(dev.progID)
	text := ErrForeignProgram.Error()
	if h.pid != 0 {
		text += fmt.Sprintf(", of pid %d (%s)", h.pid, h.command)
	}
	text += fmt.Sprintf(": program id %d %s", dev.progID, name)
	if h.link != 0 {
		text += fmt.Sprintf(", link id %d", h.link)
	}
	return &Error{
		Op: "attach to", Interface: dev.name, Err: foreignProgram{text}, Hint: h.cure(dev.name),
	}
}
