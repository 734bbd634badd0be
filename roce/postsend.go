package roce

import (
	"fmt"

	"xroce/roce/verbs"
)

// PostSend adds a work request to the send queue, or returns ErrQueueFull,
// ErrState or ErrInvalid and changes nothing. In state ERR, and in SQE, the
// request is taken and completes with a flush error. It is safe for concurrent
// use.
func (q *QP) PostSend(wr *SendWR) error {
	r := &q.req
	length, err := r.checkSend(wr)
	if err != nil {
		return err
	}
	r.sq.Lock()
	defer r.sq.Unlock()
	if err := r.fill(0, wr, length); err != nil {
		return err
	}
	r.sq.Push(1)
	return nil
}

// PostSends is PostSend of each, in their order, with one lock. It returns how many were posted;
// the error is that of the next one, and those from it on changed nothing.
func (q *QP) PostSends(list []SendWR) (n int, err error) {
	r := &q.req
	r.sq.Lock()
	defer r.sq.Unlock()
	for ; n < len(list); n++ {
		var length uint32
		if length, err = r.checkSend(&list[n]); err == nil {
			err = r.fill(uint32(n), &list[n], length)
		}
		if err != nil {
			break
		}
	}
	r.sq.Push(uint32(n))
	return n, err
}

// fill writes a work request that checkSend accepted to an entry: see WorkQueue.Next. The caller
// holds the lock of the queue.
func (r *requester) fill(n uint32, wr *SendWR, length uint32) error {
	s, op := r.State(), wr.Opcode.Op()
	if !s.TakesSends() {
		return fmt.Errorf("%w: sending needs RTS, the QP is in %s", ErrState, s)
	}
	if op.Count && r.attr.MaxRdAtomic == 0 && s != StateErr {
		return fmt.Errorf("%w: %s on a QP whose MAX_QP_RD_ATOMIC is 0", ErrInvalid, wr.Opcode)
	}
	if r.typ == TypeGSI {
		if err := r.checkPKey(wr); err != nil {
			return err
		}
	}
	w, err := r.sq.Next(n)
	if err != nil {
		return err
	}
	r.pack(w, wr, op, length)
	r.sq.Fill(n, wr.SGList, wr.Inline)
	return nil
}

// checkSend returns the length of a work request that fits the QP.
func (r *requester) checkSend(wr *SendWR) (uint32, error) {
	if !r.typ.MayPost(wr.Opcode) {
		return 0, fmt.Errorf("%w: %s on a QP of type %s", ErrInvalid, wr.Opcode, r.typ)
	}
	if unknown := wr.Flags &^ verbs.SendFlagsKnown; unknown != 0 {
		return 0, fmt.Errorf("%w: send flags %#x", ErrInvalid, uint8(unknown))
	}
	op := wr.Opcode.Op()
	length, err := r.sq.CheckSGList(wr.SGList)
	switch {
	case wr.Flags&SendInline != 0:
		length, err = r.checkInline(op, wr)
	case len(wr.Inline) != 0:
		err = fmt.Errorf("%w: inline data without SendInline", ErrInvalid)
	}
	if err == nil && wr.RemoteSRQN >= 1<<24 {
		err = fmt.Errorf("%w: SRQ number %#x has more than 24 bits", ErrInvalid, wr.RemoteSRQN)
	}
	if err != nil {
		return 0, err
	}
	switch {
	case op.Word && length != 8:
		return 0, fmt.Errorf("%w: %s of %d bytes, it moves 8", ErrInvalid, wr.Opcode, length)
	case op.Word && wr.RemoteAddr&7 != 0:
		return 0, fmt.Errorf("%w: %s at %#x, which is not a multiple of 8", ErrInvalid, wr.Opcode,
			wr.RemoteAddr)
	case wr.Opcode == OpFlush:
		return length, checkFlush(wr)
	case wr.Opcode == OpBindMW:
		return length, checkBind(wr)
	case wr.Opcode == OpUMR:
		return length, checkUMR(wr)
	case r.typ.Datagram():
		return length, r.checkDatagram(wr)
	}
	return length, nil
}

// pack writes a work request that checkSend accepted to its entry.
func (r *requester) pack(w *sendWQE, wr *SendWR, op *verbs.Op, length uint32) {
	imm := wr.Imm
	if op.Imm == verbs.ImmKey || op.Reply == verbs.ReplyNone {
		imm = wr.InvalidateKey
	}
	*w = sendWQE{
		wrID: wr.WRID, opcode: wr.Opcode, flags: wr.Flags, numSGE: uint8(len(wr.SGList)),
		length: length, imm: imm, remoteAddr: wr.RemoteAddr, rkey: wr.RKey, srqn: wr.RemoteSRQN,
	}
	switch {
	case op.Reply == verbs.ReplyAtomic:
		w.packAtomic(wr.CompareAdd, wr.Swap)
	case wr.Opcode == OpFlush:
		w.packFlush(flushOf(wr))
	case wr.Opcode == OpBindMW:
		w.packBind(&wr.Bind)
	case wr.Opcode == OpUMR:
		w.packUMR(&wr.UMR)
	case r.typ.Datagram():
		w.packDatagram(wr.AH, wr.RemoteQPN, wr.RemoteQKey, wr.PKeyIndex)
	}
}

// checkInline returns the length of inline data.
func (r *requester) checkInline(op *verbs.Op, wr *SendWR) (uint32, error) {
	switch {
	case !op.Inline:
		return 0, fmt.Errorf("%w: %s takes no inline data", ErrInvalid, wr.Opcode)
	case len(wr.SGList) != 0:
		return 0, fmt.Errorf("%w: inline data and %d SGEs", ErrInvalid, len(wr.SGList))
	case len(wr.Inline) > r.sq.MaxInline():
		return 0, fmt.Errorf("%w: %d bytes inline, the QP takes %d", ErrInvalid, len(wr.Inline),
			r.sq.MaxInline())
	}
	return uint32(len(wr.Inline)), nil
}
