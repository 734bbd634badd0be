package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 256 << 20

// askTime bounds how long one process may take to answer.
const askTime = 10 * time.Second

// Ask asks every process that has a socket in a directory, or only pid when that is
// not 0. Processes that end meanwhile are left out, and sockets that nobody listens at
// removed. The error tells of processes that did not answer as they should; the
// answers of the others are good. Processes are known by their number here; one in a
// PID namespace that is not below ours, by its number there.
func Ask(dir string, pid int, rows int, keys bool) ([]Answer, error) {
	d, err := openDirectory(dir, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	sockets, err := list(d)
	if err != nil {
		return nil, err
	}
	var answers []Answer
	var errs []error
	for _, s := range sockets {
		a, err := ask(d, s, pid, Request{Get: getResources, Rows: rows, Keys: keys})
		switch {
		case errors.Is(err, unix.ECONNREFUSED):
			// It listened before it had this name, and no other will have it: whoever
			// it was is gone. Somebody else may have been quicker.
			_ = unix.Unlinkat(int(d.Fd()), s.name, 0)
		case errors.Is(err, os.ErrNotExist), errors.Is(err, errNotAsked):
		case err != nil:
			errs = append(errs, fmt.Errorf("process %d: %w", s.pid, err))
		default:
			answers = append(answers, a)
		}
	}
	return answers, errors.Join(errs...)
}

// errNotAsked says that a process is not the one to be asked.
var errNotAsked = errors.New("another process")

// ask asks one process, if it is pid or pid is 0.
func ask(d *os.File, s socket, pid int, q Request) (Answer, error) {
	dialed, err := net.DialTimeout("unix", within(d, s.name), askTime)
	if err != nil {
		return Answer{}, err
	}
	conn := dialed.(*net.UnixConn)
	defer conn.Close()
	who, err := credentialsOf(conn)
	if err != nil {
		return Answer{}, err
	}
	if who.uid != os.Geteuid() {
		return Answer{}, fmt.Errorf("its socket is of user %d", who.uid)
	}
	if who.pid == 0 { // no process of our PID namespace
		who.pid = s.pid
	}
	if pid != 0 && pid != who.pid {
		return Answer{}, errNotAsked
	}
	if err := conn.SetDeadline(time.Now().Add(askTime)); err != nil {
		return Answer{}, err
	}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return Answer{}, err
	}
	var a Answer
	if err := json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("no answer: %w", err)
	}
	if a.Error != "" {
		return Answer{}, errors.New(a.Error)
	}
	a.PID = who.pid // what the kernel says, not what the answer claims
	return a, nil
}
