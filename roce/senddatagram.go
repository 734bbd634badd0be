package roce

import (
	"fmt"

	"xroce/roce/wire"
)

// This file sends datagrams.

// qkeyFromQP is the bit of a work request's Q_Key that asks for the QP's own
// instead (IBA 10.2.5): an application cannot forge a privileged key.
const qkeyFromQP = 1 << 31

// checkDatagram looks at the destination of a datagram.
func (r *requester) checkDatagram(wr *SendWR) error {
	switch {
	case wr.AH == nil || wr.AH.Domain() != r.domain:
		return fmt.Errorf("%w: a datagram needs an address handle of the QP's domain", ErrInvalid)
	case wr.RemoteQPN > wire.MulticastQP:
		return fmt.Errorf("%w: QP number %#x has more than 24 bits", ErrInvalid, wr.RemoteQPN)
	}
	return nil
}

// checkPKey looks at the P_Key of a datagram of QP 1. The caller holds the lock of the queue,
// which Rehome takes.
func (r *requester) checkPKey(wr *SendWR) error {
	if n := len(r.common.PKeys); int(wr.PKeyIndex) >= n {
		return fmt.Errorf("%w: P_Key index %d is above %d", ErrInvalid, wr.PKeyIndex, n-1)
	}
	return nil
}

// putDatagram writes a UD SEND.
func (r *requester) putDatagram(now Time, w *sendWQE, frame []byte) int {
	op := w.opcode.Op().Only | wire.UDSendOnly&^0x1f
	spec := op.Spec()
	ah, qpn, qkey := w.datagram()
	path := ah.Template()
	b := frame[path.Len():]
	wire.BTH{
		Opcode: op, SE: w.flags&SendSolicited != 0, M: true, PadCnt: wire.PadCnt(int(w.length)),
		PKey: r.datagramPKey(w), DestQP: qpn, PSN: r.psn,
	}.Put(b)
	wire.DETH{QKey: r.qkey(qkey), SrcQP: r.num}.
		Put(b[spec.Offsets[wire.HeaderDETH]:])
	if spec.Has(wire.HasImmDt) {
		wire.ImmDt{Data: w.imm}.Put(b[spec.Offsets[wire.HeaderImmDt]:])
	}
	headers := wire.BTHLen + int(spec.HeaderLen)
	if !r.putPayload(now, w, 0, b[headers:][:w.length]) {
		return 0
	}
	r.sent(r.psn.Add(1), w)
	return r.seal(path, frame, headers, w.length)
}

// datagramPKey is the P_Key of a datagram: QP 1 is in all partitions of the port, and each
// datagram says which it is for (IBA 10.9.8).
func (r *requester) datagramPKey(w *sendWQE) uint16 {
	if r.typ == TypeGSI {
		return r.common.PKeys[w.pkeyIndex()]
	}
	return r.pkey()
}

// qkey is the Q_Key of a datagram.
func (r *requester) qkey(asked uint32) uint32 {
	switch {
	case r.typ == TypeGSI:
		return GSIQKey
	case asked&qkeyFromQP != 0:
		return r.attr.QKey
	}
	return asked
}
