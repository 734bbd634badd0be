package roce

import "xroce/roce/wire"

// findSRQ finds the shared receive queue of an XRC request. One message has one.
func (q *QP) findSRQ(p *wire.Packet) bool {
	srq := q.xrcd.Find(p.XRCETH().SRQN)
	if srq == nil || (q.rsp.kind != msgNone && srq != q.srq) {
		return false
	}
	if q.rsp.held && srq != q.srq {
		return false
	}
	if q.srq != nil && srq != q.srq {
		q.srq.CQ().FlushInline() // what comes now comes after it
	}
	q.srq = srq
	return true
}
