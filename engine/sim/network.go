package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"xroce/roce"
)

// A Clock tells the time at which frames arrive.
type Clock interface{ Now() roce.Time }

// Faults say what the network does to frames. Chances are per frame and
// independent, from 0 to 1.
type Faults struct {
	Drop    float64 // the frame is lost
	Dup     float64 // it arrives twice, the copy after a delay of its own
	Reorder float64 // it is held back for up to ReorderBy, and others overtake it
	Corrupt float64 // one to three of its bits are flipped

	Delay     roce.Time // every frame takes this long
	Jitter    roce.Time // and up to this much more
	ReorderBy roce.Time
}

func (f *Faults) check() error {
	for name, chance := range map[string]float64{
		"drop": f.Drop, "dup": f.Dup, "reorder": f.Reorder, "corrupt": f.Corrupt,
	} {
		if !(chance >= 0 && chance <= 1) {
			return fmt.Errorf("sim: chance of %s is %v, not 0 to 1", name, chance)
		}
	}
	if f.Delay < 0 || f.Jitter < 0 || f.ReorderBy < 0 {
		return fmt.Errorf("sim: negative delay")
	}
	return nil
}

// Counts are what the network did so far.
type Counts struct {
	Sent, Delivered                           uint64
	Dropped, Duplicated, Reordered, Corrupted uint64 // by the faults
	Unknown                                   uint64 // no port has the MAC address
	Overflow                                  uint64 // a port's queue was full
}

// A Network joins ports. It is safe for concurrent use.
type Network struct {
	mu     sync.Mutex
	clock  Clock
	rng    *rand.Rand
	faults Faults
	ports  map[[6]byte]*Port
	order  uint64
	free   [][]byte
	counts Counts
}

// NewNetwork makes a network whose faults are decided by the seed alone, given
// the order in which frames are sent.
func NewNetwork(seed uint64, clock Clock, f Faults) (*Network, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	return &Network{
		clock: clock, rng: rand.New(rand.NewPCG(seed, 0x726f6365)), faults: f,
		ports: map[[6]byte]*Port{},
	}, nil
}

// SetFaults changes what happens to frames sent from now on.
func (n *Network) SetFaults(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
	return nil
}

// Counts returns what the network did so far.
func (n *Network) Counts() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts
}

// NextArrival returns when the next frame arrives somewhere, false when none is
// under way.
func (n *Network) NextArrival() (at roce.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		if len(p.arrivals) > 0 && (!ok || p.arrivals[0].at < at) {
			at, ok = p.arrivals[0].at, true
		}
	}
	return at, ok
}

// send puts a frame on its way. The caller holds mu.
func (n *Network) send(frame []byte) {
	n.counts.Sent++
	port := n.ports[[6]byte(frame[:6])]
	if port == nil {
		n.counts.Unknown++
		return
	}
	if n.chance(n.faults.Drop) {
		n.counts.Dropped++
		return
	}
	n.deliver(port, frame)
	if n.chance(n.faults.Dup) {
		n.counts.Duplicated++
		n.deliver(port, frame)
	}
}

// deliver lets one copy of a frame arrive at a port.
func (n *Network) deliver(port *Port, frame []byte) {
	if len(port.arrivals) >= portQueue {
		n.counts.Overflow++
		return
	}
	f := &n.faults
	at := n.clock.Now() + f.Delay + n.upTo(f.Jitter)
	if n.chance(f.Reorder) {
		n.counts.Reordered++
		at += n.upTo(f.ReorderBy)
	} else if f.Jitter > 0 || f.ReorderBy > 0 {
		// Jitter alone does not let a frame overtake the one before it.
		at = max(at, port.lastInOrder)
		port.lastInOrder = at
	}
	b := append(n.buffer(), frame...)
	if n.chance(f.Corrupt) {
		n.counts.Corrupted++
		for range 1 + n.rng.IntN(3) {
			bit := n.rng.IntN(8 * len(b))
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
	n.order++
	port.push(arrival{at: at, order: n.order, frame: b})
}

// chance is true with probability p. It draws nothing when the answer is known,
// so that switching a fault off does not change the others.
func (n *Network) chance(p float64) bool { return p > 0 && n.rng.Float64() < p }

func (n *Network) upTo(d roce.Time) roce.Time {
	if d <= 0 {
		return 0
	}
	return roce.Time(n.rng.Int64N(int64(d) + 1))
}

// buffer returns an empty buffer with room for a frame.
func (n *Network) buffer() []byte {
	if last := len(n.free) - 1; last >= 0 {
		b := n.free[last]
		n.free = n.free[:last]
		return b[:0]
	}
	return make([]byte, 0, maxFrame)
}
