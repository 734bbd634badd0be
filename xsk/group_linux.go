package xsk

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// A Group is a Link on several queues of one device: a Socket on each, over frames that were
// registered once. Each socket has its own rings and its own part of the receive frames, so a
// frame is in one place and a full queue takes none from the others.
//
// All frames are sent on the first queue, in the order of Transmit: the others have no transmit
// ring. So what one caller sends stays in order, and sending costs what it costs with one queue.
// Received frames of one queue are handed out in their order; a card puts those of one flow into
// one queue.
type Group struct {
	sockets []*Socket // in the order of the queues asked for; the first sends
	next    int       // the one to receive from first
	rxBytes uint64    // of the receive frames of a socket
	first   uint64    // bytes of the frames of the first socket, which come first

	kernel  Kernel
	info    Info
	waiter  *Waiter
	mem     []byte
	closed  bool
	closing sync.Mutex
}

var (
	_ Link    = (*Group)(nil)
	_ Filler  = (*Group)(nil)
	_ Drainer = (*Group)(nil)
)

// OpenGroup makes a Group on queues of a device, of which there is at least one and each once.
// Config.Queue means nothing; RxFrames and FillTarget are those of each queue, all else is that of
// the group. For errors and what is needed see Open; sharing frames needs Linux 5.10.
func OpenGroup(cfg Config, queues []int) (*Group, error) {
	if err := checkQueues(queues); err != nil {
		return nil, err
	}
	cfg.Queue, cfg.others = queues[0], len(queues)-1
	return openFitting(cfg, func(cfg Config, dev Device, limited string) (*Group, error) {
		lay, err := cfg.layout(dev.MTU)
		if err != nil {
			return nil, err
		}
		g := &Group{
			kernel: cfg.Kernel, rxBytes: uint64(cfg.RxFrames * cfg.ChunkSize),
			first: uint64(lay.chunks) * uint64(cfg.ChunkSize),
		}
		if err := g.open(cfg, lay, dev, limited, queues); err != nil {
			return nil, errors.Join(err, g.Close())
		}
		return g, nil
	})
}

// open does the steps of OpenGroup that have to be undone.
func (g *Group) open(cfg Config, lay layout, dev Device, limited string, queues []int) (err error) {
	if g.mem, err = newSocket(cfg, dev, limited).mapUMEM(cfg, lay); err != nil {
		return err
	}
	p := part{mem: g.mem[:lay.umemSize]}
	var fds []int
	for _, queue := range queues {
		cfg.Queue = queue
		s := newSocket(cfg, dev, limited)
		g.sockets = append(g.sockets, s)
		if err := s.openOn(cfg, lay, p); err != nil {
			return err
		}
		fds = append(fds, s.fd)
		if p.first == nil {
			p.first, p.base = s, g.first
			cfg, lay = cfg.receiveOnly(lay)
			continue
		}
		p.base += g.rxBytes
	}
	g.info = g.sockets[0].info
	g.info.Queues = len(queues)
	if g.waiter, err = NewWaiter(g.kernel, fds...); err != nil {
		return g.sockets[0].fail("eventfd", err)
	}
	g.waiter.keepCPU = cfg.Dedicated
	return nil
}

// receiveOnly makes the configuration of a socket that of one that sends nothing. It needs a
// completion ring all the same: the kernel binds none without.
func (c Config) receiveOnly(lay layout) (Config, layout) {
	c.TxFrames, c.SndBuf = 0, 0
	lay.txRing, lay.txBudget, lay.compRing = 0, 0, 1
	return c, lay
}

// Sockets calls f for each queue with the descriptor of its socket, for the XSKMAP, until f fails.
// The descriptors are valid until Close and must not be closed, read or bound.
func (g *Group) Sockets(f func(queue, fd int) error) error {
	for _, s := range g.sockets {
		if err := f(s.info.Queue, s.fd); err != nil {
			return err
		}
	}
	return nil
}

// Info implements Link.
func (g *Group) Info() Info { return g.info }

// Receive implements Link. Each call begins with another queue, so none starves.
func (g *Group) Receive(dst []RxFrame) int {
	n, at := 0, g.next
	for range g.sockets {
		n += g.sockets[at].Receive(dst[n:])
		if at++; at == len(g.sockets) {
			at = 0
		}
		if n == len(dst) {
			break
		}
	}
	g.next = at
	return n
}

// Release implements Link. It clears the frames.
func (g *Group) Release(frames []RxFrame) {
	if g.closed {
		return
	}
	for len(frames) > 0 {
		at := g.socketOf(&frames[0])
		n := 1
		for n < len(frames) && g.socketOf(&frames[n]) == at {
			n++
		}
		g.sockets[at].Release(frames[:n])
		frames = frames[n:]
	}
}

// socketOf is the number of the socket that received a frame.
func (g *Group) socketOf(f *RxFrame) int {
	addr := deref(f.Ref[0])
	if addr < g.first {
		return 0
	}
	return 1 + int((addr-g.first)/g.rxBytes)
}

// RaiseFillTarget implements Filler. The frames may all come to one queue.
func (g *Group) RaiseFillTarget(frames int) {
	for _, s := range g.sockets {
		s.RaiseFillTarget(frames)
	}
}

// Reserve implements Link.
func (g *Group) Reserve(dst []TxFrame) int { return g.sockets[0].Reserve(dst) }

// Transmit implements Link.
func (g *Group) Transmit(frames []TxFrame) { g.sockets[0].Transmit(frames) }

// Return implements Link.
func (g *Group) Return(frames []TxFrame) { g.sockets[0].Return(frames) }

// Flush implements Link.
func (g *Group) Flush() error { return g.sockets[0].Flush() }

// Pending implements Link.
func (g *Group) Pending() bool { return g.sockets[0].Pending() }

// Drained implements Drainer.
func (g *Group) Drained() bool { return g.sockets[0].Drained() }

// Wait implements Link, for all queues at once.
func (g *Group) Wait(timeout time.Duration) error {
	if g.closed {
		return ErrClosed
	}
	if err := g.waiter.Wait(timeout); err != nil {
		return g.sockets[0].fail("poll", err)
	}
	return nil
}

// Wake implements Link.
func (g *Group) Wake() { g.waiter.Wake() }

// WakeOn implements FDWaiter.
func (g *Group) WakeOn(fd int) { g.waiter.WakeOn(fd) }

// Stats implements Link: those of all queues together. It makes a system call for each.
func (g *Group) Stats() (sum Stats, err error) {
	for _, s := range g.sockets {
		st, err := s.Stats()
		if err != nil {
			return Stats{}, err
		}
		sum.add(&st)
	}
	return sum, nil
}

// Close implements Link. It gives the memory back after the last socket.
func (g *Group) Close() error {
	g.closing.Lock()
	defer g.closing.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	var errs []error
	if g.waiter != nil {
		errs = append(errs, g.waiter.Close())
	}
	for _, s := range slices.Backward(g.sockets) {
		errs = append(errs, s.Close())
	}
	if g.mem != nil {
		errs = append(errs, g.kernel.UnmapUMEM(g.mem))
		g.mem = nil
	}
	return errors.Join(errs...)
}
