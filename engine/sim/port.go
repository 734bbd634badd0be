package sim

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// Implementation constants of a port.
const (
	maxFrame       = 4500 // an Ethernet frame of the largest MTU that a port may have
	maxMTU         = maxFrame - 22
	portQueue      = 1 << 14 // frames under way to one port
	txFrames       = 256
	yields         = 100                   // how often an idle port lets other goroutines run
	nap            = 50 * time.Microsecond // and then how long other programs
	ethernetHeader = 14
)

// PortConfig says what a port is. Zero values get the defaults.
type PortConfig struct {
	Name  string
	MAC   [6]byte
	MTU   int // bytes, at most 4478
	Addrs []netip.Addr

	TxFrames int // transmit frames in all, default 256
	RxBurst  int // frames that one Receive hands out at most, default no limit
	RxQueue  int // frames under way to the port, default 16384; more are lost
	Chunk    int // bytes of a frame's first piece, default all; at least 128

	// Yield makes a Receive that finds nothing give its processor away: to other goroutines
	// at first, and when nothing came or went for long, in real time, to other programs. It
	// is for ports whose owners poll and are more than the processors: else each polls for
	// as long as the scheduler lets it, 10 ms, while its peer has the answer.
	Yield bool
}

// minChunk has room for every header of a RoCE packet.
const minChunk = 128

func (c *PortConfig) check() error {
	if c.MTU < 0 || c.MTU > maxMTU {
		return fmt.Errorf("sim: MTU %d is not in 0..%d", c.MTU, maxMTU)
	}
	for _, d := range []struct {
		name  string
		field *int
		least int
		value int
	}{
		{"transmit frames", &c.TxFrames, 1, txFrames},
		{"receive burst", &c.RxBurst, 1, portQueue},
		{"receive queue", &c.RxQueue, 1, portQueue},
		{"chunk", &c.Chunk, minChunk, maxFrame},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
		if *d.field < d.least {
			return fmt.Errorf("sim: %s of %d are fewer than %d", d.name, *d.field, d.least)
		}
	}
	return nil
}

// A Port is one end of a simulated network: an xsk.Link and an engine.Host in
// one, for engine.OpenLink.
type Port struct {
	network *Network
	config  PortConfig

	arrivals         []arrival // a heap by time, then by order of sending
	uplink, downlink *line     // to the switch and from it, nil without links
	wake             chan struct{}
	timer            *time.Timer // of Wait, which one caller at a time is in

	tx     [][]byte // buffers of free transmit frames
	queued [][]byte
	taken  int // received frames that were not released
	idle   int // how often Receive has found nothing since frames came or went
	stats  xsk.Stats
	closed bool
}

// An arrival is a frame under way.
type arrival struct {
	at    roce.Time
	order uint64
	from  [6]byte
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
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Port{network: n, config: c, wake: make(chan struct{}, 1)}
	memory := make([]byte, c.TxFrames*maxFrame)
	for ; len(memory) > 0; memory = memory[maxFrame:] {
		p.tx = append(p.tx, memory[:maxFrame:maxFrame])
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
		if slices.Contains(other.config.Addrs, dst) || wire.LinkLocalGID(mac).Addr() == dst {
			return mac, nil
		}
	}
	return [6]byte{}, fmt.Errorf("%w: %s", engine.ErrNoNeighbour, dst)
}

// Info implements xsk.Link.
func (p *Port) Info() xsk.Info {
	return xsk.Info{
		Backend: "sim", Interface: p.config.Name, MTU: p.config.MTU, MaxFrame: maxFrame,
		TxFrames: p.config.TxFrames,
	}
}

// Receive implements xsk.Link: it hands out the frames whose time has come.
func (p *Port) Receive(dst []xsk.RxFrame) int {
	got := p.receive(dst)
	if p.config.Yield {
		p.yield(got)
	}
	return got
}

// yield gives the processor away when nothing has come.
func (p *Port) yield(got int) {
	switch {
	case got > 0:
		p.idle = 0
	case p.idle < yields:
		p.idle++
		runtime.Gosched()
	default:
		time.Sleep(nap)
	}
}

func (p *Port) receive(dst []xsk.RxFrame) int {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settle()
	now, got, limit := n.clock.Now(), 0, min(len(dst), p.config.RxBurst)
	for got < limit && len(p.arrivals) > 0 && p.arrivals[0].at <= now {
		a := p.pop()
		n.note(Delivered, n.direction(a.from, p.config.MAC), a.frame)
		f := &dst[got]
		*f = xsk.RxFrame{Head: a.frame}
		if len(a.frame) > p.config.Chunk {
			f.Head, f.Tail = a.frame[:p.config.Chunk], a.frame[p.config.Chunk:]
		}
		p.stats.RxPackets++
		p.stats.RxBytes += uint64(f.Len())
		got++
	}
	p.taken += got
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
	p.taken -= len(frames)
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
	p.idle = 0
}

// Pending implements xsk.Link: a flush leaves nothing.
func (p *Port) Pending() bool { return false }

// Flush implements xsk.Link.
func (p *Port) Flush() error {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.closed {
		return errClosed
	}
	for i, frame := range p.queued {
		n.forward(p, frame)
		p.tx = append(p.tx, frame[:maxFrame])
		p.queued[i] = nil
	}
	p.queued = p.queued[:0]
	return nil
}

// errClosed is what a closed port says.
var errClosed = fmt.Errorf("sim: port: %w", xsk.ErrClosed)

// Wait implements xsk.Link, in real time: it is not for a virtual clock. It allocates nothing but
// the first time, so that a test of allocations sees those of what it tests.
func (p *Port) Wait(timeout time.Duration) error {
	p.network.mu.Lock()
	if p.closed {
		p.network.mu.Unlock()
		return errClosed
	}
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
		if p.timer == nil {
			p.timer = time.NewTimer(timeout)
		} else {
			p.timer.Reset(timeout)
		}
		defer p.timer.Stop()
		expired = p.timer.C
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
		for len(p.arrivals) > 0 {
			a := p.pop()
			p.network.note(Unreceived, p.network.direction(a.from, p.config.MAC), a.frame)
		}
	}
	return nil
}

// NextArrival returns when the next frame arrives here, false when none is
// under way.
func (p *Port) NextArrival() (at roce.Time, ok bool) {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	if len(p.arrivals) == 0 {
		return 0, false
	}
	return p.arrivals[0].at, true
}

// Held counts the frames that the user of the port has not given back: transmit
// frames reserved and received frames not released.
func (p *Port) Held() (tx, rx int) {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	return p.config.TxFrames - len(p.tx) - len(p.queued), p.taken
}
