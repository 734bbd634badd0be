package bridge

import (
	"net/netip"

	"xroce/roce/clock"
)

// A Neighbour is who has an IP address, as hosts said by ARP or neighbour discovery.
type Neighbour struct {
	Addr   netip.Addr
	MAC    MAC
	Router bool // it said so (RFC 4861 4.4)
}

// Neighbours know who has an IP address at a peer, so that a question for it need not go to all.
// Each port has a share; one that is full learns no more until some of it is too old, which
// costs questions that go to all, and nothing else.
type Neighbours struct {
	share  int
	age    clock.Time
	used   []int
	index  map[netip.Addr]place
	swept  clock.Time
	missed uint64
}

// A place is where an address was heard.
type place struct {
	mac    MAC
	port   Port
	router bool
	heard  clock.Time
	moved  clock.Time // when somebody else said that he has it, 0 for never
}

// sweepEvery is how often at most a full share is looked through for what is too old.
const sweepEvery = clock.Second

// NewNeighbours makes an empty table, with the defaults of a Table.
func NewNeighbours(c Config) (*Neighbours, error) {
	c, err := c.complete("neighbours")
	if err != nil {
		return nil, err
	}
	return &Neighbours{
		share: c.Size / c.Ports, age: c.Age, used: make([]int, c.Ports),
		index: map[netip.Addr]place{},
	}, nil
}

// Len is how many addresses there are.
func (n *Neighbours) Len() int { return len(n.index) }

// Missed is how many were not learned because their port has its share.
func (n *Neighbours) Missed() uint64 { return n.missed }

// Learn notes what somebody at a port, or Inside, says of himself. An address that two say they
// have is not answered for until neither has been contradicted for the age of the table.
func (n *Neighbours) Learn(now clock.Time, who Neighbour, port Port) {
	if port < 0 || int(port) >= len(n.used) || !who.Addr.IsValid() || who.MAC.group() ||
		who.MAC == (MAC{}) {
		return
	}
	p := place{mac: who.MAC, port: port, router: who.Router, heard: now}
	if e, known := n.index[who.Addr]; known {
		switch {
		case now-e.heard >= n.age: // nobody contradicts
		case e.mac == who.MAC && e.port == port:
			p.moved = e.moved
		default:
			p.moved = max(now, 1)
		}
		n.remove(who.Addr, e.port)
	}
	if n.used[port] >= n.share && !n.sweep(now, port) {
		n.missed++
		return
	}
	n.used[port]++
	n.index[who.Addr] = p
}

// sweep drops what is too old and reports whether a port has room then.
func (n *Neighbours) sweep(now clock.Time, port Port) bool {
	if n.swept != 0 && now-n.swept < sweepEvery {
		return false
	}
	n.swept = now
	for a, e := range n.index {
		if now-e.heard >= n.age {
			n.remove(a, e.port)
		}
	}
	return n.used[port] < n.share
}

func (n *Neighbours) remove(a netip.Addr, port Port) {
	n.used[port]--
	delete(n.index, a)
}

// Forget drops all addresses of a port.
func (n *Neighbours) Forget(port Port) {
	for a, e := range n.index {
		if e.port == port {
			n.remove(a, port)
		}
	}
}

// Find returns who has an address at a peer. ok is false for an address that is not known, is
// inside, was not heard for too long, or was said to be at two places.
func (n *Neighbours) Find(now clock.Time, a netip.Addr) (who Neighbour, port Port, ok bool) {
	e, known := n.index[a]
	if !known || e.port == Inside || now-e.heard >= n.age ||
		e.moved != 0 && now-e.moved < n.age {
		return Neighbour{}, 0, false
	}
	return Neighbour{a, e.mac, e.router}, e.port, true
}
