package verbs

import "fmt"

// A WorkError is a work request that ended without success. It wraps ErrFailed, and
// ErrLargeLost when that is why.
type WorkError struct {
	WRID   uint64   // as it was posted
	Status Status   // what went wrong, never StatusSuccess
	Opcode WCOpcode // what it was
	QPN    uint32   // of the queue pair that it was posted to, or taken by

	VendorErr VendorErr // what the status leaves open
}

// hints say of a status what its name leaves open.
var hints = map[Status]string{
	StatusLocLenErr:    "a message was longer than the buffer that it was received to",
	StatusRetryExcErr:  "the peer does not answer any more",
	StatusRNRRetryExc:  "the peer posts no receives",
	StatusRemInvReqErr: "the peer cannot take such a request; its own error says more",
	StatusRemOpErr:     "the peer failed; its own error says more",
	StatusWRFlushErr:   "the queue pair had failed before, or was closed",
}

// Error implements error.
func (e *WorkError) Error() string {
	s := fmt.Sprintf("%s of QP 0x%06x failed: %s", e.Opcode, e.QPN, e.Status)
	if hint := hints[e.Status]; hint != "" {
		s += ": " + hint
	}
	if e.VendorErr == VendorLargeLost {
		s += "; but it answers small packets, so large ones alone were lost: the path MTU is too " +
			"large for something in between"
	}
	return s
}

// Unwrap returns ErrFailed.
func (e *WorkError) Unwrap() error { return ErrFailed }

// Is reports whether another error is ErrLargeLost, and this one is for that.
func (e *WorkError) Is(target error) bool {
	return target == ErrLargeLost && e.VendorErr == VendorLargeLost
}

// Err returns nil for a completion with success, else a *WorkError.
func (c *Completion) Err() error {
	if c.Status == StatusSuccess {
		return nil
	}
	return &WorkError{
		WRID: c.WRID, Status: c.Status, Opcode: c.Opcode, QPN: c.QPN, VendorErr: c.VendorErr,
	}
}
