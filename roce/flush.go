package roce

import (
	"fmt"

	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// checkFlush looks at what is special to FLUSH.
func checkFlush(wr *SendWR) error {
	if wr.Flush == 0 || wr.Flush&^(wire.FlushGlobal|wire.FlushPersistent) != 0 {
		return fmt.Errorf("%w: FLUSH type %#x", ErrInvalid, wr.Flush)
	}
	if len(wr.SGList) != 0 {
		return fmt.Errorf("%w: FLUSH with %d SGEs", ErrInvalid, len(wr.SGList))
	}
	if !wr.FlushRegion && wr.FlushLength > MaxMessage {
		return fmt.Errorf("%w: FLUSH of %d bytes, at most %d", ErrInvalid, wr.FlushLength,
			MaxMessage)
	}
	return nil
}

// flushOf returns what a FLUSH makes sure of, and for how many bytes.
func flushOf(wr *SendWR) (h wire.FETH, length uint32) {
	h.PLT = wr.Flush
	if wr.FlushRegion {
		h.SEL = wire.FlushRegion
	}
	return h, wr.FlushLength
}

// putFlush writes a FLUSH.
func (r *requester) putFlush(w *sendWQE, frame []byte) int {
	b := frame[r.path.Len():]
	spec := r.putBTH(b, &wire.BTH{Opcode: wire.RCFlush, AckReq: true, PSN: r.psn}, w.srqn)
	h, length := w.flush()
	h.Put(b[spec.Offsets[wire.HeaderFETH]:])
	wire.RETH{VA: w.remoteAddr, RKey: w.rkey, DMALen: length}.
		Put(b[spec.Offsets[wire.HeaderRETH]:])
	r.asks(w.last.Add(1))
	r.sent(w.last.Add(1), w)
	return r.seal(&r.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// flushRights are the rights that the placement types of a FLUSH need.
var flushRights = [4]mem.Access{
	0, mem.FlushGlobal, mem.FlushPersistent, mem.FlushGlobal | mem.FlushPersistent,
}

// flushRNR is the RNR timer of requests behind a FLUSH, 10 us: the NAK leaves when that is
// done.
const flushRNR = 1

// executeFlush makes earlier data visible, or durable. That may take time: then the answer
// waits, and what comes behind it is refused until it has left, since an ATOMIC WRITE, say,
// is to tell that the data before it is durable (IBA annex A19).
func (s *responder) executeFlush(p *wire.Packet) (Reason, wire.Syndrome) {
	h, reth := p.FETH(), p.RETH()
	if h.PLT == 0 || h.PLT > 3 || h.SEL > wire.FlushRegion {
		return reasonLength, wire.NAKInvalidRequest
	}
	if reason, nak := s.mayAddResource(flushRights[h.PLT]); nak != 0 {
		return reason, nak
	}
	if h.SEL != wire.FlushRegion && reth.DMALen > MaxMessage {
		return reasonLength, wire.NAKInvalidRequest
	}
	s.keys().WriteBack()
	if h.SEL != wire.FlushRegion && reth.DMALen > 0 {
		n, rights := int(reth.DMALen), flushRights[h.PLT]
		f := s.keys().Ready(s.peerAccess(0), reth.RKey, reth.VA, n, rights)
		if f != mem.OK {
			return s.refusal(f)
		}
	}
	var job mem.SyncJob
	for _, plt := range [...]uint8{wire.FlushGlobal, wire.FlushPersistent} {
		if h.PLT&plt == 0 {
			continue
		}
		var f mem.Fault
		if job, f = s.keys().Flush(s.peerAccess(0), reth.RKey, reth.VA, int(reth.DMALen),
			h.SEL == wire.FlushRegion, plt == wire.FlushPersistent); f != mem.OK {
			return s.refusal(f)
		}
	}
	if !job.None() {
		if reason, nak := s.startSync(job); nak != 0 || s.syncing {
			return reason, nak
		}
	}
	s.addResource(resource{kind: resourceDone}, 1)
	return reasonAdmitted, 0
}

// startSync has a job carried out, at once if there is no Syncer.
func (s *responder) startSync(job mem.SyncJob) (Reason, wire.Syndrome) {
	syncer := s.keys().Syncer()
	if syncer == nil {
		if job.Run() != nil {
			return s.refusal(mem.FaultSync)
		}
		return reasonAdmitted, 0
	}
	later := new(mem.SyncJob)
	*later = job
	if !syncer.StartSync(later, s.num) {
		return reasonFlush, wire.RNRSyndrome(firstPageRNR)
	}
	s.addResource(resource{kind: resourceDone, sync: later}, 1)
	s.syncing = true
	return reasonAdmitted, 0
}

// cancelSync gives up a FLUSH that waits.
func (s *responder) cancelSync() {
	if s.syncing {
		s.syncing = false
		s.keys().Syncer().CancelSync(s.newest(0).sync)
	}
}

// endSync ends the wait for a job, and reports whether there was one. Behind the FLUSH nothing
// was executed, so it is the newest request.
func (s *responder) endSync(job *mem.SyncJob, err error) (waited bool) {
	if !s.syncing || s.newest(0).sync != job {
		return false
	}
	s.syncing, s.newest(0).sync = false, nil
	if err != nil {
		s.failFlush()
	}
	return true
}

// failFlush refuses the newest request, a FLUSH whose memory could not be made persistent,
// and with it the QP.
func (s *responder) failFlush() {
	i := s.newestIndex(0)
	s.responses.truncate(i)
	s.resources[i] = resource{}
	s.psn, s.msn = s.psn.Sub(1), (s.msn-1)&0xffffff
	s.lastDrop = reasonSync
	s.count.Inc(counter.SentFatalNAK)
	s.responses.nak(s.psn, wire.NAKRemoteOperationalError)
	s.enterError() // before anybody is told
	s.raise(EventQPReqErr)
}
