package cases

import (
	"math/bits"
	"strings"

	"xroce/xsk/xsktest/timeout"
)

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
	case c.Fault.Resets():
		return 200
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

// ackTimeout is how long the programs of perftest wait for an acknowledgement, as the
// exponent of IBA 9.7.6.1.3: 4096 ns times a power of two. An emulated host that has to
// share its processor is late for their usual 67 ms, and what is sent again makes it
// later: it is half a second, and more where limits grow. After a loss somebody waits
// for it, so there it is the usual one, which grows as well. In a trace it is what the
// kernel's rdma_cm says in its REQ whatever the program wants, or the two would differ.
func ackTimeout(c Case) int {
	exponent := kernelAckTimeout
	switch {
	case c.Trace:
		return kernelAckTimeout
	case c.Fault.Resets():
		exponent = kernelAckTimeout + 1 // a card may be away for seconds
	case c.Fault != NoFault:
		exponent = 14
	}
	// A calibration says 2 at rest.
	return min(exponent+bits.Len(uint((timeout.Multiplier()-1)/2)), maxAckTimeout)
}

// kernelAckTimeout is that of rdma_cm over RoCE (CMA_IBOE_PACKET_LIFETIME and one more, in
// the kernel's drivers/infiniband/core/cma.c): half a second.
const kernelAckTimeout = 17

// maxAckTimeout are four seconds: with seven retries that is the limit of a case.
const maxAckTimeout = 20
