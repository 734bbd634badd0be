package roce

// ackTimeoutUnit is the unit of the local ACK timeout (IBA 9.7.6.1.3).
const ackTimeoutUnit = 4096 * Nanosecond

// ackTimeout returns 4.096 us * 2^code, 0 (no timer) for code 0.
func ackTimeout(code uint8) Time {
	if code == 0 {
		return 0
	}
	return ackTimeoutUnit << (code & 31)
}
