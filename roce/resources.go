package roce

import (
	"encoding/binary"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A resource remembers a request whose answer is more than an acknowledge, so
// that its answer can be given again, and the answer that is under way. READ
// reads the memory again; an atomic, a FLUSH and an ATOMIC WRITE are executed
// once and only their answer is repeated (IBA 9.7.5.1.4).
type resource struct {
	first, last wire.PSN
	kind        resourceKind
	queued      bool // an answer is in the queue
	answered    bool // one left, to its end

	value uint64 // atomic: the old value

	// READ:
	by         mem.Accessor
	va         uint64
	rkey       uint32
	length     uint32
	start, cur wire.PSN // the first response under way, the next one to send
	stop       wire.PSN // its last response
	end        uint32   // the byte behind it, counted from va
	until      Time     // for how long it waits for a page, 0 when it does not
}

type resourceKind uint8

const (
	resourceNone   resourceKind = iota
	resourceRead                // READ
	resourceAtomic              // FETCH_ADD, CMP_SWP
	resourceDone                // FLUSH, ATOMIC WRITE: a READ response without data
)

// answer prepares an answer of n bytes from psn on.
func (r *resource) answer(psn wire.PSN, off, n, pmtu uint32) {
	r.queued, r.start, r.cur = true, psn, psn
	r.stop, r.end = psn.Add(responses(n, pmtu)-1), off+n
}

// responses is the number of response packets of a READ of n bytes.
func responses(n, pmtu uint32) uint32 { return max(1, (n+pmtu-1)/pmtu) }

// free reports whether the next resource can be used. It cannot when it was never
// answered: the peer has more outstanding than it was told it may. An answer that
// is to be repeated gives way: the peer has it, or it would not ask for more.
func (s *responder) free() bool {
	if len(s.resources) == 0 {
		s.remember(int(s.depth)) // the first: most connections never need one
	}
	res := &s.resources[s.nextResource]
	if res.queued && res.answered {
		s.fifo.cancel(int(s.nextResource))
		res.queued = false
	}
	return !res.queued
}

// store remembers a request that takes some PSNs, queues its answer and moves on.
func (q *QP) store(r resource, packets uint32) *resource {
	s := &q.rsp
	res := &s.resources[s.nextResource]
	*res = r
	res.first, res.last, res.queued = s.psn, s.psn.Add(packets-1), true
	s.msn = (s.msn + 1) & 0xffffff
	s.fifo.answer(int(s.nextResource), s.psn, s.msn)
	s.nextResource = uint8((int(s.nextResource) + 1) % len(s.resources))
	s.psn, s.gap, s.missed = s.psn.Add(packets), false, 0
	return res
}

// mayStore makes the checks of requests that have a resource: the QP's rights, and
// room.
func (q *QP) mayStore(need mem.Access) (Step, wire.Syndrome) {
	switch s := &q.rsp; {
	case q.attr.Access&need != need || s.depth == 0:
		return stepRights, wire.NAKInvalidRequest
	case !s.free():
		return stepResources, wire.NAKInvalidRequest
	}
	return stepAdmitted, 0
}

// executeRead remembers a READ and queues its answer.
func (q *QP) executeRead(p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	reth := p.RETH()
	if step, nak := q.mayStore(mem.RemoteRead); nak != 0 {
		return step, nak
	}
	if reth.DMALen > MaxMessage {
		return stepLength, wire.NAKInvalidRequest
	}
	by := q.peer(q.keys.Epoch())
	if reth.DMALen > 0 {
		q.receiveCQ().FlushInline()
		f := q.keys.Ready(by, reth.RKey, reth.VA, int(reth.DMALen), mem.RemoteRead)
		if f != mem.OK {
			return q.refusal(f)
		}
	}
	psn := s.psn
	q.store(resource{
		kind: resourceRead, by: by, va: reth.VA, rkey: reth.RKey, length: reth.DMALen,
	}, responses(reth.DMALen, q.pmtu)).answer(psn, 0, reth.DMALen, q.pmtu)
	return stepAdmitted, 0
}

// executeAtomic executes FETCH_ADD and CMP_SWP.
func (q *QP) executeAtomic(p *wire.Packet) (Step, wire.Syndrome) {
	if step, nak := q.mayStore(mem.RemoteAtomic); nak != 0 {
		return step, nak
	}
	q.receiveCQ().FlushInline()
	h := p.AtomicETH()
	var old uint64
	var fault mem.Fault
	if p.BTH.Opcode&0x1f == wire.RCFetchAdd {
		old, fault = q.keys.FetchAdd(q.peer(0), h.RKey, h.VA, h.SwapAdd)
	} else {
		old, fault = q.keys.CompareSwap(q.peer(0), h.RKey, h.VA, h.Compare, h.SwapAdd)
	}
	if fault != mem.OK {
		return q.refusal(fault)
	}
	q.store(resource{kind: resourceAtomic, value: old}, 1)
	return stepAdmitted, 0
}

// refusal is how a fault of memory is answered.
func (q *QP) refusal(fault mem.Fault) (Step, wire.Syndrome) {
	switch fault {
	case mem.FaultPage:
		return q.absent()
	case mem.FaultMisaligned:
		return stepAlignment, wire.NAKInvalidRequest
	case mem.FaultSync:
		return stepSync, wire.NAKRemoteOperationalError
	}
	return stepRKey, wire.NAKRemoteAccessError
}

// executeAtomicWrite stores eight bytes at once.
func (q *QP) executeAtomicWrite(p *wire.Packet) (Step, wire.Syndrome) {
	if step, nak := q.mayStore(mem.RemoteWrite); nak != 0 {
		return step, nak
	}
	reth := p.RETH()
	var word [8]byte
	if reth.DMALen != 8 || p.CopyPayload(word[:]) != 8 || p.PayloadLen() != 8 {
		return stepLength, wire.NAKInvalidRequest
	}
	q.receiveCQ().FlushInline()
	if fault := q.keys.StoreWord(q.peer(0), reth.RKey, reth.VA,
		binary.NativeEndian.Uint64(word[:])); fault != mem.OK {
		return q.refusal(fault)
	}
	q.store(resource{kind: resourceDone}, 1)
	return stepAdmitted, 0
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

// replay answers a request with an old PSN again, if it is remembered. A READ may
// ask for any part of the remembered one.
func (q *QP) replay(p *wire.Packet) bool {
	s := &q.rsp
	psn := p.BTH.PSN
	// The newest first: PSNs come again after 2^24 packets.
	for age := range s.resources {
		i := s.newestIndex(age)
		res := &s.resources[i]
		if res.kind == resourceNone ||
			!psn.InWindow(res.first, uint32(res.last.Sub(uint32(res.first)))+1) {
			continue
		}
		if res.kind != kindOf(p.Spec) || (res.kind == resourceRead && !q.replayRead(p, res)) {
			return false
		}
		if !res.queued {
			res.queued = true
			s.fifo.replay(i, res.first, s.msn)
		}
		if res.kind == resourceRead {
			reth := p.RETH()
			res.answer(psn, uint32(reth.VA-res.va), reth.DMALen, q.pmtu)
		}
		return true
	}
	return false
}

// kindOf is the kind of resource that remembers a request.
func kindOf(spec *wire.OpcodeSpec) resourceKind {
	switch {
	case spec.Is(wire.ClassRead):
		return resourceRead
	case spec.Is(wire.ClassAtomic):
		return resourceAtomic
	case spec.Class&(wire.ClassFlush|wire.ClassAtomicWrite) != 0:
		return resourceDone
	}
	return resourceNone
}

// replayRead reports whether a READ lies inside the remembered one.
func (q *QP) replayRead(p *wire.Packet, res *resource) bool {
	reth := p.RETH()
	off := uint32(p.BTH.PSN.Sub(uint32(res.first))) * q.pmtu
	return q.attr.Access&mem.RemoteRead != 0 && reth.RKey == res.rkey &&
		reth.VA == res.va+uint64(off) && reth.DMALen <= res.length-off
}

// canRemember reports whether n resources are enough for every request that is being
// answered: only the n newest are kept.
func (s *responder) canRemember(n int) bool {
	for age := n; age < len(s.resources); age++ {
		if s.newest(age).queued {
			return false
		}
	}
	return true
}

// newest returns a resource by age, the last one first.
func (s *responder) newest(age int) *resource {
	return &s.resources[s.newestIndex(age)]
}

func (s *responder) newestIndex(age int) int {
	return (int(s.nextResource) - 1 - age + 2*len(s.resources)) % len(s.resources)
}

// grant sets how many requests may be remembered. Their memory comes with the first.
func (s *responder) grant(n uint8) {
	s.depth = n
	switch {
	case len(s.resources) > 0:
		s.remember(int(n))
	case s.fifo.ring == nil:
		s.remember(0)
	}
}

// remember changes the number of resources to n, and keeps what fits.
func (s *responder) remember(n int) {
	kept := min(n, len(s.resources))
	resources, moved := make([]resource, n), make([]uint8, len(s.resources))
	for age := range kept {
		resources[kept-1-age] = *s.newest(age)
		moved[s.newestIndex(age)] = uint8(kept - 1 - age)
	}
	var fifo answerQueue
	fifo.init(n)
	for ; s.fifo.n > 0; s.fifo.pop() {
		a := *s.fifo.front()
		if a.stored {
			a.resource = moved[a.resource]
		}
		fifo.push(a)
	}
	s.resources, s.fifo, s.nextResource = resources, fifo, 0
	if kept < n {
		s.nextResource = uint8(kept)
	}
}
