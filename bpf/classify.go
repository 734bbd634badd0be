package bpf

import "encoding/binary"

// Numbers of include/uapi/linux/if_ether.h, in.h and ipv6.h, under its names.
const (
	ethPIP     = 0x0800
	ethP8021Q  = 0x8100
	ethPIPv6   = 0x86DD
	ethP8021AD = 0x88A8
	ethPNative = 0x88B5 // ETH_P_802_EX1, IEEE 802 local experimental EtherType 1
	ethPIBoE   = 0x8915

	ipProtoUDP = 17

	nextHop      = 0
	nextRouting  = 43
	nextFragment = 44
	nextESP      = 50
	nextAuth     = 51
	nextDest     = 60
	nextMobility = 135

	ethLen  = 14
	vlanLen = 4
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8

	roceV2Port   = 4791
	maxVLANTags  = 2
	fragmentMask = 0x3fff // more fragments, and the offset; DF is free
)

// Classify makes the decision of the XDP program for a whole frame, from the
// Ethernet header on and without FCS. owns tells which addresses are owned.
// It answers Redirect where the program would redirect if the packet's queue
// had a socket. The steps and their order are those of xdp.c.
//
// It keeps nothing, allocates nothing and is safe for concurrent use.
func Classify(frame []byte, owns func(Key) bool) (Verdict, Reason) {
	reason := classify(frame, owns)
	return reason.Verdict(), reason
}

func classify(frame []byte, owns func(Key) bool) Reason {
	if len(frame) < ethLen {
		return PassTruncated
	}
	proto := binary.BigEndian.Uint16(frame[12:])
	rest := frame[ethLen:]
	for range maxVLANTags {
		if !isVLAN(proto) {
			break
		}
		if len(rest) < vlanLen {
			return PassTruncated
		}
		proto = binary.BigEndian.Uint16(rest[2:])
		rest = rest[vlanLen:]
	}
	if isVLAN(proto) {
		return PassVLANDepth
	}
	switch proto {
	case ethPIP:
		return classifyIPv4(rest, owns)
	case ethPIPv6:
		return classifyIPv6(rest, owns)
	case ethPIBoE:
		return ifOwned(V1Key([6]byte(frame)), owns, RedirectV1)
	case ethPNative:
		return ifOwned(NativeKey([6]byte(frame)), owns, RedirectNative)
	}
	return PassNotRoCE
}

func isVLAN(proto uint16) bool { return proto == ethP8021Q || proto == ethP8021AD }

func ifOwned(key Key, owns func(Key) bool, redirect Reason) Reason {
	if owns(key) {
		return redirect
	}
	return PassNotOurs
}

func classifyIPv4(p []byte, owns func(Key) bool) Reason {
	if len(p) < ipv4Len {
		return PassTruncated
	}
	ihl := int(p[0]&0xf) * 4
	switch {
	case p[0]>>4 != 4 || ihl < ipv4Len:
		return PassMalformed
	case p[9] != ipProtoUDP:
		return PassNotRoCE
	case binary.BigEndian.Uint16(p[6:])&fragmentMask != 0:
		return PassFragment
	case len(p) < ihl:
		return PassTruncated
	}
	key := Key{Kind: KindIPv4}
	key.Addr[10], key.Addr[11] = 0xff, 0xff
	copy(key.Addr[12:], p[16:20])
	room := int(binary.BigEndian.Uint16(p[2:])) - ihl
	return classifyUDP(p[ihl:], room, key, owns, RedirectV2IPv4)
}

func classifyIPv6(p []byte, owns func(Key) bool) Reason {
	if len(p) < ipv6Len {
		return PassTruncated
	}
	if p[0]>>4 != 6 {
		return PassMalformed
	}
	switch p[6] {
	case ipProtoUDP:
	case nextFragment:
		return PassFragment
	case nextHop, nextRouting, nextESP, nextAuth, nextDest, nextMobility:
		return PassExtension
	default:
		return PassNotRoCE
	}
	key := Key{Addr: [16]byte(p[24:40]), Kind: KindIPv6}
	room := int(binary.BigEndian.Uint16(p[4:]))
	return classifyUDP(p[ipv6Len:], room, key, owns, RedirectV2IPv6)
}

// classifyUDP judges what follows the IP header. room is what that header
// leaves for UDP, in bytes. The port comes before the lengths: what is not
// RoCE is none of our business.
func classifyUDP(p []byte, room int, key Key, owns func(Key) bool, redirect Reason) Reason {
	if len(p) < udpLen {
		return PassTruncated
	}
	if binary.BigEndian.Uint16(p[2:]) != roceV2Port {
		return PassNotRoCE
	}
	n := int(binary.BigEndian.Uint16(p[4:]))
	switch {
	case n < udpLen || n > room:
		return PassMalformed
	case room > len(p):
		return PassTruncated
	}
	return ifOwned(key, owns, redirect)
}
