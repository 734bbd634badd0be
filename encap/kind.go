package encap

import "fmt"

// Kind says what a datagram is.
type Kind uint8

// The kinds of datagrams.
const (
	Ethernet Kind = 1 + iota // a frame from its destination address on, without FCS
	IPv4
	IPv6
	ARP  // hardware type and all, of Ethernet (28 bytes) or InfiniBand (56)
	RARP // the same
)

// kinds are the names of the kinds, the shortest datagram of each, and the version of IP that
// the first four bits must have, 0 where they say something else.
var kinds = [...]struct {
	name    string
	min     int
	version byte
}{
	Ethernet: {"Ethernet", 14, 0},
	IPv4:     {"IPv4", 20, 4},
	IPv6:     {"IPv6", 40, 6},
	ARP:      {"ARP", 8, 0},
	RARP:     {"RARP", 8, 0},
}

// String is the name of the kind.
func (k Kind) String() string {
	if k.known() {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MinLen is the length in bytes of the shortest datagram of the kind: its header.
func (k Kind) MinLen() int {
	if k.known() {
		return kinds[k].min
	}
	return 0
}

func (k Kind) known() bool { return k > 0 && int(k) < len(kinds) }

// check looks at how a datagram of n bytes begins: nothing else of it is anybody's business
// here.
func (k Kind) check(first byte, n int) Reason {
	switch v := kinds[k].version; {
	case n < kinds[k].min:
		return TooShort
	case v != 0 && first>>4 != v:
		return BadIPVersion
	}
	return OK
}
