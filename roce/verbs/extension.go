package verbs

import "strings"

// Extensions are what two of our own queue pairs may agree on beyond the
// architecture. Both ends must be given the same; a foreign peer gets none.
type Extensions uint8

// The extensions.
const (
	// ExtSelectiveRepeat lets the receiver keep what came behind a gap and say
	// so, and the sender repeat the gap alone.
	ExtSelectiveRepeat Extensions = 1 << 0
	// ExtReorderWindow lets the receiver wait before it calls a gap a loss:
	// packets that took several paths overtake each other.
	ExtReorderWindow Extensions = 1 << 1
	// ExtPiggybackAck lets an acknowledge ride on a request that goes the same way
	// instead of in a packet of its own.
	ExtPiggybackAck Extensions = 1 << 2

	extensionsKnown = ExtSelectiveRepeat | ExtReorderWindow | ExtPiggybackAck
)

// String lists the extensions.
func (e Extensions) String() string {
	var names []string
	if e&ExtSelectiveRepeat != 0 {
		names = append(names, "selective_repeat")
	}
	if e&ExtReorderWindow != 0 {
		names = append(names, "reorder_window")
	}
	if e&ExtPiggybackAck != 0 {
		names = append(names, "piggyback_ack")
	}
	if e&^extensionsKnown != 0 {
		names = append(names, "unknown")
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "|")
}
