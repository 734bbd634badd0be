package trial

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/wire"
)

// A Config is everything about a run that the seed decides beforehand.
type Config struct {
	Seed   uint64
	Phase  roce.Time // length of the phase with faults
	MTU    int       // of the interfaces, bytes
	IPv6   bool      // connections between link-local addresses
	Faults sim.Faults
	Ways   []Way // directions with faults of their own
	Nodes  []NodeConfig
	Conns  []ConnConfig
	Chaos  []Chaos
}

// A Way is a direction between two nodes.
type Way struct {
	From, To int
	Faults   sim.Faults
}

// A NodeConfig is a device and its application.
type NodeConfig struct {
	TxFrames, RxBurst, RxQueue, Chunk int // see sim.PortConfig

	PollGap   roce.Time // mean time between two looks at the CQs, 0 for at once
	PollBatch int       // completions taken with one look

	Words    int  // that atomics of all connections to it share
	SRQDepth int  // of its shared receive queue, 0 for none
	SRQLimit bool // it asks for events when the SRQ runs low
	Resize   bool // it changes the depth of its CQs as it goes
}

// A ConnConfig is a connection, or one after another between the same ends.
type ConnConfig struct {
	Nodes     [2]int
	Type      roce.QPType
	PathMTU   wire.MTU
	PSN       [2]wire.PSN
	Timeout   uint8
	RetryCnt  uint8
	RNRRetry  uint8
	MinRNR    uint8
	MaxRd     uint8
	Window    int
	SendDepth int
	RecvDepth int
	CQDepth   int  // of a CQ that is too small, 0 for one that fits
	SplitCQ   bool // a CQ for sends and one for receives
	SignalAll bool

	Extensions [2]roce.Extensions // that each end offers
	SRQ        [2]bool            // which end receives from the SRQ of its node
	MaxInline  int                // bytes of inline data
	RateLimit  uint32             // kbit/s, 0 for none

	Slots    int         // pieces of memory of each kind
	MaxSize  int         // largest message in bytes
	Messages int         // each way
	Gap      roce.Time   // mean time between two posts
	Weights  [numOps]int // how often each operation is chosen
	Lends    bool        // tickets are memory windows
	Unsig    float64     // share of unsignaled requests
	Bad      float64     // share of requests that must fail
	SmallRq  float64     // share of receives that are too small
}

// boundaries are PSNs at which arithmetic goes wrong first.
var boundaries = []wire.PSN{0, 1, 1<<23 - 1, 1 << 23, 1<<24 - 2, 1<<24 - 1}

// choose returns one of a list.
func choose[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// one reports whether a draw of 1 in n succeeds.
func one(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// derive makes the configuration of a seed: what derivePlain draws, and more.
func derive(seed uint64) Config {
	c := deriveLent(seed)
	c.starve()
	return c
}

// deriveLent makes what derive did before hosts were starved: seeds that once failed
// mean the same draws.
func deriveLent(seed uint64) Config {
	c := deriveWide(seed)
	c.lend()
	return c
}

// deriveWide makes what derive did before there were windows.
func deriveWide(seed uint64) Config {
	c := derivePlain(seed)
	c.widen()
	return c
}

// derivePlain draws connections of type RC with the operations that every RC
// application uses. Its draws do not change: seeds that once failed are kept.
func derivePlain(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0x636f6e66))
	c := Config{Seed: seed, MTU: 4200, IPv6: one(r, 3)}
	c.Phase = choose[roce.Time](r, 100, 500, 2000, 10_000) * roce.Microsecond
	nodes := choose(r, 2, 2, 2, 3, 4)
	for range nodes {
		c.Nodes = append(c.Nodes, deriveNode(r, c.Phase))
	}
	c.Faults = deriveFaults(r)
	for from := range nodes {
		for to := range nodes {
			if from != to && one(r, 6) {
				c.Ways = append(c.Ways, Way{from, to, deriveFaults(r)})
			}
		}
	}
	for range choose(r, 1, 1, 2, 3) {
		c.Conns = append(c.Conns, deriveConn(r, &c))
	}
	c.Chaos = deriveChaos(r, &c)
	return c
}

func deriveNode(r *rand.Rand, phase roce.Time) NodeConfig {
	n := NodeConfig{
		TxFrames: choose(r, 64, 64, 64, 16, 3, 1), RxQueue: choose(r, 4096, 4096, 256, 32),
		RxBurst: choose(r, 0, 0, 0, 7, 1), Chunk: choose(r, 0, 0, 256, 1024),
		PollBatch: choose(r, 16, 16, 4, 1),
	}
	if one(r, 3) {
		n.PollGap = phase / choose[roce.Time](r, 10, 30, 100)
	}
	return n
}

func deriveFaults(r *rand.Rand) sim.Faults {
	f := sim.Faults{
		Delay:  choose[roce.Time](r, 200, 1000, 5000, 20_000) * roce.Nanosecond,
		Jitter: choose[roce.Time](r, 0, 0, 500, 10_000) * roce.Nanosecond,
	}
	chance := func(n int, chances ...float64) float64 {
		if !one(r, n) {
			return 0
		}
		return choose(r, chances...)
	}
	f.Drop = chance(2, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
	if one(r, 4) {
		mean := choose(r, 3.0, 10, 100)
		f.Burst = sim.Burst{Enter: choose(r, 0.01, 0.05) / mean, Leave: 1 / mean, Drop: 0.9}
	}
	f.Dup = chance(3, 0.01, 0.1, 0.5)
	f.Stale = chance(4, 0.01, 0.1)
	f.StaleBy = choose[roce.Time](r, 100, 1000, 10_000) * roce.Microsecond
	f.Reorder = chance(3, 0.001, 0.01, 0.1, 0.5)
	f.ReorderBy = choose[roce.Time](r, 5, 50, 500) * roce.Microsecond
	f.Hold = chance(5, 0.01, 0.1)
	f.HoldFrames = choose(r, 1, 2, 8, 64)
	f.Corrupt = chance(3, 0.001, 0.02, 0.1, 0.3)
	f.Truncate = chance(5, 0.01, 0.05)
	f.Extend = chance(5, 0.01, 0.1)
	if one(r, 6) {
		f.Clog, f.ClogLoses = choose(r, 0.001, 0.01), one(r, 2)
		f.ClogFor = choose[roce.Time](r, 10, 100, 1000) * roce.Microsecond
	}
	if one(r, 5) {
		f.Rate, f.Queue = choose[int64](r, 1e9, 10e9), choose(r, 16<<10, 128<<10)
	}
	return f
}

// roundTrip is how long a packet and its answer may take when nothing but
// chance of the wanted kind delays them.
func (c *Config) roundTrip() roce.Time {
	worst := roce.Time(0)
	add := func(f *sim.Faults) {
		t := f.Delay + f.Jitter
		if f.Rate > 0 {
			t += roce.Time(int64(f.Queue+c.MTU) * 8 * int64(roce.Second) / f.Rate)
		}
		worst = max(worst, t)
	}
	add(&c.Faults)
	for i := range c.Ways {
		add(&c.Ways[i].Faults)
	}
	return 2 * worst
}

// ackTimeout is 4.096 us * 2^code.
func ackTimeout(code uint8) roce.Time { return 4096 << code }

func deriveConn(r *rand.Rand, c *Config) ConnConfig {
	a := r.IntN(len(c.Nodes))
	k := ConnConfig{
		Nodes:    [2]int{a, (a + 1 + r.IntN(len(c.Nodes)-1)) % len(c.Nodes)},
		PathMTU:  wire.MTU(1 + r.IntN(5)),
		RetryCnt: choose[uint8](r, 7, 7, 7, 7, 3, 1, 0),
		RNRRetry: choose[uint8](r, 7, 7, 7, 6, 2, 0),
		MinRNR:   choose[uint8](r, 1, 2, 5, 8, 12), MaxRd: choose[uint8](r, 1, 2, 4, 16),
		Window:    choose(r, 0, 0, 1, 2, 7, 32),
		SendDepth: choose(r, 1, 2, 5, 16, 32), RecvDepth: choose(r, 1, 2, 5, 16, 32),
		Type:    roce.TypeRC,
		SplitCQ: one(r, 2), SignalAll: one(r, 4), Unsig: choose(r, 0, 0.25, 0.9),
	}
	for i := range k.PSN {
		k.PSN[i] = choose(r, wire.PSN(r.Uint32()), choose(r, boundaries...),
			1<<24-wire.PSN(1+r.IntN(200))).Add(0)
	}
	for k.Timeout = 4; ackTimeout(k.Timeout) < 4*c.roundTrip(); {
		k.Timeout++
	}
	k.Timeout += choose[uint8](r, 0, 0, 1, 3, 6)
	k.MaxSize = choose(r, 64, 1000, 4096, 5000, 16<<10, 64<<10)
	k.Slots = min(max(256<<10/k.MaxSize, 2), choose(r, 2, 4, 8))
	k.Messages = min(max(192<<10/k.MaxSize, 8), choose(r, 10, 20, 40))
	k.Gap = c.Phase / roce.Time(choose(r, 1, 2, 8)*k.Messages)
	for i := range numPlainOps {
		k.Weights[i] = choose(r, 0, 1, 2, 4)
	}
	k.Weights[r.IntN(numPlainOps)]++
	if one(r, 6) {
		k.Bad = 0.05
	}
	if one(r, 12) {
		k.SmallRq = 0.05
	}
	if one(r, 20) {
		k.CQDepth = choose(r, 1, 2, 4)
	}
	return k
}

// String prints the configuration, every option of it, on several lines.
func (c *Config) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: faults for %s, MTU %d, IPv6 %t\n", c.Seed,
		campaign.ClockTime(c.Phase), c.MTU, c.IPv6)
	fmt.Fprintf(&b, "  network  %+v\n", c.Faults)
	for _, w := range c.Ways {
		fmt.Fprintf(&b, "  %d to %d   %+v\n", w.From, w.To, w.Faults)
	}
	for i, n := range c.Nodes {
		fmt.Fprintf(&b, "  node %d   %+v\n", i, n)
	}
	for i := range c.Conns {
		fmt.Fprintf(&b, "  conn %d   %+v\n", i, c.Conns[i])
	}
	for _, e := range c.Chaos {
		fmt.Fprintf(&b, "  chaos    %s\n", e)
	}
	return b.String()
}
