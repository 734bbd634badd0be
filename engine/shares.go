package engine

import "errors"

// shares is what a QP shares with others; each but the PD may be nil.
type shares struct {
	pd             *PD
	sendCQ, recvCQ *CQ
	srq            *SRQ
	xrcd           *XRCD
}

// use counts the QP as a user of what it shares but the PD, by n. The caller holds the
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

// check tests that everything is open and of the device. The caller holds the
// progress lock.
func (s *shares) check(d *Device) error {
	errs := []error{s.pd.check(d)}
	for _, cq := range [...]*CQ{s.sendCQ, s.recvCQ} {
		if cq != nil {
			errs = append(errs, cq.check(d))
		}
	}
	if s.srq != nil {
		errs = append(errs, s.srq.check(d))
	}
	if s.xrcd != nil {
		errs = append(errs, s.xrcd.check(d))
	}
	return errors.Join(errs...)
}
