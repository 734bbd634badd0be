package engine

import (
	"errors"
	"fmt"

	"xroce/roce"
)

// SRQInit says what a new SRQ is. Zero values get the defaults.
type SRQInit struct {
	MaxWR  int // receives in the queue, 1 to roce.MaxWR, default 128
	MaxSGE int // pieces of a receive, 1 to roce.MaxSGE, default 4

	// XRCD and CQ make it one for XRC: the domain in which peers find it by its
	// number, and where its completions go. Both are of the same device. An
	// ordinary SRQ has neither.
	XRCD *XRCD
	CQ   *CQ
}

func (i *SRQInit) setDefaults() {
	if i.MaxWR == 0 {
		i.MaxWR = 128
	}
	if i.MaxSGE == 0 {
		i.MaxSGE = 4
	}
}

// check tests what the SRQ is to be part of. The caller holds the life lock.
func (i *SRQInit) check(d *Device) error {
	if (i.XRCD == nil) != (i.CQ == nil) {
		return fmt.Errorf("%w: an SRQ has an XRC domain and a CQ, or neither", roce.ErrInvalid)
	}
	if i.XRCD == nil {
		return nil
	}
	return errors.Join(i.XRCD.check(d), i.CQ.check(d))
}

// An SRQ is a shared receive queue of a device (struct ibv_srq): QPs of any type
// but XRC and RAW_PACKET take the oldest receive when a message needs one. It is
// safe for concurrent use.
type SRQ struct {
	core   *roce.SRQ
	device *Device
	pd     *PD
	xrcd   *XRCD // nil for one that is not for XRC
	cq     *CQ   // of an SRQ for XRC
	events *eventSource

	// Under the device's life lock:
	users  int // QPs that receive from it
	closed bool
}

// CreateSRQ makes an empty shared receive queue with an unpredictable number. The
// keys in its receives are those of pd.
func (d *Device) CreateSRQ(pd *PD, init SRQInit) (*SRQ, error) {
	init.setDefaults()
	d.life.Lock()
	defer d.life.Unlock()
	if err := errors.Join(d.failure(), init.check(d)); err != nil {
		return nil, err
	}
	if err := pd.retain(d); err != nil {
		return nil, err
	}
	s := &SRQ{device: d, pd: pd, xrcd: init.XRCD, cq: init.CQ}
	if err := s.enter(&init); err != nil {
		pd.release()
		return nil, err
	}
	return s, nil
}

// enter gives the SRQ a number and a place in its XRC domain, or nothing.
func (s *SRQ) enter(init *SRQInit) error {
	d := s.device
	config := roce.SRQConfig{
		Domain: &s.pd.core, MaxWR: init.MaxWR, MaxSGE: init.MaxSGE,
		OnEvent: func(e roce.Event) { d.raise(AsyncEvent{Type: e, SRQ: s}) },
	}
	var srqn uint32
	var failed error
	_, err := d.srqs.Insert(func(num uint32) *SRQ {
		srqn = num
		s.core, failed = roce.NewSRQ(num, config)
		return s
	})
	if err != nil {
		return err
	}
	if failed == nil && s.xrcd != nil {
		failed = s.xrcd.core.Add(s.core, s.cq.core)
	}
	if failed != nil {
		d.srqs.Delete(srqn)
		return failed
	}
	if s.xrcd != nil {
		s.xrcd.users++
		s.cq.users++
	}
	return nil
}

// SRQN returns the SRQ's number, by which XRC peers name it.
func (s *SRQ) SRQN() uint32 { return s.core.Num() }

// PostRecv adds a receive (ibv_post_srq_recv). It returns roce.ErrQueueFull, roce.ErrState or
// roce.ErrInvalid, and then changed nothing.
func (s *SRQ) PostRecv(wr *roce.RecvWR) error { return s.core.PostRecv(wr) }

// Modify changes the depth, or arms the limit, all or nothing (ibv_modify_srq):
// see roce.SRQ.Modify. The event of the limit is an AsyncEvent of the device.
func (s *SRQ) Modify(a roce.SRQAttr, mask roce.SRQAttrMask) error { return s.core.Modify(a, mask) }

// Query returns the attributes (ibv_query_srq), where a limit of 0 is one that is
// not armed, and how many receives are posted.
func (s *SRQ) Query() (a roce.SRQAttr, posted int) { return s.core.Query() }

// Close destroys the SRQ and what is posted to it (ibv_destroy_srq). It fails
// with ErrBusy while QPs receive from it. It is idempotent.
func (s *SRQ) Close() error {
	d := s.device
	d.life.Lock()
	defer d.life.Unlock()
	if s.closed {
		return nil
	}
	if s.users > 0 {
		return fmt.Errorf("%w: queue pairs receive from the SRQ", ErrBusy)
	}
	if s.xrcd != nil {
		// QPs of the domain use it without being counted. No message is in the middle
		// of it: that needs a progress lock, and takes its receive out first.
		d.lockQueues()
		defer d.unlockQueues()
		s.xrcd.core.Remove(s.core)
		s.xrcd.users--
		s.cq.users--
	}
	s.closed = true
	s.pd.release()
	d.srqs.Delete(s.core.Num())
	d.async.forget(s.events)
	return nil
}
