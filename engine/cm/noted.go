package cm

import "sync"

// noted are connections of whose queue pairs the device told something, in a call that may not
// take the manager's lock: the service looks at them. It has a lock that is taken last.
type noted struct {
	mu    sync.Mutex
	conns []*Conn
}

func (n *noted) add(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
}

func (n *noted) take() []*Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	conns := n.conns
	n.conns = nil
	return conns
}
