package control

import (
	"net"
	"slices"
	"sync"

	"xroce/engine/crowd"
)

// A lobby holds connections that are not served yet. It is never full: one that has not asked
// for anything gives way, of the process that has most of those, and where all have asked, one of
// them in the same way.
type lobby struct {
	mu      sync.Mutex
	waiting []*visitor // the one that came first is first
}

// A visitor is a connection in a lobby.
type visitor struct {
	conn  net.Conn
	pid   int // of who connected
	asked bool
	gone  chan struct{} // closed when it had to give way
}

// enter takes note of a connection. The one that has to give way is closed, which who serves it
// notices.
func (l *lobby) enter(conn net.Conn, pid int) *visitor {
	v := &visitor{conn: conn, pid: pid, gone: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		i := crowd.GivesWay(l.waiting, func(v *visitor) (int, bool) { return v.pid, !v.asked })
		if i < 0 {
			i = crowd.GivesWay(l.waiting, func(v *visitor) (int, bool) { return v.pid, true })
		}
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
