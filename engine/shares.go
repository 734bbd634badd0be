package engine

import (
	"fmt"

	"xroce/roce"
)

// shares is what a QP shares with others; each may be nil.
type shares struct {
	sendCQ, recvCQ *CQ
	srq            *SRQ
	xrcd           *XRCD
}

// use counts the QP as a user of what it shares, by n. The caller holds the
// progress lock.
func (s *shares) use(n int) {
	for _, cq := range [...]*CQ{s.sendCQ, s.recvCQ} {
		if cq != nil {
			cq.users += n
		}
	}
	if s.srq != nil {
		s.srq.users += n
	}
	if s.xrcd != nil {
		s.xrcd.users += n
	}
}

// closed says what cannot be used any more. The caller holds the progress lock.
func (s *shares) closed() error {
	for _, cq := range [...]*CQ{s.sendCQ, s.recvCQ} {
		if cq != nil && cq.closed {
			return fmt.Errorf("%w: the CQ is closed", roce.ErrInvalid)
		}
	}
	if s.srq != nil && s.srq.closed {
		return fmt.Errorf("%w: the SRQ is closed", roce.ErrInvalid)
	}
	return nil
}
