package engine

import (
	"slices"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// This file hands out packets of multicast groups.

// demuxMulticast hands a packet to every member of its group but the sender, and its
// frame to each other queue that has members, once.
func (q *queue) demuxMulticast(now roce.Time, p *wire.Packet, f *xsk.RxFrame, forwarded bool) {
	fromHere := p.SrcMAC == q.loop.mac
	members := q.device.groups.load()[p.Dst]
	if len(members) == 0 || p.Spec.Service != wire.ServiceUD || !q.isLocalVLAN(p.Tags.VLAN()) {
		if !fromHere { // our own packets to groups without local members are no drops
			q.drop(counter.DropMulticast)
		}
		return
	}
	taken, reason := false, ""
	if len(q.device.queues) > 1 && !forwarded {
		var lost bool
		if taken, lost = q.forwardToMembers(members, f); lost {
			reason = handoverNoRoom
		}
	}
	sender := p.DETH().SrcQP
	for _, qp := range members {
		if qp.home() != q {
			continue
		}
		if fromHere && qp.core.Num() == sender {
			continue
		}
		qp.core.AddRcvdBytes(f.Len())
		qp.core.HandlePacket(now, p)
		if o := qp.core.Outcome(p); o.Verdict == roce.VerdictAccepted {
			taken = true
		} else {
			reason = o.Reason.String()
		}
		q.reschedule(qp)
	}
	switch {
	case forwarded:
		q.fate.kind = fateForwarded // it was shown where it came to
	case taken:
		q.fate.kind = fateGroup
	default:
		q.fate = fate{kind: fateGroup, reason: reason}
	}
}

// forwardToMembers gives a frame to each other queue on which members of its group live. It
// reports whether there was one with room for it, and one without.
func (q *queue) forwardToMembers(members []*QP, f *xsk.RxFrame) (taken, lost bool) {
	for _, other := range q.device.queues {
		if other != q && slices.ContainsFunc(members, func(m *QP) bool {
			return m.home() == other
		}) {
			if q.handOver(other, f) {
				taken = true
			} else {
				lost = true
			}
		}
	}
	return taken, lost
}
