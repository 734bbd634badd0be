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
// not 0. Processes that end meanwhile are left out, and the sockets of dead ones
// removed. The error tells of processes that did not answer as they should; the
// answers of the others are good.
func Ask(dir string, pid int, rows int, keys bool) ([]Answer, error) {
	pids, err := processes(dir)
	if err != nil {
		return nil, err
	}
	var answers []Answer
	var errs []error
	for _, p := range pids {
		if pid != 0 && p != pid {
			continue
		}
		a, err := ask(socketOf(dir, p), Request{Get: getResources, Rows: rows, Keys: keys})
		switch {
		case errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist):
			if dead(p) {
				_ = os.Remove(socketOf(dir, p)) // somebody else may have been quicker
			}
		case err != nil:
			errs = append(errs, fmt.Errorf("process %d: %w", p, err))
		default:
			a.PID = p // what the socket says, not what the answer claims
			answers = append(answers, a)
		}
	}
	return answers, errors.Join(errs...)
}

// ask asks one process.
func ask(path string, q Request) (Answer, error) {
	conn, err := net.DialTimeout("unix", path, askTime)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
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
	return a, nil
}
