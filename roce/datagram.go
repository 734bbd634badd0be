package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// grhLen is the room for addresses in front of a received datagram.
const grhLen = wire.GRHLen

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
	s.since = s.keys().Epoch()
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
		s.enterError()
		s.failRecv(now, StatusLocProtErr)
		return
	}
	wc := Completion{
		Opcode: WCRecv, Flags: WCGRH, ByteLen: grhLen + n, SrcQP: p.DETH().SrcQP, Time: now,
	}
	if s.typ == TypeGSI {
		wc.SrcMAC, wc.VLAN = p.SrcMAC, p.Tags.VLAN()
		wc.PKeyIndex, _ = s.common.PKeys.Find(p.BTH.PKey) // it was admitted
	}
	if p.Spec.Has(wire.HasImmDt) {
		wc.Flags |= WCWithImm
		wc.Imm = p.ImmDt().Data
	}
	s.completeRecv(&wc, p.BTH.SE)
	s.count.Inc(counter.RDMARecvs)
}
