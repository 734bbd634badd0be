package bridge

import (
	"net/netip"

	"xroce/roce/clock"
)

// Hosts know at which port an IP address is that no route names: where packets from it came from
// first. Who has an address keeps it until it has sent nothing for the age of the table, so nobody
// takes that of another. Each port has a share; one that is full learns no more until some of it
// is old.
type Hosts struct {
	share int
	age   clock.Time
	used  []int
	index map[netip.Addr]seat
	swept clock.Time
}

// A seat is where an address was heard, and when last.
type seat struct {
	port  Port
	heard clock.Time
}

// NewHosts makes an empty table, with the defaults of a Table.
func NewHosts(c Config) (*Hosts, error) {
	c, err := c.complete("hosts")
	if err != nil {
		return nil, err
	}
	return &Hosts{
		share: c.Size / c.Ports, age: c.Age, used: make([]int, c.Ports),
		index: map[netip.Addr]seat{},
	}, nil
}

// Len is how many addresses there are, with those that are too old.
func (h *Hosts) Len() int { return len(h.index) }

// Learn notes that an address sends by a port, and reports whether it is there: not when it is at
// another one, when the port has its share, and when no host can have it.
func (h *Hosts) Learn(now clock.Time, a netip.Addr, port Port) bool {
	if port < 0 || int(port) >= len(h.used) || !a.IsGlobalUnicast() {
		return false
	}
	if s, known := h.index[a]; known {
		if s.port != port && now-s.heard < h.age {
			return false
		}
		h.remove(a, s.port)
	}
	if h.used[port] >= h.share && !h.sweep(now, port) {
		return false
	}
	h.used[port]++
	h.index[a] = seat{port, now}
	return true
}

// sweep drops what is too old and reports whether a port has room then.
func (h *Hosts) sweep(now clock.Time, port Port) bool {
	if h.swept == 0 || now-h.swept >= sweepEvery {
		h.swept = max(now, 1)
		h.Expire(now)
	}
	return h.used[port] < h.share
}

// Expire drops what was not heard for too long.
func (h *Hosts) Expire(now clock.Time) {
	for a, s := range h.index {
		if now-s.heard >= h.age {
			h.remove(a, s.port)
		}
	}
}

func (h *Hosts) remove(a netip.Addr, port Port) {
	h.used[port]--
	delete(h.index, a)
}

// Forget drops all addresses of a port.
func (h *Hosts) Forget(port Port) {
	for a, s := range h.index {
		if s.port == port {
			h.remove(a, port)
		}
	}
}

// To is the port that an address is at, Drop for none that was heard lately, and for Inside.
func (h *Hosts) To(now clock.Time, a netip.Addr) Port {
	s, known := h.index[a]
	if !known || s.port == Inside || now-s.heard >= h.age {
		return Drop
	}
	return s.port
}
