package roce

import (
	"fmt"

	"xroce/roce/mem"
)

// checkBind looks at what is special to BIND_MW. All that depends on keys is checked
// when the work request is executed.
func checkBind(wr *SendWR) error {
	b := &wr.Bind
	switch {
	case len(wr.SGList) != 0:
		return fmt.Errorf("%w: BIND_MW with %d SGEs", ErrInvalid, len(wr.SGList))
	case (b.Window^b.NewKey)>>8 != 0:
		return fmt.Errorf("%w: key %#x of a window whose key is %#x: they may differ in the low "+
			"8 bits", ErrInvalid, b.NewKey, b.Window)
	}
	return nil
}

// bind executes a BIND_MW.
func (r *requester) bind(w *sendWQE) Status {
	by := mem.Accessor{Domain: r.domain, Party: &r.party}
	if r.keys().Bind(by, w.bind()) != mem.OK {
		return StatusMWBindErr
	}
	return StatusSuccess
}
