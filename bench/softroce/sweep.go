package softroce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
)

// An owner is the process that a name belongs to, so that no two runs have one name and
// what a killed one left is known. The number of a process means something in its PID
// namespace only, and containers may share the directories of names.
type owner struct {
	pid   int
	space uint64 // its PID namespace, as in /proc/PID/ns/pid
}

// self is this process.
func self() (owner, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return owner{}, fmt.Errorf("softroce: the PID namespace: %w", err)
	}
	return owner{pid: os.Getpid(), space: st.Ino}, nil
}

// namePrefix begins all names, of namespaces and of directories.
const namePrefix = "xroce-vm-"

// String begins the names of what a process owns.
func (o owner) String() string { return fmt.Sprintf("%s%d-%d-", namePrefix, o.pid, o.space) }

// ownName begins the names of what this process makes.
func ownName() (string, error) {
	o, err := self()
	return o.String(), err
}

// ownerOf reads the owner from a name, and reports whether it has one.
func ownerOf(name string) (o owner, ok bool) {
	n, _ := fmt.Sscanf(name, namePrefix+"%d-%d-", &o.pid, &o.space)
	return o, n == 2 && o.pid > 0 && strings.HasPrefix(name, o.String())
}

// leftBehind reports whether the owner of a name is a process that lives no more. Of
// another PID namespace nobody can say that here.
func leftBehind(name string, here owner) bool {
	o, ok := ownerOf(name)
	return ok && o.space == here.space && errors.Is(unix.Kill(o.pid, 0), unix.ESRCH)
}

// namespaces is where named network namespaces are, as iproute2 has it.
const namespaces = "/run/netns"

// Sweep removes the namespaces and the files of processes that were killed.
func Sweep() error {
	here, err := self()
	if err != nil {
		return err
	}
	var failed error
	for dir, remove := range map[string]func(name string) error{
		namespaces: vethpair.Remove,
		os.TempDir(): func(name string) error {
			return os.RemoveAll(filepath.Join(os.TempDir(), name))
		},
	} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("softroce: %w", err))
		}
		for _, e := range entries {
			if !leftBehind(e.Name(), here) {
				continue
			}
			// Another run may sweep as well.
			if err := remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = errors.Join(failed, fmt.Errorf("softroce: %s: %w", e.Name(), err))
			}
		}
	}
	return failed
}
