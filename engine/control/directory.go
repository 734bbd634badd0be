package control

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// Directory is where the sockets of this user are: for root in /run, whatever the
// environment says, which may be that of the user who became root; for others in
// XDG_RUNTIME_DIR, else in the directory for temporary files.
func Directory() string {
	if os.Geteuid() == 0 {
		return "/run/xroce"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "xroce")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("xroce-%d", os.Geteuid()))
}

// openDirectory opens a directory that nobody else can enter, or tells what is wrong
// with it: in one for temporary files anybody may have made it. With create it is made
// if it is not there. What is done there is done by the descriptor: the name may be
// that of another one by then.
func openDirectory(dir string, create bool) (*os.File, error) {
	if create {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(dir, flags, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is no directory", dir)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	d := os.NewFile(uintptr(fd), dir)
	if err := checkPrivate(d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// checkPrivate refuses a directory of somebody else, or that others can enter.
func checkPrivate(d *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return &os.PathError{Op: "fstat", Path: d.Name(), Err: err}
	}
	switch {
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d", d.Name(), st.Uid)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%s has mode %04o: others can enter it", d.Name(), st.Mode&0o777)
	}
	return nil
}

// within is the path of a name in an open directory. There are no bindat(2) and
// connectat(2), and it is short enough for a socket address wherever the directory is.
func within(d *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name)
}

// Names of sockets. A process number alone would not do: processes of several PID
// namespaces may share the directory.
const (
	newPrefix = ".new-" // before it listens, and nobody looks at it
	suffix    = ".sock"
)

var socketName = regexp.MustCompile(`^([1-9][0-9]{0,9})-[A-Z2-7]{26}\.sock$`)

// newName is a name that no socket had before, for one of a process.
func newName(pid int) string { return strconv.Itoa(pid) + "-" + rand.Text() + suffix }

// A socket is one of a directory.
type socket struct {
	name string
	pid  int // in its own PID namespace
}

// list lists the sockets in a directory.
func list(d *os.File) ([]socket, error) {
	entries, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var sockets []socket
	for _, e := range entries {
		m := socketName.FindStringSubmatch(e.Name())
		if m == nil || e.Type() != os.ModeSocket {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err == nil {
			sockets = append(sockets, socket{e.Name(), pid})
		}
	}
	return sockets, nil
}
