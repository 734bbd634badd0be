package host

import (
	"fmt"
	"slices"
	"strings"

	"xroce/engine/nic"
)

// JudgeCard judges what a card does with RoCE packets before XDP sees them, and whether they
// come in on queues that are ours.
func JudgeCard(i Interface, c *nic.Card, ours []int) []Finding {
	list := []Finding{judgeDriver(c)}
	list = append(list, judgeQueues(c, ours)...)
	list = append(list, judgeOffloads(i, c)...)
	if d, ok := Drivers[c.Driver]; ok && d.judge != nil {
		list = append(list, d.judge(c)...)
	}
	list = append(list, judgeSoftRoCE(c)...)
	return append(list, judgeBusyPoll(c), judgeIRQs(c))
}

// judgeDriver tells what drives the card and what is known of that.
func judgeDriver(c *nic.Card) Finding {
	words := []string{or(c.Driver, "unknown")}
	if c.Version != "" {
		words = append(words, "version "+c.Version)
	}
	if c.Firmware != "" && c.Firmware != "N/A" {
		words = append(words, "firmware "+c.Firmware)
	}
	if c.Bus != "" {
		words = append(words, "at "+c.Bus)
	}
	f := Finding{What: "driver", Verdict: Note, Value: strings.Join(words, ", ")}
	if d, ok := Drivers[c.Driver]; ok && d.Restarts {
		f.Value += "; it restarts its queues when a device is opened and closed"
	}
	return f
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// judgeQueues tells which queues RoCE packets come in on.
func judgeQueues(c *nic.Card, ours []int) []Finding {
	n := c.Queues()
	f := Finding{What: "queues", Verdict: Good, Value: fmt.Sprint(n)}
	if n == 1 {
		return []Finding{f}
	}
	f.Value = fmt.Sprintf("%d, %s", n, those(ours, n))
	var list []Finding
	for _, k := range nic.Kinds() {
		list = append(list, judgeLanding(c, k, ours))
	}
	if slices.ContainsFunc(list, func(f Finding) bool { return f.Verdict == Warning }) {
		f.Verdict = Warning
		f.Value += ": RoCE packets may come in on one that is not"
		f.Remedy = oneQueue(c)
		if c.RulesErr == nil {
			f.Remedy = "--steer makes the rules below while a command runs; or have one queue: " +
				f.Remedy
		}
	}
	list = append([]Finding{f}, list...)
	if len(ours) > 1 {
		list = append(list, judgeHash(c, "udp4", c.HashUDP4), judgeHash(c, "udp6", c.HashUDP6))
	}
	return list
}

// those says which queues are ours.
func those(ours []int, n int) string {
	switch len(ours) {
	case n:
		return "all of which are ours"
	case 1:
		return fmt.Sprintf("of which queue %d is ours", ours[0])
	}
	return fmt.Sprintf("of which %s are ours", ranges(ours))
}

// oneQueue is the command that leaves a card one queue.
func oneQueue(c *nic.Card) string {
	if c.Channels.MaxCombined == 0 && c.Channels.MaxRx > 0 {
		return fmt.Sprintf("ethtool -L %s rx 1 tx 1", c.Name)
	}
	return fmt.Sprintf("ethtool -L %s combined 1", c.Name)
}

// judgeLanding tells where packets of a kind come in, and what would bring them to us.
func judgeLanding(c *nic.Card, k nic.Kind, ours []int) Finding {
	queues, rule := c.Landing(k)
	foreign := slices.DeleteFunc(slices.Clone(queues), func(q int) bool {
		return slices.Contains(ours, q)
	})
	f := Finding{What: k.String(), Verdict: Good, Value: "on queue " + ranges(queues)}
	if len(queues) > 1 {
		f.Value = "on queues " + ranges(queues)
		if k == nic.V1 && rule == nil { // most drivers hash IP only
			f.Value = "on a queue of the driver's choice"
		}
	}
	if rule != nil {
		f.Value += fmt.Sprintf(", by flow rule %d", rule.Location)
	}
	if len(foreign) == 0 {
		return f
	}
	f.Verdict = Warning
	if rule == nil {
		f.Value += fmt.Sprintf(": %d of %d are not ours", len(foreign), len(queues))
	}
	switch make := (nic.Rule{Kind: k, Queue: ours[0]}).Make(c.Name); {
	case rule != nil:
		f.Remedy = rule.Delete(c.Name) + " && " + make
	case c.RulesErr == nil:
		f.Remedy = make
		if n, ok := c.Feature("rx-ntuple-filter"); ok && !n.On && !n.Fixed {
			f.Remedy = fmt.Sprintf("ethtool -K %s ntuple on && %s", c.Name, make)
		}
	default:
		f.Remedy = "the driver has no flow rules: use all queues, or " + oneQueue(c)
	}
	return f
}

// judgeHash tells whether queue pairs of two hosts are spread over queues.
func judgeHash(c *nic.Card, flow string, h nic.Hash) Finding {
	f := Finding{What: "hash of " + flow, Verdict: Note, Value: "not told by the driver"}
	switch {
	case h&nic.HashSrcPort != 0:
		f.Verdict, f.Value = Good, "addresses and ports: queue pairs are spread over the queues"
	case h != 0:
		f.Value = "addresses alone: all that one host sends comes in on one queue"
		f.Remedy = fmt.Sprintf("ethtool -N %s rx-flow-hash %s sdfn", c.Name, flow)
	}
	return f
}

// judgeOffloads looks at what changes frames before XDP or in front of it.
func judgeOffloads(i Interface, c *nic.Card) []Finding {
	var list []Finding
	if lro, ok := c.Feature("rx-lro"); ok {
		f := Finding{What: "LRO", Verdict: Good, Value: "off"}
		if lro.On {
			f.Verdict, f.Value = Warning, "on: drivers refuse native XDP with it"
			f.Remedy = fmt.Sprintf("ethtool -K %s lro off", c.Name)
		}
		list = append(list, f)
	}
	if hw, ok := c.Feature("rx-gro-hw"); ok && hw.On && !hw.Fixed {
		list = append(list, Finding{
			"GRO in hardware", Warning, "on: drivers refuse native XDP with it, or turn it off",
			fmt.Sprintf("ethtool -K %s rx-gro-hw off", c.Name),
		})
	}
	// A veth takes tags off nothing: what a device of ours sent into it has them in the frame.
	if vlan, ok := c.Feature("rx-vlan-hw-parse"); ok && vlan.On && c.Driver != "veth" {
		f := Finding{What: "VLAN tags", Verdict: Note, Value: "removed by the card: frames of " +
			"VLANs " +
			"look untagged to XDP"}
		f.Remedy = fmt.Sprintf("ethtool -K %s rxvlan off", c.Name)
		if len(i.VLANs) > 0 {
			f.Verdict = Warning
		}
		if vlan.Fixed {
			f.Remedy = "the driver cannot leave them: use no VLANs on it"
		}
		list = append(list, f)
	}
	for _, o := range []string{"rx-udp-gro-forwarding", "rx-gro-list"} {
		if merges, ok := c.Feature(o); ok && merges.On {
			list = append(list, Finding{
				o, Warning, "on: in generic mode merged packets reach us",
				fmt.Sprintf("ethtool -K %s %s off", c.Name, o),
			})
		}
	}
	return list
}

// judgeSoftRoCE finds devices of Soft-RoCE, whose packets would be ours.
func judgeSoftRoCE(c *nic.Card) []Finding {
	if len(c.RDMA.Soft) == 0 {
		return nil
	}
	var remove []string
	for _, name := range c.RDMA.Soft {
		remove = append(remove, "rdma link delete "+name)
	}
	return []Finding{{
		"Soft-RoCE", Warning, strings.Join(c.RDMA.Soft, " ") +
			" is on the interface: an open device takes its packets",
		strings.Join(remove, " && "),
	}}
}

// What other users of AF_XDP set for preferred busy polling: xdpsock of the kernel's samples
// and DPDK both have these.
const (
	deferHardIRQs = 2
	flushTimeout  = 200000 // ns
)

// judgeBusyPoll tells what SO_PREFER_BUSY_POLL lacks.
func judgeBusyPoll(c *nic.Card) Finding {
	f := Finding{What: "sysctls of busy polling", Verdict: Note, Value: "not to be seen here"}
	if c.Busy.DeferHardIRQs < 0 || c.Busy.FlushTimeout < 0 {
		return f
	}
	f.Value = fmt.Sprintf("napi_defer_hard_irqs %d, gro_flush_timeout %d", c.Busy.DeferHardIRQs,
		c.Busy.FlushTimeout)
	if c.Busy.DeferHardIRQs > 0 && c.Busy.FlushTimeout > 0 {
		f.Verdict = Good
		return f
	}
	dir := "/sys/class/net/" + c.Name + "/"
	f.Remedy = fmt.Sprintf("only if a program asks for busy polling: echo %d > "+
		"%snapi_defer_hard_irqs; echo %d > %sgro_flush_timeout", deferHardIRQs, dir,
		flushTimeout, dir)
	return f
}

// judgeIRQs tells where the interrupts of the card go.
func judgeIRQs(c *nic.Card) Finding {
	f := Finding{What: "interrupts", Verdict: Note, Value: "none to be seen"}
	if len(c.IRQs) == 0 {
		return f
	}
	const most = 8
	var words []string
	for _, irq := range c.IRQs[:min(len(c.IRQs), most)] {
		words = append(words, fmt.Sprintf("%s on CPU %s", or(irq.Name, fmt.Sprint(irq.Number)),
			irq.CPUs))
	}
	if more := len(c.IRQs) - most; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	f.Value = strings.Join(words, ", ")
	first := c.IRQs[0].CPUs
	same := !slices.ContainsFunc(c.IRQs, func(q nic.IRQ) bool { return q.CPUs != first })
	if same && c.Queues() > 1 && !strings.ContainsAny(first, ",-") {
		f.Verdict = Warning
		f.Remedy = fmt.Sprintf("all are on CPU %s; spread them: echo 1 > "+
			"/proc/irq/%d/smp_affinity_list, and so on, or start "+
			"irqbalance", first, c.IRQs[0].Number)
	}
	return f
}

// ranges writes numbers in order, such as 0-3 5.
func ranges(list []int) string {
	var words []string
	for at := 0; at < len(list); {
		end := at + 1
		for end < len(list) && list[end] == list[end-1]+1 {
			end++
		}
		word := fmt.Sprint(list[at])
		if end > at+1 {
			word += fmt.Sprintf("-%d", list[end-1])
		}
		words = append(words, word)
		at = end
	}
	return strings.Join(words, " ")
}
