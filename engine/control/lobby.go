package control

import (
	"net"
	"slices"
	"sync"
)

// A lobby holds connections that are not served yet. It is never full: one that has not asked
// for anything gives way, the one that came first, and where all have asked, that.
type lobby struct {
	mu      sync.Mutex
	waiting []*visitor // the one that came first is first
}

// A visitor is a connection in a lobby.
type visitor struct {
	conn  net.Conn
	asked bool
	gone  chan struct{} // closed when it had to give way
}

// enter takes note of a connection. The one that has to give way is closed, which who serves it
// notices.
func (l *lobby) enter(conn net.Conn) *visitor {
	v := &visitor{conn: conn, gone: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		i := max(slices.IndexFunc(l.waiting, func(v *visitor) bool { return !v.asked }), 0)
		_ = l.waiting[i].conn.Close() // its client has no use for the error
		close(l.waiting[i].gone)
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.waiting = append(l.waiting, v)
	return v
}

// asks takes note that a visitor has asked for something.
func (l *lobby) asks(v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.asked = true
}

// leave takes out a visitor that is served, or has given way.
func (l *lobby) leave(v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(w *visitor) bool { return w == v })
}
