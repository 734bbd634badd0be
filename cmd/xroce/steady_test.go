package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A failing listener returns its errors, one after the other, and then connections.
type failing struct {
	net.Listener
	errs   []error
	closed bool
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	if l.closed {
		return nil, net.ErrClosed
	}
	conn, _ := net.Pipe()
	return conn, nil
}

func (l *failing) Close() error {
	l.closed = true
	return nil
}

// TestServersOutliveErrors: what is wrong with one connection, or for a moment, is told once and
// ends no server; what is wrong with its socket does, and Close ends a pause.
func TestServersOutliveErrors(t *testing.T) {
	var stderr bytes.Buffer
	steady := func(errs ...error) (l *steadyListener, waited *time.Duration) {
		a := newApp(nil, nil)
		a.logger = slog.New(slog.NewTextHandler(&stderr, nil))
		l = a.steady(&failing{errs: errs}).(*steadyListener)
		waited = new(time.Duration)
		l.after = func(d time.Duration) <-chan time.Time {
			*waited += d
			now := make(chan time.Time, 1)
			now <- time.Time{}
			return now
		}
		return l, waited
	}
	l, waited := steady(unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ECONNABORTED)
	if conn, err := l.Accept(); conn == nil || err != nil || *waited != 15*acceptPause {
		t.Errorf("after errors that pass: %v, %v, and pauses of %v", conn, err, *waited)
	}
	if n := strings.Count(stderr.String(), "going on"); n != 1 {
		t.Errorf("told %d times: %s", n, &stderr)
	}
	l, _ = steady(unix.EMFILE, unix.EBADF)
	if _, err := l.Accept(); !errors.Is(err, unix.EBADF) {
		t.Errorf("after its socket is gone: %v", err)
	}
	l, _ = steady(unix.EMFILE)
	l.after = func(time.Duration) <-chan time.Time {
		go l.Close()
		return nil
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed in a pause: %v", err)
	}
}
