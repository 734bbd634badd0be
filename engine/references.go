package engine

import "errors"

// references are the objects that a QP uses together with others; each but the PD may
// be nil.
type references struct {
	pd             *PD
	sendCQ, recvCQ *CQ
	srq            *SRQ
	xrcd           *XRCD
}

// retain counts a QP in as a user of each object but the PD. The caller holds the
// life lock.
func (r *references) retain() { r.count(1) }

// release counts it out. The caller holds the life lock.
func (r *references) release() { r.count(-1) }

func (r *references) count(n int) {
	for _, cq := range [...]*CQ{r.sendCQ, r.recvCQ} {
		if cq != nil {
			cq.users += n
		}
	}
	if r.srq != nil {
		r.srq.users += n
	}
	if r.xrcd != nil {
		r.xrcd.users += n
	}
}

// check tests that everything is open and of the device. The caller holds the
// life lock.
func (r *references) check(d *Device) error {
	errs := []error{r.pd.check(d)}
	for _, cq := range [...]*CQ{r.sendCQ, r.recvCQ} {
		if cq != nil {
			errs = append(errs, cq.check(d))
		}
	}
	if r.srq != nil {
		errs = append(errs, r.srq.check(d))
	}
	if r.xrcd != nil {
		errs = append(errs, r.xrcd.check(d))
	}
	return errors.Join(errs...)
}
