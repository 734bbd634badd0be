package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/plain"
)

// Bounds of connections to a server of one client which have not said anything yet.
const (
	maxUnheard    = 64 // at once
	firstWordTime = 30 * time.Second
	firstWordLen  = 4 // bytes
)

// A doorman lets in the first connection that says what a client of the examples and of perftest
// says first: a LID as hexadecimal digits, or a version. Who connects and says nothing, as one that
// looks for open ports, or something else, has no place.
type doorman struct {
	strange func(address string, err error) // is told who is no client
	ctx     context.Context                 // until somebody is in
	in      chan net.Conn
	running sync.WaitGroup
}

// letIn waits for the client. The listener is closed then, and when the context ends.
func (a *app) letIn(ctx context.Context, listener net.Listener) (conn net.Conn, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &doorman{
		strange: a.noClients(), ctx: ctx, in: make(chan net.Conn),
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	failed := make(chan error, 1)
	d.running.Go(func() { failed <- d.accept(newFewConns(listener, maxUnheard)) })
	select {
	case conn = <-d.in:
	case err = <-failed:
	}
	cancel()
	d.running.Wait()
	return conn, err
}

// accept accepts until the listener is closed.
func (d *doorman) accept(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		d.running.Go(func() { d.hear(conn) })
	}
}

// hear lets a connection in if it says what a client says.
func (d *doorman) hear(conn net.Conn) {
	stop := context.AfterFunc(d.ctx, func() { conn.Close() })
	word, err := firstWord(conn, peer.Stretched(d.ctx, firstWordTime))
	if !stop() {
		return // somebody else is in
	}
	if err == nil {
		select {
		case d.in <- &heardConn{Conn: conn, word: word}:
			return
		case <-d.ctx.Done():
		}
	}
	conn.Close()
	if err != nil {
		d.strange(conn.RemoteAddr().String(), err)
	}
}

// noClients returns what tells of those who come to a server of one client and are none.
func (a *app) noClients() func(address string, err error) {
	ration := &plain.Ration{Lines: maxComplaints, Span: complaintSpan}
	return func(address string, err error) {
		if ok, left := ration.Spend(time.Now()); ok {
			a.logger.Warn("no client", "address", address, "error", err.Error(), "untold", left)
		}
	}
}

// errNoClient says that a connection is of something else.
var errNoClient = errors.New("it does not say what a client says")

// firstWord reads what a client says first, which it says in time.
func firstWord(conn net.Conn, most time.Duration) ([]byte, error) {
	if err := conn.SetDeadline(time.Now().Add(most)); err != nil {
		return nil, err
	}
	word := make([]byte, firstWordLen)
	if n, err := io.ReadFull(conn, word); err != nil {
		return nil, fmt.Errorf("%w, and said %d bytes: %w", errNoClient, n, err)
	}
	if strings.Trim(string(word), "0123456789abcdefABCDEF.") != "" {
		return nil, fmt.Errorf("%w: %q", errNoClient, word)
	}
	return word, conn.SetDeadline(time.Time{})
}

// A heardConn is a connection of which something was read already.
type heardConn struct {
	net.Conn
	word []byte // that
}

// Read implements net.Conn.
func (c *heardConn) Read(b []byte) (int, error) {
	if len(c.word) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.word)
	c.word = c.word[n:]
	return n, nil
}
