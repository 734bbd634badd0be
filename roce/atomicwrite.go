package roce

import (
	"encoding/binary"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// executeAtomicWrite stores eight bytes at once.
func (s *responder) executeAtomicWrite(p *wire.Packet) (Reason, wire.Syndrome) {
	if reason, nak := s.mayAddResource(mem.RemoteWrite); nak != 0 {
		return reason, nak
	}
	reth := p.RETH()
	var word [8]byte
	if reth.DMALen != 8 || p.CopyPayload(word[:]) != 8 || p.PayloadLen() != 8 {
		return reasonLength, wire.NAKInvalidRequest
	}
	s.receiveCQ().FlushInline()
	if fault := s.keys().StoreWord(s.peerAccess(0), reth.RKey, reth.VA,
		binary.NativeEndian.Uint64(word[:])); fault != mem.OK {
		return s.refusal(fault)
	}
	s.addResource(resource{kind: resourceDone}, 1)
	return reasonAdmitted, 0
}
