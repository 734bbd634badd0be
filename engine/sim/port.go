package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk"
)

// Implementation constants of a port.
const (
	maxFrame  = 4500 // an Ethernet frame of the largest MTU that a port may have
	maxMTU    = maxFrame - 22
	portQueue = 1 << 14 // frames under way to one port
	txFrames  = 256
)

// PortConfig says what a port is.
type PortConfig struct {
	Name  string
	MAC   [6]byte
	MTU   int // bytes, at most 4478
	Addrs []netip.Addr
}

// A Port is one end of a simulated network: an xsk.Link and an engine.Host in
// one, for engine.OpenLink.
type Port struct {
	network *Network
	config  PortConfig

	arrivals    []arrival // a heap by time, then by order of sending
	lastInOrder roce.Time
	wake        chan struct{}

	tx     [][]byte // buffers of free transmit frames
	queued [][]byte
	stats  xsk.Stats
	closed bool
}

// An arrival is a frame under way.
type arrival struct {
	at    roce.Time
	order uint64
	frame []byte
}

func (a arrival) before(b arrival) bool {
	return a.at < b.at || (a.at == b.at && a.order < b.order)
}

var (
	_ xsk.Link    = (*Port)(nil)
	_ engine.Host = (*Port)(nil)
)

// NewPort adds a port to the network.
func (n *Network) NewPort(c PortConfig) (*Port, error) {
	if c.MTU < 0 || c.MTU > maxMTU {
		return nil, fmt.Errorf("sim: MTU %d is not in 0..%d", c.MTU, maxMTU)
	}
	p := &Port{network: n, config: c, wake: make(chan struct{}, 1)}
	for range txFrames {
		p.tx = append(p.tx, make([]byte, maxFrame))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports[c.MAC] != nil {
		return nil, fmt.Errorf("sim: MAC address % x is taken", c.MAC)
	}
	n.ports[c.MAC] = p
	return p, nil
}

// Port implements engine.Host.
func (p *Port) Port() engine.Port {
	return engine.Port{
		Name: p.config.Name, MAC: p.config.MAC, MTU: p.config.MTU, Up: true,
		Addrs: p.config.Addrs,
	}
}

// Resolve implements engine.Host: every port knows every other.
func (p *Port) Resolve(_ context.Context, _, dst netip.Addr) ([6]byte, error) {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	for mac, other := range p.network.ports {
		for _, a := range other.config.Addrs {
			if a == dst {
				return mac, nil
			}
		}
	}
	return [6]byte{}, fmt.Errorf("%w: %s", engine.ErrNoNeighbour, dst)
}

// Info implements xsk.Link.
func (p *Port) Info() xsk.Info {
	return xsk.Info{
		Backend: "sim", Interface: p.config.Name, MTU: p.config.MTU, MaxFrame: maxFrame,
		TxFrames: txFrames,
	}
}

// Receive implements xsk.Link: it hands out the frames whose time has come.
func (p *Port) Receive(dst []xsk.RxFrame) int {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	now, got := n.clock.Now(), 0
	for got < len(dst) && len(p.arrivals) > 0 && p.arrivals[0].at <= now {
		dst[got] = xsk.RxFrame{Head: p.pop().frame}
		p.stats.RxPackets++
		p.stats.RxBytes += uint64(len(dst[got].Head))
		got++
	}
	n.counts.Delivered += uint64(got)
	return got
}

// Release implements xsk.Link.
func (p *Port) Release(frames []xsk.RxFrame) {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range frames {
		n.free = append(n.free, frames[i].Head)
		frames[i] = xsk.RxFrame{}
	}
}

// Reserve implements xsk.Link.
func (p *Port) Reserve(dst []xsk.TxFrame) int {
	n := min(len(dst), len(p.tx))
	for i := range n {
		last := len(p.tx) - 1
		dst[i] = xsk.TxFrame{Data: p.tx[last]}
		p.tx = p.tx[:last]
	}
	return n
}

// Return implements xsk.Link.
func (p *Port) Return(frames []xsk.TxFrame) {
	for i := range frames {
		p.tx = append(p.tx, frames[i].Data)
	}
}

// Transmit implements xsk.Link.
func (p *Port) Transmit(frames []xsk.TxFrame) {
	for i := range frames {
		p.queued = append(p.queued, frames[i].Data[:frames[i].Len])
		p.stats.TxPackets++
		p.stats.TxBytes += uint64(frames[i].Len)
	}
}

// Pending implements xsk.Link: a flush leaves nothing.
func (p *Port) Pending() bool { return false }

// Flush implements xsk.Link.
func (p *Port) Flush() error {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.closed {
		return errors.New("sim: the port is closed")
	}
	for i, frame := range p.queued {
		n.send(frame)
		p.tx = append(p.tx, frame[:maxFrame])
		p.queued[i] = nil
	}
	p.queued = p.queued[:0]
	return nil
}

// Wait implements xsk.Link, in real time: it is not for a virtual clock.
func (p *Port) Wait(timeout time.Duration) error {
	p.network.mu.Lock()
	if len(p.arrivals) > 0 {
		left := max(0, time.Duration(p.arrivals[0].at-p.network.clock.Now()))
		if timeout < 0 || left < timeout {
			timeout = left
		}
	}
	p.network.mu.Unlock()
	if timeout == 0 {
		return nil
	}
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-p.wake:
	case <-expired:
	}
	return nil
}

// Wake implements xsk.Link.
func (p *Port) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Stats implements xsk.Link.
func (p *Port) Stats() (xsk.Stats, error) {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	return p.stats, nil
}

// Close implements xsk.Link and engine.Host: the port leaves the network.
func (p *Port) Close() error {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	if !p.closed {
		p.closed = true
		delete(p.network.ports, p.config.MAC)
	}
	return nil
}

// push adds a frame under way. The caller holds the network's lock.
func (p *Port) push(a arrival) {
	p.arrivals = append(p.arrivals, a)
	h := p.arrivals
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	p.Wake()
}

// pop takes out the frame that arrives first.
func (p *Port) pop() arrival {
	h := p.arrivals
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], arrival{}
	h = h[:last]
	p.arrivals = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
