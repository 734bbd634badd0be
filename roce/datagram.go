package roce

import (
	"fmt"

	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// grhLen is the room for addresses in front of a received datagram.
const grhLen = wire.GRHLen

// qkeyFromQP is the bit of a work request's Q_Key that asks for the QP's own
// instead (IBA 10.2.5): an application cannot forge a privileged key.
const qkeyFromQP = 1 << 31

// checkDatagram fills in the destination of a datagram.
func (r *requester) checkDatagram(wr *SendWR, w *sendWQE) error {
	switch {
	case wr.AH == nil || wr.AH.Domain() != r.domain:
		return fmt.Errorf("%w: a datagram needs an address handle of the QP's domain", ErrInvalid)
	case wr.RemoteQPN > wire.MulticastQP:
		return fmt.Errorf("%w: QP number %#x has more than 24 bits", ErrInvalid, wr.RemoteQPN)
	}
	w.packDatagram(wr.AH, wr.RemoteQPN, wr.RemoteQKey)
	return nil
}

// tooLong reports whether a work request is a datagram that does not fit one packet.
// It is not sent and yet complete, as the architecture has it (IBA C10-93.1.1); a
// counter tells.
func (r *requester) tooLong(w *sendWQE) bool {
	return r.typ.Datagram() && int(w.length) > r.portMTU.Bytes()
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
		PKey: wire.DefaultPKey, DestQP: qpn, PSN: r.psn,
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

// handleDatagram takes a UD SEND: addresses and payload go to the oldest
// receive. What does not fit is dropped, and the receive stays (IBA 9.8.3).
func (s *responder) handleDatagram(now Time, p *wire.Packet) {
	want := s.attr.QKey
	if s.typ == TypeGSI {
		want = GSIQKey
	}
	if p.DETH().QKey != want {
		s.drop(p, reasonQKey)
		return
	}
	if !s.takeReceive() {
		s.drop(p, reasonNoReceive)
		return
	}
	n := uint32(p.PayloadLen())
	if n > s.recv.Length || s.recv.Length-n < grhLen {
		s.drop(p, reasonFit)
		return
	}
	s.since = s.keys.Epoch()
	fault := s.scatter(s.recvAccess(), s.recvList(), 0, p.GRH())
	if fault == mem.OK {
		fault = s.scatterPacket(s.recvAccess(), s.recvList(), grhLen, p)
	}
	if fault == mem.FaultPage {
		// The receive stays for the next one.
		s.wantPages(s.recvAccess(), s.recvList(), 0, grhLen+n, mem.LocalWrite)
		s.drop(p, reasonPage)
		return
	}
	if fault != mem.OK {
		s.drop(p, reasonLocal)
		s.completeRecv(&Completion{Status: StatusLocProtErr, Time: now}, true)
		s.enterError()
		return
	}
	wc := Completion{
		Opcode: WCRecv, Flags: WCGRH, ByteLen: grhLen + n, SrcQP: p.DETH().SrcQP, Time: now,
	}
	if p.Spec.Has(wire.HasImmDt) {
		wc.Flags |= WCWithImm
		wc.Imm = p.ImmDt().Data
	}
	s.completeRecv(&wc, p.BTH.SE)
	s.count.Inc(counter.RDMARecvs)
}
