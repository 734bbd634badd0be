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
	w, err := q.req.checkSend(wr)
	if err != nil {
		return err
	}
	q.req.sq.Lock()
	defer q.req.sq.Unlock()
	s := q.State()
	if !s.TakesSends() {
		return fmt.Errorf("%w: sending needs RTS, the QP is in %s", ErrState, s)
	}
	if w.opcode.Op().Count && q.attr.MaxRdAtomic == 0 && s != StateErr {
		return fmt.Errorf("%w: %s on a QP whose MAX_QP_RD_ATOMIC is 0", ErrInvalid, w.opcode)
	}
	return q.req.sq.Push(&w, wr.SGList, wr.Inline)
}

// checkSend makes a queue entry of a work request that fits the QP.
func (r *requester) checkSend(wr *SendWR) (w sendWQE, err error) {
	if !r.typ.MayPost(wr.Opcode) {
		return w, fmt.Errorf("%w: %s on a QP of type %s", ErrInvalid, wr.Opcode, r.typ)
	}
	if unknown := wr.Flags &^ verbs.SendFlagsKnown; unknown != 0 {
		return w, fmt.Errorf("%w: send flags %#x", ErrInvalid, uint8(unknown))
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
		return w, err
	}
	w = sendWQE{
		wrID: wr.WRID, opcode: wr.Opcode, flags: wr.Flags, numSGE: uint8(len(wr.SGList)),
		length: length, imm: wr.Imm, remoteAddr: wr.RemoteAddr, rkey: wr.RKey, srqn: wr.RemoteSRQN,
	}
	if op.Imm == verbs.ImmKey || op.Reply == verbs.ReplyNone {
		w.imm = wr.InvalidateKey
	}
	switch {
	case op.Word && length != 8:
		return w, fmt.Errorf("%w: %s of %d bytes, it moves 8", ErrInvalid, wr.Opcode, length)
	case op.Reply == verbs.ReplyAtomic:
		w.packAtomic(wr.CompareAdd, wr.Swap)
	case wr.Opcode == OpFlush:
		return w, r.checkFlush(wr, &w)
	case wr.Opcode == OpBindMW:
		return w, checkBind(wr, &w)
	case wr.Opcode == OpUMR:
		return w, checkUMR(wr, &w)
	case r.typ.Datagram():
		return w, r.checkDatagram(wr, &w)
	}
	if w.remoteAddr&7 != 0 && op.Word {
		return w, fmt.Errorf("%w: %s at %#x, which is not a multiple of 8", ErrInvalid, wr.Opcode,
			wr.RemoteAddr)
	}
	return w, nil
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
