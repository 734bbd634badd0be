package nic

import "slices"

// A Card is what a network interface and its driver say of themselves. The zero value of a
// field is "not told", unless its comment says otherwise.
type Card struct {
	Name     string
	Driver   string
	Version  string // of the driver; that of the kernel for most drivers in its tree
	Firmware string
	Bus      string // where the card is, such as 0000:3b:00.0
	Rings    int    // receive rings
	Channels Channels
	// Indirection is the table by which receive-side scaling chooses a queue.
	Indirection []int
	// HashUDP4 and HashUDP6 tell what of UDP packets is hashed for that.
	HashUDP4, HashUDP6 Hash
	Features           map[string]Feature
	Rules              []Rule // flow rules, by location
	RuleRoom           int    // how many flow rules there can be
	// RulesErr is why there are no flow rules, nil when there can be some.
	RulesErr error
	Busy     BusyPoll
	IRQs     []IRQ // interrupts of the card, all of its queues and a few more
	RDMA     RDMA
	VFs      int // virtual functions that are enabled
	CPUs     int // processors of the machine
}

// Channels are the numbers of queues of an interface and the most that there can be.
type Channels struct {
	Rx, Tx, Combined          int
	MaxRx, MaxTx, MaxCombined int
}

// Hash is which fields of a packet receive-side scaling looks at.
type Hash uint64

// The fields, as ETHTOOL_GRXFH has them (RXH_*).
const (
	HashSrcAddr Hash = 1 << 4
	HashDstAddr Hash = 1 << 5
	HashSrcPort Hash = 1 << 6
	HashDstPort Hash = 1 << 7
)

// A Feature is the state of an offload (ethtool -k).
type Feature struct {
	On    bool
	Fixed bool // it cannot be changed
}

// BusyPoll is what of the interface preferred busy polling needs. -1 is not told.
type BusyPoll struct {
	DeferHardIRQs int // rounds without packets until interrupts are on again
	FlushTimeout  int // nanoseconds until the kernel looks itself
}

// Deferred reports whether interrupts are put off while somebody polls.
func (b BusyPoll) Deferred() bool { return b.DeferHardIRQs > 0 && b.FlushTimeout > 0 }

// Advice is the command after which preferred busy polling takes effect on an interface, with the
// values of the kernel's documentation (Documentation/networking/napi.rst): two rounds, 200 us.
func (b BusyPoll) Advice(iface string) string {
	dir := "/sys/class/net/" + iface
	return "echo 2 > " + dir + "/napi_defer_hard_irqs; echo 200000 > " + dir + "/gro_flush_timeout"
}

// An IRQ is an interrupt of a card.
type IRQ struct {
	Number int
	Name   string // as /proc/interrupts has it
	CPUs   string // that it may go to, such as 0-3,8
}

// RDMA is what an RDMA driver of the kernel has on the card.
type RDMA struct {
	Devices []string // verbs devices of the card, such as rocep59s0f0
	Soft    []string // those of Soft-RoCE on the interface, such as rxe0
	RoCE    Setting  // devlink's enable_roce
}

// A Setting is a switch that a driver has, or has not.
type Setting uint8

// The settings.
const (
	NoSetting Setting = iota // the driver has none, or does not tell
	SettingOff
	SettingOn
)

// Queues returns the receive queues there are, at least one.
func (c *Card) Queues() int {
	return max(1, c.Channels.Combined+c.Channels.Rx, c.Rings)
}

// Spread returns the queues that RSS gives packets to, in order: those in its table, or
// all when the driver shows none.
func (c *Card) Spread() []int {
	if len(c.Indirection) == 0 {
		all := make([]int, c.Queues())
		for i := range all {
			all[i] = i
		}
		return all
	}
	list := slices.Clone(c.Indirection)
	slices.Sort(list)
	return slices.Compact(list)
}

// Landing returns the queues that RoCE packets of a kind come in on, and the rule that
// says so, nil when it is RSS.
func (c *Card) Landing(k Kind) ([]int, *Rule) {
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Kind == k && r.Queue >= 0 && r.Context == 0 {
			return []int{r.Queue}, r
		}
	}
	return c.Spread(), nil
}

// Feature returns the state of an offload, and whether the driver has it.
func (c *Card) Feature(name string) (Feature, bool) {
	f, ok := c.Features[name]
	return f, ok
}
