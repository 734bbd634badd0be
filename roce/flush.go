package roce

import (
	"fmt"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// checkFlush fills in what is special to FLUSH.
func (r *requester) checkFlush(wr *SendWR, w *sendWQE) error {
	if wr.Flush == 0 || wr.Flush&^(wire.FlushGlobal|wire.FlushPersistent) != 0 {
		return fmt.Errorf("%w: FLUSH type %#x", ErrInvalid, wr.Flush)
	}
	if len(wr.SGList) != 0 {
		return fmt.Errorf("%w: FLUSH with %d SGEs", ErrInvalid, len(wr.SGList))
	}
	h := wire.FETH{PLT: wr.Flush}
	if wr.FlushRegion {
		h.SEL = wire.FlushRegion
	}
	w.packFlush(h, wr.FlushLength)
	return nil
}

// putFlush writes a FLUSH.
func (r *requester) putFlush(w *sendWQE, frame []byte) int {
	b := frame[r.path.Len():]
	spec := r.putBTH(b, wire.BTH{Opcode: wire.RCFlush, AckReq: true, PSN: r.psn}, w.srqn)
	h, length := w.flush()
	h.Put(b[spec.Offsets[wire.HeaderFETH]:])
	wire.RETH{VA: w.remoteAddr, RKey: w.rkey, DMALen: length}.
		Put(b[spec.Offsets[wire.HeaderRETH]:])
	r.sent(w.last.Add(1), w, true)
	return r.seal(&r.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// flushRights are the rights that the placement types of a FLUSH need.
var flushRights = [4]mem.Access{
	0, mem.FlushGlobal, mem.FlushPersistent, mem.FlushGlobal | mem.FlushPersistent,
}

// executeFlush makes earlier data visible, or durable.
func (s *responder) executeFlush(p *wire.Packet) (Reason, wire.Syndrome) {
	h, reth := p.FETH(), p.RETH()
	if h.PLT == 0 || h.PLT > 3 || h.SEL > wire.FlushRegion {
		return reasonLength, wire.NAKInvalidRequest
	}
	if reason, nak := s.mayAddResource(flushRights[h.PLT]); nak != 0 {
		return reason, nak
	}
	if reth.DMALen > MaxMessage {
		return reasonLength, wire.NAKInvalidRequest
	}
	s.keys.WriteBack()
	if h.SEL != wire.FlushRegion && reth.DMALen > 0 {
		f := s.keys.Ready(s.peerAccess(0), reth.RKey, reth.VA, int(reth.DMALen), flushRights[h.PLT])
		if f != mem.OK {
			return s.refusal(f)
		}
	}
	for _, plt := range [...]uint8{wire.FlushGlobal, wire.FlushPersistent} {
		if h.PLT&plt == 0 {
			continue
		}
		if fault := s.keys.Flush(s.peerAccess(0), reth.RKey, reth.VA, int(reth.DMALen),
			h.SEL == wire.FlushRegion, plt == wire.FlushPersistent); fault != mem.OK {
			return s.refusal(fault)
		}
	}
	s.addResource(resource{kind: resourceDone}, 1)
	return reasonAdmitted, 0
}
