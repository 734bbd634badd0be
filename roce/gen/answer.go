package gen

import (
	"encoding/binary"
	"net/netip"

	"xroce/roce/wire"
)

// MaxAnswer is the most bytes that Answer writes.
const MaxAnswer = maxHeaders + SignatureLen + transitLen

// An Account is what a sink tells of a flow.
type Account struct {
	Received uint64 // frames, each once
	Transit
}

// broadcast is the address of all hosts on a link.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// Answer writes the answer to a frame whose signature ended a flow: a UDP datagram to the
// address and port that the frame came from, with what came of the flow. It returns its length,
// 0 when the frame has no IP header, so nobody can be answered, or has a group as its source: one
// frame of a stranger is not to become one for all. frame must have MaxAnswer bytes.
func Answer(frame, to []byte, of Account) int {
	var r Reader
	a := r.Read(to, nil)
	if a.Found != Signed || a.Signature.Kind != End || !a.Src.IsValid() {
		return 0
	}
	if ip := a.Src.Addr(); a.SrcMAC[0]&1 != 0 || ip.IsMulticast() || ip.IsUnspecified() ||
		ip == broadcast {
		return 0
	}
	c := Config{Path: wire.Path{
		SrcMAC: [6]byte(to), DstMAC: a.SrcMAC, HopLimit: 64,
		Dst: wire.GIDFromAddr(a.Src.Addr()),
	}, DstPort: a.Src.Port()}
	tags, _, off, ok := wire.ParseTags(to)
	if !ok {
		return 0
	}
	c.Path.Tags = tags
	ip := to[off:]
	if c.Path.Dst.IsIPv4() {
		c.Path.Src = wire.GIDFromIPv4([4]byte(ip[16:]))
		c.Path.SrcPort = binary.BigEndian.Uint16(ip[ipv4Len+2:])
	} else {
		c.Path.Src = wire.GID(ip[24:])
		c.Path.SrcPort = binary.BigEndian.Uint16(ip[ipv6Len+2:])
	}
	s := a.Signature
	s.Kind, s.Seq = Report, of.Received
	stack := putHeaders(frame, &c)
	frame = frame[:stack.payload+SignatureLen+transitLen]
	s.Put(frame[stack.payload:])
	of.put(frame[stack.payload+SignatureLen:])
	stack.finishUDP(frame)
	return len(frame)
}
