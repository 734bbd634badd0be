package cases

import "strings"

// pings is rounds for the programs of rdma_cm, which wait for each.
func pings(c Case) int {
	if c.Fault == Loss {
		return rounds(c)
	}
	return min(rounds(c), 20)
}

// rounds is how many messages go each way: few of the large ones.
func rounds(c Case) int {
	switch {
	case c.Trace:
		return 5
	case c.Fault == Loss && c.Size == 0:
		return 1000 // packets enough to lose some
	case c.Fault == Loss:
		return 100
	case c.Size >= 1<<20:
		return 10
	case c.Size >= 1<<16:
		return 50
	case strings.HasPrefix(c.Tool, "ib_") && strings.HasSuffix(c.Tool, "_lat"):
		// They spin while they wait, on the only processor of the VM, so each message
		// waits for the scheduler there.
		return 50
	}
	return 200
}

// DataPackets is how many packets with requests or data a case has at least.
func DataPackets(c Case) int {
	return rounds(c) * max(1, (c.Size+c.MTU-1)/c.MTU)
}
