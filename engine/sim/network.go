package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"xroce/roce"
)

// A Clock tells the time at which frames arrive.
type Clock interface{ Now() roce.Time }

// An Event is something that happened to a frame.
type Event struct {
	Kind     Kind
	At       roce.Time
	From, To [6]byte // MAC addresses
	// Frame is the frame as it was sent, and for Delivered as it arrives. It is
	// borrowed for the call.
	Frame []byte
}

// A Network joins ports. It is safe for concurrent use.
type Network struct {
	mu         sync.Mutex
	clock      Clock
	rng        *rand.Rand
	faults     Faults // of the directions that have none of their own
	ports      map[[6]byte]*Port
	directions map[[12]byte]*direction
	scripts    []script
	observer   func(*Event)
	order      uint64
	transit    transits // frames on their way to a switch with links
	free       [][]byte
	counts     Counts
}

// NewNetwork makes a network whose faults are decided by the seed alone, given
// the order in which frames are sent.
func NewNetwork(seed uint64, clock Clock, f Faults) (*Network, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	return &Network{
		clock: clock, rng: rand.New(rand.NewPCG(seed, 0x726f6365)), faults: f,
		ports: map[[6]byte]*Port{}, directions: map[[12]byte]*direction{},
	}, nil
}

// SetFaults changes what happens to frames sent from now on, in all directions.
// What is under way arrives at the latest as if it were sent now: clogs end, and
// queues are empty.
func (n *Network) SetFaults(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
	// The order does not matter: every direction gets the same.
	for _, d := range n.directions {
		d.faults, d.bad, d.clogged, d.busy, d.lastInOrder = f, false, 0, 0, 0
	}
	latest := n.clock.Now() + f.Delay + f.Jitter
	for _, p := range n.ports {
		p.hurry(latest)
	}
	return nil
}

// SetDirection changes what happens to frames from one MAC address to another,
// until the next SetFaults.
func (n *Network) SetDirection(from, to [6]byte, f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.direction(from, to)
	d.faults = f
	return nil
}

// Direction returns what happens to frames from one MAC address to another.
func (n *Network) Direction(from, to [6]byte) Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.direction(from, to).faults
}

// SetRules makes these the rules, in this order, and lets them count from 0. A
// bit to flip must be inside the frame, else the rule does nothing to it.
func (n *Network) SetRules(rules ...Rule) error {
	scripts := make([]script, len(rules))
	for i, r := range rules {
		if r.Nth < 0 || r.Times < 0 || r.Copies < 0 || r.Delay < 0 || r.Flip < 0 {
			return fmt.Errorf("sim: rule %d has a negative number: %+v", i, r)
		}
		scripts[i].Rule = r
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scripts = scripts
	return nil
}

// Observe has a function called for everything that happens to a frame, with
// the network's lock held: it must not call the network.
func (n *Network) Observe(observer func(*Event)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.observer = observer
}

// Counts returns what the network did so far.
func (n *Network) Counts() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts
}

// UnderWay counts the frames that were sent and did not arrive yet.
func (n *Network) UnderWay() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	frames := len(n.transit)
	for _, p := range n.ports {
		frames += len(p.arrivals)
	}
	return frames
}

// NextArrival returns when the next frame arrives somewhere, if only at a switch with links,
// false when none is under way.
func (n *Network) NextArrival() (at roce.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settle()
	if len(n.transit) > 0 {
		at, ok = n.transit[0].at, true
	}
	for _, p := range n.ports {
		if len(p.arrivals) > 0 && (!ok || p.arrivals[0].at < at) {
			at, ok = p.arrivals[0].at, true
		}
	}
	return at, ok
}

// forward does what a switch does: it sends a frame to the port that has its
// destination address, and one to a group address once to every other port, each
// with the faults of its own direction. The caller holds mu.
func (n *Network) forward(from *Port, frame []byte) {
	if [6]byte(frame) == from.config.MAC {
		return // a switch sends nothing back to where it came from
	}
	if frame[0]&1 == 0 || len(n.ports) == 1 {
		n.send(from, [6]byte(frame[:6]), frame)
		return
	}
	// In the order of the addresses, so that a seed gives the same run.
	macs := make([][6]byte, 0, len(n.ports))
	for mac := range n.ports {
		if mac != from.config.MAC {
			macs = append(macs, mac)
		}
	}
	slices.SortFunc(macs, func(a, b [6]byte) int { return bytes.Compare(a[:], b[:]) })
	for _, mac := range macs {
		n.send(from, mac, frame)
	}
}

// note counts what happened to a frame and tells the observer. The caller holds
// mu.
func (n *Network) note(k Kind, d *direction, frame []byte) {
	*kinds[k].count(&n.counts)++
	if n.observer != nil {
		n.observer(&Event{Kind: k, At: n.clock.Now(), From: d.from, To: d.to, Frame: frame})
	}
}

// chance reports whether something of probability p happens. It draws nothing when p is 0,
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
