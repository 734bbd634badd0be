package perf

import (
	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/wire"
)

// A flow is the traffic of one queue pair: work requests that are filled in once
// for a size, and how many were posted. Posting allocates nothing.
type flow struct {
	qp      *engine.QP
	srq     *engine.SRQ // where receives are posted, if not to the QP
	ah      *roce.AH    // where datagrams go
	sendWR  roce.SendWR
	sendSGE [1]roce.SGE
	recvWR  roce.RecvWR
	recvSGE [1]roce.SGE

	frame             [rawHeader]byte // what frames begin with, of a raw QP
	out, remote, in   uint64          // addresses of the first slots
	slots, stride     uint64
	inSlots, inStride uint64
	inline            []byte // what is sent when it is inline, all slots
	staged            []byte // one of them, where those may be gone
	size              int

	posted, completed   uint64 // sends
	supplied, delivered uint64 // receives posted, messages received
	standing            int    // receives posted that have taken nothing yet, of any size
}

// Work request numbers: what it was, of which QP, and how many there were.
const (
	wridRecv  = 1 << 63
	wridShift = 48
	wridCount = 1<<wridShift - 1
)

// wridQP is the QP of a work request number.
func wridQP(id uint64) int { return int(id &^ wridRecv >> wridShift) }

// prepare fills in the work requests of one QP for a size.
func (f *flow) prepare(e *end, qp, size int) {
	c := e.cfg
	base := e.mr.Addr()
	remote := e.remote[qp]
	f.size = size
	f.out, f.in = base+uint64(e.at.out(qp)), base+uint64(e.at.in(qp))
	f.remote = remote.VAddr
	f.slots, f.stride = e.slots(size)
	f.inSlots, f.inStride = e.slots(c.room(size) + c.header())
	f.sendWR = roce.SendWR{Opcode: c.opcode(), RKey: remote.RKey}
	f.inline, f.staged = nil, nil
	f.sendSGE[0] = roce.SGE{Length: uint32(size), LKey: e.mr.LKey()}
	if size <= c.Inline && !c.Test.Answered() {
		f.inline = e.memory[e.at.out(qp):][:e.at.part]
		if c.File != nil {
			f.staged = make([]byte, size)
		}
		f.sendWR.Flags = roce.SendInline
	} else {
		f.sendWR.SGList = f.sendSGE[:]
	}
	switch {
	case c.raw():
		e.putHeaders(f, qp)
	case c.Type == roce.TypeUD:
		f.sendWR.AH, f.sendWR.RemoteQPN, f.sendWR.RemoteQKey = f.ah, remote.QPN, qkey
		if !c.Group.IsZero() {
			f.sendWR.RemoteQPN = wire.MulticastQP
		}
	case c.Test.Verb == Atomic && c.Atomic == FetchAndAdd:
		f.sendWR.CompareAdd = 1
	}
	f.recvSGE[0] = roce.SGE{Length: uint32(c.room(size) + c.header()), LKey: e.mr.LKey()}
	f.recvWR.SGList = f.recvSGE[:]
	f.sendWR.WRID = uint64(qp) << wridShift
	f.recvWR.WRID = uint64(qp)<<wridShift | wridRecv
	f.posted, f.completed, f.delivered = 0, 0, 0
	f.supplied = uint64(f.standing)
}

// post posts one send, with a completion if it is signaled.
func (f *flow) post(signaled bool) error {
	at := uint64(0)
	if f.slots > 1 {
		at = f.posted % f.slots * f.stride
	}
	f.posted++
	f.sendWR.WRID = f.sendWR.WRID&^wridCount | f.posted
	f.sendWR.RemoteAddr = f.remote + at
	f.sendSGE[0].Addr = f.out + at
	if f.inline != nil {
		f.sendWR.Inline = f.inline[at:][:f.size]
	}
	if f.staged != nil {
		if err := touch(func() { copy(f.staged, f.sendWR.Inline) }); err != nil {
			return err
		}
		f.sendWR.Inline = f.staged
	}
	if signaled {
		f.sendWR.Flags |= roce.SendSignaled
	} else {
		f.sendWR.Flags &^= roce.SendSignaled
	}
	return f.qp.PostSend(&f.sendWR)
}

// supply posts one receive.
func (f *flow) supply() error {
	at := uint64(0)
	if f.inSlots > 1 {
		at = f.supplied % f.inSlots * f.inStride
	}
	f.supplied++
	f.standing++
	f.recvSGE[0].Addr = f.in + at
	if f.srq != nil {
		return f.srq.PostRecv(&f.recvWR)
	}
	return f.qp.PostRecv(&f.recvWR)
}

// supplyAgain posts a receive in place of one that took a stray: it is none of those of the test.
func (f *flow) supplyAgain() error {
	err := f.supply()
	f.supplied--
	return err
}

// endpoint is what the peer must be told of a QP.
func (e *end) endpoint(qp int) (perftest.Endpoint, error) {
	// The address may be gone since it was chosen.
	own, err := e.dev.Endpoint(e.flows[qp].qp, e.gid)
	if c := e.cfg; !c.Group.IsZero() && c.receives() { // as the tool says it
		own.QPN, own.GID = wire.MulticastQP, c.Group
	}
	return perftest.Endpoint{
		OutReads: uint16(e.outReads), QPN: own.QPN, PSN: own.PSN, RKey: e.mr.RKey(),
		VAddr: e.mr.Addr() + uint64(e.at.in(qp)), GID: own.GID,
	}, err
}
