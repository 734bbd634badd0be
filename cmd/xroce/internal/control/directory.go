package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// suffix ends the names of sockets; before it is the process number.
const suffix = ".sock"

// Directory is where the sockets of this user are: in XDG_RUNTIME_DIR, else for root
// in /run, else in the directory for temporary files.
func Directory() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "xroce")
	}
	if os.Geteuid() == 0 {
		return "/run/xroce"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("xroce-%d", os.Geteuid()))
}

// makeDirectory makes the directory, if it is not there, and makes sure that nobody
// else can enter it.
func makeDirectory(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return checkDirectory(dir)
}

// checkDirectory tells what is wrong with a directory that is there: in one for
// temporary files anybody may have made it.
func checkDirectory(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is no directory", dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d", dir, st.Uid)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%s has mode %04o: others can enter it", dir, st.Mode&0o777)
	}
	return nil
}

// socketOf is the socket of a process.
func socketOf(dir string, pid int) string {
	return filepath.Join(dir, strconv.Itoa(pid)+suffix)
}

// processes are those that have a socket in a directory, in the order of the names. A
// directory that is not there has none.
func processes(dir string) ([]int, error) {
	if err := checkDirectory(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		pid, err := strconv.Atoi(name)
		if ok && err == nil && pid > 0 && e.Type() == os.ModeSocket {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// dead reports whether a process is gone.
func dead(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
