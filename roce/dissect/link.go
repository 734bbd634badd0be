package dissect

import "fmt"

// Link is what the bytes of a packet begin with: a LINKTYPE of tcpdump.org.
type Link uint16

// The link types that a Dissector looks into.
const (
	LinkNull       Link = 0   // BSD loopback: a family in the order of the host
	LinkEthernet   Link = 1   // Ethernet without FCS
	LinkRaw        Link = 101 // IPv4 or IPv6
	LinkCooked     Link = 113 // Linux cooked, version 1
	LinkUser0      Link = 147 // InfiniBand from the LRH, by agreement
	LinkERF        Link = 197 // a record of Endace with its header
	LinkIPv4       Link = 228
	LinkIPv6       Link = 229
	LinkInfiniBand Link = 247 // InfiniBand from the LRH
	LinkCooked2    Link = 276 // Linux cooked, version 2
)

var linkNames = map[Link]string{
	LinkNull: "NULL", LinkEthernet: "EN10MB", LinkRaw: "RAW", LinkCooked: "LINUX_SLL",
	LinkUser0: "USER0", LinkERF: "ERF", LinkIPv4: "IPV4", LinkIPv6: "IPV6",
	LinkInfiniBand: "INFINIBAND", LinkCooked2: "LINUX_SLL2",
}

// String is the name that tcpdump has for it.
func (l Link) String() string {
	if name, ok := linkNames[l]; ok {
		return name
	}
	return fmt.Sprintf("LINKTYPE_%d", uint16(l))
}
