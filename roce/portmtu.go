package roce

import "xroce/roce/wire"

// This file is about how long packets may be: those of a connection by its path MTU, datagrams by
// what the port has room for.

// What is in front of the payload of a packet that is full, and behind it, beside what the path
// says. XRC has a header more.
const (
	mostHeaders         = wire.BTHLen + wire.RETHLen + wire.ImmDtLen + wire.ICRCLen
	mostDatagramHeaders = wire.BTHLen + wire.DETHLen + wire.ImmDtLen + wire.ICRCLen
)

// mostPath is the length of the longest path: Ethernet with two tags, IPv6 and UDP.
const mostPath = 14 + wire.MaxTags*wire.TagLen + 40 + 8

// LongestFrame is how many bytes the longest frame of RoCE has, without FCS.
const LongestFrame = mostPath + mostHeaders + wire.XRCETHLen + 4096

// FrameRoom returns for how many bytes NextPacket may need room, at most LongestFrame. A QP of
// type RAW_PACKET says 0: it refuses what has no room. It needs the progress lock.
func (q *QP) FrameRoom() int {
	switch {
	case q.typ == TypeRawPacket:
		return 0
	case q.typ.Datagram():
		return mostPath + mostDatagramHeaders + q.req.mostMTU.Bytes()
	case q.typ.XRC():
		return q.path.Len() + mostHeaders + wire.XRCETHLen + q.attr.FullPacket()
	}
	return q.path.Len() + mostHeaders + q.attr.FullPacket()
}

// SetPortMTU tells a QP for datagrams that the port has another MTU: longer ones are not sent from
// now on, but for those under way. It needs the progress lock.
func (q *QP) SetPortMTU(m wire.MTU) { q.req.setPortMTU(m) }

// setPortMTU is SetPortMTU.
func (r *requester) setPortMTU(m wire.MTU) { r.portMTU, r.mostMTU = m, max(r.mostMTU, m) }
