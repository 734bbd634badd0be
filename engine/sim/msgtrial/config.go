package msgtrial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/msg"
	"xroce/roce/wire"
)

// A Config is a run: what the seed draws.
type Config struct {
	Seed   uint64
	Phase  roce.Time // how long there are faults
	Faults sim.Faults
	Nodes  []NodeConfig
	Pairs  []PairConfig
	Chaos  []Chaos
}

// A NodeConfig is a host and its application.
type NodeConfig struct {
	Machine  msg.Config
	Caps     msg.Capabilities
	Depth    int       // work requests that a send queue takes
	PollGap  roce.Time // between two looks of the owner at the device, 0 for at once
	Answer   roce.Time // how long memory takes, at most
	Refuse   int       // of 1000 requests for memory, how many are refused
	Receives int       // that the application posts while there are faults
	Exact    int       // of 10 receives, how many want one tag, or tags of a mask
	From     int       // of 10 receives, how many want one peer
	Cancel   int       // of 100 receives, how many are taken back
	Short    int       // of 10 receives, how many may be too short
}

// A PairConfig is two nodes that are connected, and connected again when that ends.
type PairConfig struct {
	Nodes      [2]int
	PathMTU    wire.MTU
	Timeout    uint8
	Extensions roce.Extensions
	Messages   [2]int       // that each end sends while there are faults
	Force      msg.Protocol // on some of the messages
	Sizes      []int
	Tags       int
	Renew      bool // small slots are renewed now and then
	Close      bool // an end closes in the middle
}

func choose[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// one reports true once in n times.
func one(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// derive draws a run.
func derive(seed uint64, plain bool) Config {
	r := rand.New(rand.NewPCG(seed, 0x6d736773))
	c := Config{Seed: seed, Faults: sim.Faults{Delay: roce.Microsecond}}
	c.Phase = choose[roce.Time](r, 100, 500, 2000, 10_000) * roce.Microsecond
	nodes := choose(r, 2, 2, 2, 3, 4, 5, 6, 7, 8)
	if plain {
		nodes = 2
	} else {
		c.Faults = deriveFaults(r)
	}
	for range nodes {
		c.Nodes = append(c.Nodes, deriveNode(r, c.Phase, plain))
	}
	pairs := choose(r, 1, 1, 2, 3, nodes)
	if plain {
		pairs = 1
	}
	for range pairs {
		c.Pairs = append(c.Pairs, derivePair(r, &c))
	}
	for _, p := range c.Pairs {
		for side, n := range p.Nodes {
			c.Nodes[n].Receives += p.Messages[1-side]
		}
	}
	if !plain {
		c.Chaos = deriveChaos(r, &c)
		deriveRails(&c)
	}
	return c
}

func deriveNode(r *rand.Rand, phase roce.Time, plain bool) NodeConfig {
	n := NodeConfig{Depth: 64, Caps: allCaps}
	m := &n.Machine
	m.EagerLimit = choose(r, 1024, 1024, 100, 512, 2000)
	m.Slots = choose(r, 32, 2, 4, 8)
	m.Protocol = choose(r, msg.Auto, msg.Auto, msg.Auto, msg.Eager, msg.Provisioned, msg.Get,
		msg.Put, msg.Fragments)
	if plain {
		return n
	}
	n.Depth = choose(r, 64, 64, 16, 5, msg.MinDepth)
	n.Caps = choose(r, allCaps, allCaps, allCaps, msg.CapabilityGet|msg.CapabilityPut,
		msg.CapabilityPut|msg.CapabilityProvision, msg.CapabilityProvision, 0)
	m.LargeSlots = choose(r, 2, 1, 4)
	m.Large = choose(r, nil, nil, []int{}, []int{4096}, []int{3000, 9000, 20_000})
	m.Policy = choose(r, msg.EnlargeFirst, msg.EnlargeAfter, msg.EnlargeNever)
	m.After = choose(r, 0, 1, 3)
	m.Rendezvous = choose(r, 64, 1, 2, 5)
	m.Unexpected = choose(r, 1<<20, 0, 1000, 20_000)
	m.Registered = choose[int64](r, plentyOfSlots, plentyOfSlots, 300_000)
	m.PullWindow = choose(r, 4<<20, 10_000, 1000)
	m.Chunk = min(m.PullWindow, choose(r, 256<<10, 5000, 700))
	m.Patience = choose[roce.Time](r, 1_000_000, 100, 10) * roce.Microsecond
	m.Idle = choose[roce.Time](r, 10_000_000, 500, 50) * roce.Microsecond
	m.Keepalive = choose[roce.Time](r, 0, 0, 1000, 200) * roce.Microsecond
	if one(r, 3) {
		n.PollGap = phase / choose[roce.Time](r, 10, 30, 100)
	}
	n.Answer = choose[roce.Time](r, 0, 1, 20, 200) * roce.Microsecond
	n.Refuse = choose(r, 0, 0, 10, 100)
	n.Exact, n.From = r.IntN(10), r.IntN(10)
	n.Cancel, n.Short = choose(r, 0, 0, 5, 30), choose(r, 0, 1, 5)
	return n
}

// plentyOfSlots is a bound of memory for slots that no run reaches.
const plentyOfSlots = 1 << 30

const allCaps = msg.CapabilityGet | msg.CapabilityPut | msg.CapabilityProvision

func derivePair(r *rand.Rand, c *Config) PairConfig {
	a := r.IntN(len(c.Nodes))
	p := PairConfig{
		Nodes:    [2]int{a, (a + 1 + r.IntN(len(c.Nodes)-1)) % len(c.Nodes)},
		PathMTU:  wire.MTU(1 + r.IntN(5)),
		Messages: [2]int{choose(r, 5, 20, 40), choose(r, 0, 5, 20, 40)},
		Force:    msg.Protocol(r.IntN(int(msg.Fragments) + 1)), Tags: choose(r, 1, 2, 8),
		Renew: one(r, 4), Close: one(r, 5), Extensions: choose(r, 0, roce.ExtSelectiveRepeat),
	}
	for p.Timeout = 4; 4096<<p.Timeout < 8*int64(c.Faults.Delay+c.Faults.Jitter); {
		p.Timeout++
	}
	p.Timeout += choose[uint8](r, 0, 1, 3, 5)
	limit := c.Nodes[p.Nodes[1]].Machine.EagerLimit
	usual := []int{
		0, 1, 8, 64, limit - 1, limit, limit + 1, 3000, 4097, 8192, 8193, 20_000, 65_536, 70_000,
		200_000,
	}
	for range choose(r, 1, 3, 6) {
		p.Sizes = append(p.Sizes, usual[r.IntN(choose(r, 7, 11, 11, 11, len(usual)))])
	}
	most := slices.Max(p.Sizes)
	for side := range p.Messages {
		p.Messages[side] = min(p.Messages[side], 400_000/(most+1))
	}
	return p
}

// deriveFaults draws what happens to frames.
func deriveFaults(r *rand.Rand) sim.Faults {
	f := sim.Faults{
		Delay:  choose[roce.Time](r, 200, 1000, 5000, 20_000) * roce.Nanosecond,
		Jitter: choose[roce.Time](r, 0, 0, 500, 10_000) * roce.Nanosecond,
	}
	if one(r, 4) {
		return f
	}
	chance := func(chances ...float64) float64 {
		if !one(r, 2) {
			return 0
		}
		return choose(r, chances...)
	}
	f.Drop = chance(0.001, 0.01, 0.02, 0.05, 0.1)
	f.Dup = chance(0.01, 0.1, 0.5)
	f.Stale, f.StaleBy = chance(0.01, 0.1), choose[roce.Time](r, 100, 1000)*roce.Microsecond
	f.Reorder = chance(0.001, 0.01, 0.1)
	f.ReorderBy = choose[roce.Time](r, 5, 50, 500) * roce.Microsecond
	f.Corrupt = chance(0.001, 0.02, 0.1)
	return f
}

// String prints the configuration, every option of it, on several lines.
func (c *Config) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: faults for %s\n", c.Seed, campaign.ClockTime(c.Phase))
	fmt.Fprintf(&b, "  network  %+v\n", c.Faults)
	for i := range c.Nodes {
		n := c.Nodes[i]
		n.Machine.Rand = nil
		fmt.Fprintf(&b, "  node %d   %+v\n", i, n)
	}
	for i := range c.Pairs {
		fmt.Fprintf(&b, "  pair %d   %+v\n", i, c.Pairs[i])
	}
	for _, e := range c.Chaos {
		fmt.Fprintf(&b, "  chaos    %s\n", e)
	}
	return b.String()
}
