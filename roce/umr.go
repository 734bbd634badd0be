package roce

import "fmt"

// checkUMR looks at what is special to UMR. All that depends on keys is checked when
// the work request is executed: what is posted before it may make them.
func checkUMR(wr *SendWR) error {
	u := &wr.UMR
	switch {
	case len(wr.SGList) != 0:
		return fmt.Errorf("%w: UMR with %d SGEs", ErrInvalid, len(wr.SGList))
	case u.Layout == nil:
		return fmt.Errorf("%w: UMR without a layout", ErrInvalid)
	case u.NewKey != 0 && (u.Key^u.NewKey)>>8 != 0:
		return fmt.Errorf("%w: new key %#x of key %#x: they may differ in the low 8 bits",
			ErrInvalid, u.NewKey, u.Key)
	}
	return nil
}

// configure executes a UMR. There may be more of it than could be done in one turn.
func (r *requester) configure(w *sendWQE) (s Status, more bool) {
	u := w.configuration()
	u.By = r.domain.Local()
	switch done, err := r.keys().ConfigurePart(u); {
	case err != nil:
		return StatusMWBindErr, false
	case !done:
		return StatusSuccess, true
	}
	w.umr = nil // the queue is not to keep what the layout describes
	return StatusSuccess, false
}
