package wire

// The two ECN bits of the IPv4 TOS and the traffic class (RFC 3168). They are no part of the
// ICRC, so a switch may change them.
const (
	ECNMask uint8 = 3
	// ECT0 says that a switch may mark the packet rather than drop it.
	ECT0 uint8 = 2
	// ECNCE says that a switch has: congestion experienced.
	ECNCE uint8 = 3
)
