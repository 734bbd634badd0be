package roce

import (
	"fmt"

	"xroce/roce/mem"
)

// checkBind fills in what is special to BIND_MW. All that depends on keys is checked
// when the work request is executed.
func checkBind(wr *SendWR, w *sendWQE) error {
	b := &wr.Bind
	switch {
	case len(wr.SGList) != 0:
		return fmt.Errorf("%w: BIND_MW with %d SGEs", ErrInvalid, len(wr.SGList))
	case (b.Window^b.NewKey)>>8 != 0:
		return fmt.Errorf("%w: key %#x of a window whose key is %#x: they may differ in the low "+
			"8 bits", ErrInvalid, b.NewKey, b.Window)
	}
	w.rkey, w.srqn, w.imm, w.remoteAddr = b.Window, b.NewKey, b.LKey, b.Addr
	w.arg = [2]uint64{b.Length, uint64(b.Access)}
	return nil
}

// bind executes a BIND_MW.
func (q *QP) bind(w *sendWQE) Status {
	f := q.keys.Bind(mem.Accessor{Domain: q.domain, Party: &q.party}, mem.Bind{
		Window: w.rkey, NewKey: w.srqn, LKey: w.imm, Addr: w.remoteAddr,
		Length: w.arg[0], Access: mem.Access(w.arg[1]),
	})
	if f != mem.OK {
		return StatusMWBindErr
	}
	return StatusSuccess
}
