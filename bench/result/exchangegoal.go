package result

// Variants of exchanges that goals are about.
const (
	piggybacked = "ours, piggybacked ACKs"
	spinningUDP = "UDP sockets, spinning"
	blockingUDP = "UDP sockets, blocking"
)

// exchangeGoals are those of one short SEND there and back, by how the device is driven and what
// its acknowledges travel in, and of many at a time. Two thirds of the time are one and a half
// times the rate.
func exchangeGoals() []Goal {
	const (
		spinning = "rtt-64"
		asleep   = "rtt-sleep-64"
	)
	return []Goal{
		{"half round trip of 64 B, of raw", 1.2, true, spinning, ours, raw, in(against)},
		{
			"half round trip of 64 B, of UDP sockets", 0.68, true, spinning, ours, spinningUDP,
			in(against),
		},
		{
			"half round trip of 64 B, piggybacked ACKs, of raw", 1.2, true, spinning, piggybacked,
			raw, in(against),
		},
		{
			"half round trip of 64 B, piggybacked ACKs, of UDP sockets", 0.68, true, spinning,
			piggybacked, spinningUDP, in(against),
		},
		{
			"half round trip of 64 B, piggybacked ACKs, of ours without", 0.67, true, spinning,
			piggybacked, ours, in(against),
		},
		{
			"calls of 64 B a second, piggybacked ACKs, of ours without", 1.5, false, "rpc-64",
			piggybacked, ours, in(against),
		},
		{
			"calls of 64 B a second, piggybacked ACKs, of ours without, in turn", 1.5, false,
			"rpc-turns-64", piggybacked, "", in(amounts),
		},
		{
			"half round trip of 64 B, busy background loop, of direct mode", 1.2, true, spinning,
			"ours, busy background loop", ours, in(against),
		},
		{
			"half round trip of 64 B asleep, background loop, of UDP sockets", 1.2, true, asleep,
			"ours, background loop", blockingUDP, in(against),
		},
	}
}
