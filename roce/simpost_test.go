package roce_test

import (
	"encoding/binary"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// simOps are the operations of each kind of simulation.
var (
	simRCOps = append(append([]roce.Opcode{}, allOps...), roce.OpFetchAdd, roce.OpCmpSwap,
		roce.OpAtomicWrite, roce.OpFlush, roce.OpSendInv, roce.OpLocalInv)
	simXRCOps = append(append([]roce.Opcode{}, allOps...), roce.OpFetchAdd, roce.OpCmpSwap,
		roce.OpSendInv, roce.OpLocalInv)
	simUCOps = []roce.Opcode{roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm}
)

// drawOp decides what to post.
func (s *sim) drawOp() roce.Opcode {
	ops := simRCOps
	switch {
	case s.unreliable:
		ops = simUCOps
	case s.oneWay:
		ops = simXRCOps
	}
	return ops[s.rand.IntN(len(ops))]
}

// postSend posts one random request, when there is room for it.
func (s *sim) postSend(e *simEnd) {
	r := s.rand
	n := r.IntN(simSlot + 1)
	if r.IntN(3) == 0 {
		n = sizesFor(s.p.o.MTU.Bytes())[r.IntN(8)]
	}
	src := r.IntN(simConst - n + 1)
	op := simOp{id: uint64(e.posted), op: s.drawOp(), n: n, signaled: r.IntN(4) != 0}
	wr := roce.SendWR{
		WRID: op.id, Opcode: op.op, Imm: r.Uint32(), RKey: e.peer.region.RKey(),
		RemoteSRQN: srqNum, SGList: split(e.sge(src, n)),
	}
	if op.signaled {
		wr.Flags |= roce.SendSignaled
	}
	if r.IntN(4) == 0 {
		wr.Flags |= roce.SendFence
	}
	data := e.buf[src : src+n]
	at := r.IntN(simWrite - n + 1)
	op.dst = simTarget + (simSlots+e.posted%simSlots)*(simSlot+guard)
	var change func() // of the model
	var key *mem.Region
	switch op.op {
	case roce.OpRead:
		op.src = src
		wr.SGList = split(e.sge(op.dst, n))
		wr.RemoteAddr = e.peer.region.Addr() + uint64(src)
	case roce.OpWrite, roce.OpWriteImm:
		wr.RemoteAddr = e.peer.region.Addr() + simConst + uint64(at)
		change = func() { copy(e.peer.model[at:], data) }
	case roce.OpFetchAdd, roce.OpCmpSwap, roce.OpAtomicWrite:
		change = s.fillAtomic(e, &op, &wr, src)
		data = data[:0]
	case roce.OpFlush:
		wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, uint32(n)
		wr.RemoteAddr = e.peer.region.Addr()
	case roce.OpSendInv:
		key = s.register(e.peer)
		wr.InvalidateKey = key.RKey()
	case roce.OpLocalInv:
		op.key = s.register(e)
		wr.SGList, wr.InvalidateKey = nil, op.key.LKey()
	}
	s.makeInline(&wr, e, src, n)
	if len(e.sends) >= simSlots || e.qp.State() == roce.StateErr || e.qp.PostSend(&wr) != nil {
		return
	}
	clear(wr.Inline)
	e.posted++
	e.sends = append(e.sends, op)
	if change != nil {
		change()
	}
	if consumesRecv(op.op) {
		m := simMsg{op: op.op, data: data, key: key}
		if hasImm(op.op) {
			m.imm = wr.Imm
		}
		e.peer.arrive = append(e.peer.arrive, m)
	}
}

// makeInline lets a request carry a copy of its data, now and then.
func (s *sim) makeInline(wr *roce.SendWR, e *simEnd, src, n int) {
	switch wr.Opcode {
	case roce.OpSend, roce.OpSendImm, roce.OpSendInv, roce.OpWrite, roce.OpWriteImm:
		if n <= simInline && s.rand.IntN(2) == 0 {
			wr.Flags |= roce.SendInline
			wr.Inline, wr.SGList = append([]byte{}, e.buf[src:src+n]...), nil
		}
	}
}

// fillAtomic makes a request on one of the peer's numbers. All of them come from
// here, so what each must find is known when it is posted.
func (s *sim) fillAtomic(e *simEnd, op *simOp, wr *roce.SendWR, src int) (change func()) {
	word := &e.peer.words[s.rand.IntN(simWords)]
	i := 0
	for &e.peer.words[i] != word {
		i++
	}
	wr.RemoteAddr = e.peer.region.Addr() + simNumber + uint64(8*i)
	wr.CompareAdd, wr.Swap = s.rand.Uint64(), s.rand.Uint64()
	op.n, op.old = 8, *word
	next := wr.Swap
	switch op.op {
	case roce.OpFetchAdd:
		next = *word + wr.CompareAdd
	case roce.OpCmpSwap:
		if s.rand.IntN(3) != 0 {
			wr.CompareAdd = *word
		} else if wr.CompareAdd != *word {
			next = *word
		}
	case roce.OpAtomicWrite:
		src = min(src, simConst-8)
		wr.SGList = split(e.sge(src, 8))
		next = binary.NativeEndian.Uint64(e.buf[src:])
		return func() { *word = next }
	}
	wr.SGList = split(e.sge(op.dst, 8))
	return func() { *word = next }
}

// register makes a region for a request to invalidate.
func (s *sim) register(e *simEnd) *mem.Region {
	r, err := e.keys.Register(e.domain, make([]byte, 1), mem.LocalWrite|mem.Invalidatable)
	must(s.t, err)
	return r
}

// postRecv posts a receive to the next slot, when there is one free.
func (s *sim) postRecv(i int, e *simEnd) {
	if len(e.recvs) >= simSlots || e.qp.State() == roce.StateErr {
		return
	}
	off := simTarget + s.slots[i]%simSlots*(simSlot+guard)
	rv := simRecv{uint64(1000 + s.slots[i]), off}
	must(s.t, e.postRecv(&roce.RecvWR{WRID: rv.id, SGList: split(e.sge(off, simSlot))}))
	e.recvs = append(e.recvs, rv)
	s.slots[i]++
}
