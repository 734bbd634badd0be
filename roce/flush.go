package roce

import (
	"fmt"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// checkFlush fills in what is special to FLUSH.
func (q *QP) checkFlush(wr *SendWR, w *sendWQE) error {
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
func (q *QP) putFlush(w *sendWQE, frame []byte) int {
	b := frame[q.path.Len():]
	spec := q.putBTH(b, wire.BTH{Opcode: wire.RCFlush, AckReq: true, PSN: q.req.psn}, w.srqn)
	h, length := w.flush()
	h.Put(b[spec.Offsets[wire.HeaderFETH]:])
	wire.RETH{VA: w.remoteAddr, RKey: w.rkey, DMALen: length}.
		Put(b[spec.Offsets[wire.HeaderRETH]:])
	q.sent(w.last.Add(1), w)
	return q.seal(&q.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// flushRights are the rights that the placement types of a FLUSH need.
var flushRights = [4]mem.Access{
	0, mem.FlushGlobal, mem.FlushPersistent, mem.FlushGlobal | mem.FlushPersistent,
}

// executeFlush makes earlier data visible, or durable.
func (q *QP) executeFlush(p *wire.Packet) (Step, wire.Syndrome) {
	h, reth := p.FETH(), p.RETH()
	if h.PLT == 0 || h.PLT > 3 || h.SEL > wire.FlushRegion {
		return stepLength, wire.NAKInvalidRequest
	}
	if step, nak := q.mayStore(flushRights[h.PLT]); nak != 0 {
		return step, nak
	}
	if reth.DMALen > MaxMessage {
		return stepLength, wire.NAKInvalidRequest
	}
	q.keys.StoreParked()
	if h.SEL != wire.FlushRegion && reth.DMALen > 0 {
		f := q.keys.Ready(q.peer(0), reth.RKey, reth.VA, int(reth.DMALen), flushRights[h.PLT])
		if f != mem.OK {
			return q.refusal(f)
		}
	}
	for _, plt := range [...]uint8{wire.FlushGlobal, wire.FlushPersistent} {
		if h.PLT&plt == 0 {
			continue
		}
		if fault := q.keys.Flush(q.peer(0), reth.RKey, reth.VA, int(reth.DMALen),
			h.SEL == wire.FlushRegion, plt == wire.FlushPersistent); fault != mem.OK {
			return q.refusal(fault)
		}
	}
	q.store(resource{kind: resourceDone}, 1)
	return stepAdmitted, 0
}
