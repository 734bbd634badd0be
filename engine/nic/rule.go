package nic

import (
	"encoding/binary"
	"fmt"
)

// A Kind is which RoCE packets a flow rule is about.
type Kind uint8

// The kinds. A rule of another kind, or that looks at more than these do, is Other.
const (
	Other Kind = iota
	V4         // RoCE v2 over IPv4: UDP, destination port 4791
	V6         // RoCE v2 over IPv6: the same
	V1         // RoCE v1: EtherType 0x8915
)

// Kinds are the kinds of RoCE packets, in the order in which rules are made.
func Kinds() []Kind { return []Kind{V4, V6, V1} }

// String names the packets.
func (k Kind) String() string {
	switch k {
	case V4:
		return "RoCE over IPv4"
	case V6:
		return "RoCE over IPv6"
	case V1:
		return "RoCE v1"
	}
	return "other packets"
}

// Flow is the kind in the words of ethtool -N.
func (k Kind) Flow() string {
	switch k {
	case V4:
		return "flow-type udp4 dst-port 4791"
	case V6:
		return "flow-type udp6 dst-port 4791"
	case V1:
		return "flow-type ether proto 0x8915"
	}
	return ""
}

// A Rule is a flow rule of a card (ethtool -n).
type Rule struct {
	Location uint32 // its place in the card's table
	Kind     Kind
	Queue    int    // where packets go; Drop, or Elsewhere
	Context  uint32 // RSS context that chooses the queue, 0 for none
}

// Queues that are none.
const (
	Drop      = -1 // packets are dropped
	Elsewhere = -2 // they go to a virtual function, or wake the machine
)

// String says what the rule does.
func (r Rule) String() string {
	to := fmt.Sprintf("to queue %d", r.Queue)
	switch {
	case r.Queue == Drop:
		to = "nowhere"
	case r.Queue == Elsewhere:
		to = "to another function"
	case r.Context != 0:
		to = fmt.Sprintf("to RSS context %d", r.Context)
	}
	return fmt.Sprintf("flow rule %d sends %v %s", r.Location, r.Kind, to)
}

// Make is the command that makes such a rule on an interface.
func (r Rule) Make(iface string) string {
	return fmt.Sprintf("ethtool -N %s %s action %d", iface, r.Kind.Flow(), r.Queue)
}

// Delete is the command that removes the rule from an interface.
func (r Rule) Delete(iface string) string {
	return fmt.Sprintf("ethtool -N %s delete %d", iface, r.Location)
}

// struct ethtool_rxnfc of include/uapi/linux/ethtool.h, as the bytes that the kernel reads,
// in its byte order but for what is of a packet. TestLayout compares with a rule that
// ethtool made.
//
//	  0 u32 cmd        4 u32 flow_type   8 u64 data
//	 16 struct ethtool_rx_flow_spec fs:
//	      16 u32 flow_type
//	      20 headers[52]   72 ext[20]    their values
//	      92 headers[52]  144 ext[20]    which of their bits must be so
//	     168 u64 ring_cookie   176 u32 location
//	184 u32 rule_cnt, or rss_context   188 u32 rule_locs[]
const (
	rxnfcLen   = 192
	offData    = 8
	offSpec    = 16
	offValues  = offSpec + 4
	offMasks   = offSpec + 76
	headersLen = 52 + 20
	offCookie  = offSpec + 152
	offLoc     = offSpec + 160
	offCount   = 184
	offLocs    = 188
)

// Commands and values of ethtool.
const (
	cmdGetHash     = 0x29 // ETHTOOL_GRXFH
	cmdRings       = 0x2d // ETHTOOL_GRXRINGS
	cmdRuleCount   = 0x2e // ETHTOOL_GRXCLSRLCNT
	cmdRule        = 0x2f // ETHTOOL_GRXCLSRULE
	cmdRules       = 0x30 // ETHTOOL_GRXCLSRLALL
	cmdRuleDelete  = 0x31 // ETHTOOL_SRXCLSRLDEL
	cmdRuleInsert  = 0x32 // ETHTOOL_SRXCLSRLINS
	cmdIndirection = 0x38 // ETHTOOL_GRXFHINDIR

	flowUDP4  = 0x02 // UDP_V4_FLOW
	flowUDP6  = 0x06 // UDP_V6_FLOW
	flowEther = 0x12 // ETHER_FLOW
	flowRSS   = 0x20000000
	flowExt   = 0x80000000 // the ext headers count
	flowMAC   = 0x40000000

	locSpecial = 0x80000000 // the driver can choose the place of a rule
	locAny     = 0xffffffff // it is to

	cookieDrop = ^uint64(0)     // RX_CLS_FLOW_DISC
	cookieWake = ^uint64(0) - 1 // RX_CLS_FLOW_WAKE
)

// The numbers that rules match, and where they are in the headers of a flow.
const (
	rocePort      = 4791
	roceEtherType = 0x8915

	offDstPort4  = 4 + 4 + 2
	offDstPort6  = 16 + 16 + 2
	offEtherType = 6 + 6
)

// flow returns the type of flow of a kind, where its number is, and that.
func (k Kind) flow() (flow uint32, at int, number uint16) {
	switch k {
	case V4:
		return flowUDP4, offDstPort4, rocePort
	case V6:
		return flowUDP6, offDstPort6, rocePort
	case V1:
		return flowEther, offEtherType, roceEtherType
	}
	return 0, 0, 0
}

// put writes the rule as ETHTOOL_SRXCLSRLINS takes it.
func (r Rule) put(b []byte) {
	ne := binary.NativeEndian
	flow, at, number := r.Kind.flow()
	ne.PutUint32(b[offSpec:], flow)
	binary.BigEndian.PutUint16(b[offValues+at:], number)
	binary.BigEndian.PutUint16(b[offMasks+at:], 0xffff)
	ne.PutUint64(b[offCookie:], uint64(r.Queue))
	ne.PutUint32(b[offLoc:], r.Location)
}

// parseRule reads what ETHTOOL_GRXCLSRULE wrote.
func parseRule(b []byte) Rule {
	ne := binary.NativeEndian
	r := Rule{Location: ne.Uint32(b[offLoc:]), Kind: parseKind(b)}
	if ne.Uint32(b[offSpec:])&flowRSS != 0 {
		r.Context = ne.Uint32(b[offCount:])
	}
	switch cookie := ne.Uint64(b[offCookie:]); {
	case cookie == cookieDrop:
		r.Queue = Drop
	case cookie == cookieWake, cookie > 0xffffffff: // a virtual function is in the bits above
		r.Queue = Elsewhere
	default:
		r.Queue = int(cookie)
	}
	return r
}

// parseKind returns the kind of the packets that a rule is about, Other when it looks at
// anything more or less.
func parseKind(b []byte) Kind {
	spec := binary.NativeEndian.Uint32(b[offSpec:])
	if spec&(flowExt|flowMAC) != 0 {
		return Other
	}
	for _, k := range Kinds() {
		flow, at, number := k.flow()
		if spec&^flowRSS != flow {
			continue
		}
		if binary.BigEndian.Uint16(b[offValues+at:]) != number {
			return Other
		}
		for i, mask := range b[offMasks:][:headersLen] {
			if (i == at || i == at+1) != (mask == 0xff) || mask != 0 && mask != 0xff {
				return Other
			}
		}
		return k
	}
	return Other
}
