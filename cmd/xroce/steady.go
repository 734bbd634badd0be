package main

import (
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/plain"
)

// A steadyListener accepts again after an error of one connection or of a moment: who makes
// connections and breaks them, or uses up descriptors, does not end the server.
type steadyListener struct {
	net.Listener
	tell   func(error)                          // of the first of several errors
	after  func(time.Duration) <-chan time.Time // time.After
	closed chan struct{}
	once   sync.Once
}

func (a *app) steady(l net.Listener) net.Listener {
	ration := &plain.Ration{Lines: maxComplaints, Span: complaintSpan}
	return &steadyListener{
		Listener: l, after: time.After, closed: make(chan struct{}),
		tell: func(err error) {
			if ok, left := ration.Spend(time.Now()); ok {
				a.logger.Warn("cannot accept a connection, going on", "error", err.Error(),
					"untold", left)
			}
		},
	}
}

// Bounds of the pause before the next try, which doubles: there is no knowing when a descriptor
// or memory comes free.
const (
	acceptPause   = 5 * time.Millisecond
	acceptPauseTo = time.Second
)

// Accept implements net.Listener. The error is one that does not pass.
func (l *steadyListener) Accept() (net.Conn, error) {
	for pause := acceptPause; ; pause = min(2*pause, acceptPauseTo) {
		conn, err := l.Listener.Accept()
		if err == nil || !isPassing(err) {
			return conn, err
		}
		if pause == acceptPause {
			l.tell(err)
		}
		select {
		case <-l.after(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// Close implements net.Listener.
func (l *steadyListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// isPassing reports whether an error of accept says nothing of the listener: there was no room for
// a connection, or it was broken before it was taken, of which accept(2) tells with its error.
func isPassing(err error) bool {
	for _, e := range []error{
		unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM,
		unix.ECONNABORTED, unix.ECONNRESET, unix.EPROTO, unix.EPERM, unix.ENETDOWN,
		unix.ENETUNREACH, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENOPROTOOPT, unix.EOPNOTSUPP,
		unix.EINTR,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
