package main

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"xroce/engine/crowd"
)

// A fewConns is a listener with so many connections at once. It is never full: the one that came
// first gives way, of the host that has most, so a stranger who holds many drives out his own.
type fewConns struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*fewConn // the one that came first is first
}

func newFewConns(l net.Listener, most int) *fewConns {
	return &fewConns{Listener: l, most: most}
}

// Accept implements net.Listener.
func (l *fewConns) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &fewConn{Conn: conn, of: l}
	if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		c.host = crowd.Host(from.Addr())
	}
	if crowded := l.add(c); crowded != nil {
		_ = crowded.Close() // who has it notices
	}
	return c, nil
}

// add takes note of a connection, and returns the one that has to give way to it, nil for none.
func (l *fewConns) add(c *fewConn) (crowded *fewConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) <= l.most {
		return nil
	}
	return l.open[crowd.GivesWay(l.open, func(c *fewConn) (netip.Prefix, bool) {
		return c.host, true
	})]
}

// A fewConn gives its place back when it is closed. net/http may close one twice, from two
// goroutines.
type fewConn struct {
	net.Conn
	of   *fewConns
	host netip.Prefix
}

// Close implements net.Conn.
func (c *fewConn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(x *fewConn) bool { return x == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
