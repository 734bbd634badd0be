package control

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/capture"
)

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 256 << 20

// askTime bounds how long one process may take to answer.
const askTime = 10 * time.Second

// stopTime bounds how long one may go on with a capture that it was told to end: a busy host
// may not schedule it for a while, and what is under way is yet to be read.
const stopTime = 3 * time.Second

// Ask asks every process that has a socket in a directory, or only pid when that is
// not 0, for the objects of its devices. Processes that end meanwhile are left out, and
// sockets that nobody listens at removed. The error tells of processes that did not answer
// as they should; the answers of the others are good. Processes are known by their number
// here; one in a PID namespace that is not below ours, by its number there. The end of the context
// ends it, with its cause.
func Ask(
	ctx context.Context, dir string, pid int, rows int, keys bool,
) ([]Answer, error) {
	return askAll(ctx, dir, pid, Request{Get: getResources, Rows: rows, Keys: keys})
}

// A Counting says what a program is to do about counters of its queue pairs.
type Counting uint8

// The ways to count. A program of an earlier version counts on as it did.
const (
	// CountAsBefore changes nothing.
	CountAsBefore Counting = iota
	// CountEach has those queue pairs that there are rows of count each by itself from now on,
	// and tell what they have counted since that was asked for first (engine.Device.CountQPs).
	CountEach
	// CountTogether ends that (engine.Device.CountQPsTogether).
	CountTogether
)

// AskStatistics is Ask for the counters of devices as well, without keys.
func AskStatistics(
	ctx context.Context, dir string, pid int, rows int, c Counting,
) ([]Answer, error) {
	return askAll(ctx, dir, pid, Request{
		Get: getStatistics, Rows: rows, CountQPs: c == CountEach, CountNoQPs: c == CountTogether,
	})
}

// askAll asks the processes that have a socket in a directory.
func askAll(ctx context.Context, dir string, pid int, q Request) ([]Answer, error) {
	var answers []Answer
	err := each(ctx, dir, func(d *os.File, s socket) error {
		a, err := ask(ctx, d, s, pid, q)
		if err == nil {
			answers = append(answers, a)
		}
		return err
	})
	return answers, err
}

// each calls a function for each socket in a directory. Its error is that of the function for
// those that it should work with, or why the context ended.
func each(ctx context.Context, dir string, do func(d *os.File, s socket) error) error {
	d, err := openDirectory(dir, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	sockets, err := list(d)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sockets {
		err := do(d, s)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, unix.ECONNREFUSED):
			// It listened before it had this name, and no other will have it: whoever
			// it was is gone. Somebody else may have been quicker.
			_ = unix.Unlinkat(int(d.Fd()), s.name, 0)
		case err == nil, errors.Is(err, os.ErrNotExist), errors.Is(err, errNotAsked):
		default:
			errs = append(errs, fmt.Errorf("process %d: %w", s.pid, err))
		}
	}
	return errors.Join(errs...)
}

// errNotAsked says that a process is not the one to be asked.
var errNotAsked = errors.New("another process")

// ask asks one process, if it is pid or pid is 0. One that hangs up is asked once more: where it
// has ended nobody listens any more, and where it had no place for us it may have one now.
func ask(ctx context.Context, d *os.File, s socket, pid int, q Request) (Answer, error) {
	conn, _, a, err := call(ctx, d, s, pid, q)
	if hungUp(err) {
		conn, _, a, err = call(ctx, d, s, pid, q)
	}
	if err != nil {
		return Answer{}, err
	}
	return a, conn.Close()
}

// hungUp reports whether an error says that the other end has closed the connection, as also that
// of a process does which ends.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// limit gives a connection so much time, and none when the context ends before free is called.
func limit(
	ctx context.Context, conn net.Conn, within time.Duration,
) (free func() bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }), nil
}

// call asks one process, if it is pid or pid is 0, and returns the connection with what
// comes behind the answer. The answer is a line.
func call(
	ctx context.Context, d *os.File, s socket, pid int, q Request,
) (conn *net.UnixConn, rest *bufio.Reader, a Answer, err error) {
	dialer := net.Dialer{Timeout: askTime}
	dialed, err := dialer.DialContext(ctx, "unix", within(d, s.name))
	if err != nil {
		return nil, nil, a, err
	}
	defer func() {
		if err != nil {
			dialed.Close()
		}
	}()
	conn = dialed.(*net.UnixConn)
	who, err := credentialsOf(conn)
	if err != nil {
		return nil, nil, a, err
	}
	if who.uid != os.Geteuid() {
		return nil, nil, a, fmt.Errorf("its socket is of user %d", who.uid)
	}
	if who.pid == 0 { // no process of our PID namespace
		who.pid = s.pid
	}
	if pid != 0 && pid != who.pid {
		return nil, nil, a, errNotAsked
	}
	free, err := limit(ctx, conn, askTime)
	if err != nil {
		return nil, nil, a, err
	}
	defer free()
	q.Version = version
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return nil, nil, a, err
	}
	rest = bufio.NewReader(conn)
	line, err := readLine(rest, maxAnswer)
	at := time.Now()
	if err != nil {
		return nil, nil, a, fmt.Errorf("no answer: %w", err)
	}
	if a, err = parseAnswer(line, &q); err != nil {
		return nil, nil, a, err
	}
	a.PID, a.At = who.pid, at // what the kernel says, not what the answer claims
	return conn, rest, a, nil
}

// A RefusedError is what a process says why it does not give what it was asked for: at most 2 KiB
// and their length, on one line, in which nothing commands a terminal.
type RefusedError struct{ Reason string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// readLine reads a line of at most so many bytes. Memory is taken for what has come.
func readLine(r *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > most {
			return nil, fmt.Errorf("longer than %d bytes", most)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// A Query says whose packets are wanted, and which.
type Query struct {
	PID    int    // of the process, 0 for any
	Device string // its interface; "" with a PID, when the process has but one
	Snap   int    // bytes of each packet, 0 for all
	Filter string // an expression of package filter

	begin time.Duration // for tests: how long the begin of the capture may take, 0 for askTime
}

// Packets are the packets of a device of another process. It is not safe for concurrent use,
// but for Stop.
type Packets struct {
	*capture.Reader
	PID  int    // of the process
	Comm string // its name
	conn *net.UnixConn

	stopTime time.Duration // how long it may go on after Stop
}

// ErrNoDevice says that no process has a device of that name.
var ErrNoDevice = errors.New("no xroce process has that device")

// Watch begins to read the packets of a device of another process. They end with io.EOF when the
// process, or the device, does, and after Stop: with statistics, when the process could say the
// last word. It could not when it was killed, or when we were a second behind at its end. Then
// they end with the last that came whole, and one that was cut is left out.
//
// The end of the context ends the beginning; a capture that is under way it does not touch.
func Watch(ctx context.Context, dir string, q Query) (*Packets, error) {
	var found *Packets
	err := each(ctx, dir, func(d *os.File, s socket) error {
		if found != nil {
			return nil
		}
		if q.PID == 0 && q.Device != "" {
			has, err := hasDevice(ctx, d, s, q.Device)
			if err != nil || !has {
				return err
			}
		}
		conn, rest, a, err := call(ctx, d, s, q.PID, Request{
			Get: getPackets, Device: q.Device, Snap: q.Snap, Filter: q.Filter,
		})
		if err != nil {
			return err
		}
		// The begin of the capture is there at once, what follows when there are packets.
		free, err := limit(ctx, conn, cmp.Or(q.begin, askTime))
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		r, err := capture.NewReader(rest)
		if err == nil && !free() {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = conn.SetDeadline(time.Time{})
		}
		if err != nil {
			return errors.Join(fmt.Errorf("no capture: %w", err), conn.Close())
		}
		found = &Packets{
			Reader: r, PID: a.PID, Comm: a.Comm, conn: conn, stopTime: stopTime,
		}
		return nil
	})
	switch {
	case found != nil:
		return found, nil
	case err != nil:
		return nil, err
	}
	return nil, ErrNoDevice
}

// hasDevice asks a process whether it has a device.
func hasDevice(ctx context.Context, d *os.File, s socket, name string) (bool, error) {
	a, err := ask(ctx, d, s, 0, Request{Get: getResources})
	return slices.ContainsFunc(a.Devices, func(r engine.Resources) bool {
		return r.Device == name
	}), err
}

// Next is that of the Reader. When the program does not heed Stop, or hangs up in the middle of a
// block, the capture ends all the same, without statistics.
func (p *Packets) Next() (*capture.Packet, error) {
	packet, err := p.Reader.Next()
	if hungUp(err) || errors.Is(err, os.ErrDeadlineExceeded) { // there is none but that of Stop
		err = io.EOF
	}
	return packet, err
}

// Stop ends the capture: the Reader then ends with what was under way, and the statistics.
// It may be called while the Reader waits. Who does not end it is given up after a while.
func (p *Packets) Stop() error {
	return errors.Join(p.conn.SetReadDeadline(time.Now().Add(p.stopTime)), p.conn.CloseWrite())
}

// Close gives the connection back. The process is not disturbed by it.
func (p *Packets) Close() error { return p.conn.Close() }
