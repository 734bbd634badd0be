package engine

import (
	"fmt"

	"xroce/roce"
)

// SRQInit says what a new SRQ is. Zero values get the defaults.
type SRQInit struct {
	MaxWR  int   // receives in the queue, default 128
	MaxSGE int   // pieces of a receive, default 4
	XRCD   *XRCD // for XRC: the domain in which peers find it, with
	CQ     *CQ   // where its completions go
}

// An SRQ is a shared receive queue of a device.
type SRQ struct {
	ring   *roce.SRQ
	device *Device
	xrcd   *XRCD
	cq     *CQ
	events *eventSource // of the device's asyncEvents

	// Under the progress lock:
	users  int // QPs that receive from it
	closed bool
}

// An XRCD is an XRC domain of a device (ibv_open_xrcd).
type XRCD struct {
	domain *roce.XRCD
	device *Device
	users  int // SRQs and QPs of it, under the progress lock
}

// OpenXRCD makes an XRC domain. It holds nothing that needs closing.
func (d *Device) OpenXRCD() *XRCD { return &XRCD{domain: roce.NewXRCD(), device: d} }

// CreateSRQ makes an empty shared receive queue with an unpredictable number.
func (d *Device) CreateSRQ(pd *PD, init SRQInit) (*SRQ, error) {
	if pd == nil || pd.device != d {
		return nil, fmt.Errorf("%w: the PD is not of this device", roce.ErrInvalid)
	}
	if (init.XRCD == nil) != (init.CQ == nil) {
		return nil, fmt.Errorf("%w: an SRQ has an XRC domain and a CQ, or neither",
			roce.ErrInvalid)
	}
	if init.XRCD != nil && (init.XRCD.device != d || init.CQ.device != d) {
		return nil, fmt.Errorf("%w: the XRC domain or the CQ is not of this device",
			roce.ErrInvalid)
	}
	if init.MaxWR == 0 {
		init.MaxWR = 128
	}
	if init.MaxSGE == 0 {
		init.MaxSGE = 4
	}
	s := &SRQ{device: d, xrcd: init.XRCD, cq: init.CQ}
	config := roce.SRQConfig{
		Domain: &pd.domain, MaxWR: init.MaxWR, MaxSGE: init.MaxSGE,
		OnEvent: func(e roce.Event) { d.raise(AsyncEvent{Type: e, SRQ: s}) },
	}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if err := d.queue.err; err != nil {
		return nil, err
	}
	var failed error
	var srqn uint32
	_, err := d.srqs.Insert(func(num uint32) *SRQ {
		srqn = num
		s.ring, failed = roce.NewSRQ(num, config)
		return s
	})
	if err != nil {
		return nil, err
	}
	if failed == nil && s.xrcd != nil {
		if failed = s.xrcd.domain.Add(s.ring, s.cq.ring); failed == nil {
			s.xrcd.users++
			s.cq.users++
		}
	}
	if failed != nil {
		d.srqs.Delete(srqn)
		return nil, failed
	}
	return s, nil
}

// SRQN returns the number by which XRC peers name it.
func (s *SRQ) SRQN() uint32 { return s.ring.Num() }

// PostRecv adds a receive: see roce.SRQ.PostRecv.
func (s *SRQ) PostRecv(wr *roce.RecvWR) error { return s.ring.PostRecv(wr) }

// Modify is ibv_modify_srq: see roce.SRQ.Modify.
func (s *SRQ) Modify(a roce.SRQAttr, mask roce.SRQAttrMask) error { return s.ring.Modify(a, mask) }

// Query is ibv_query_srq, and tells how many receives are posted.
func (s *SRQ) Query() (a roce.SRQAttr, posted int) { return s.ring.Query() }

// Close destroys the SRQ and what is posted to it. It fails with ErrBusy while
// QPs receive from it. It is idempotent.
func (s *SRQ) Close() error {
	s.device.queue.mu.Lock()
	defer s.device.queue.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.users > 0 {
		return fmt.Errorf("%w: queue pairs receive from the SRQ", ErrBusy)
	}
	if s.xrcd != nil {
		// No queue uses it meanwhile: they hold the progress lock.
		s.xrcd.domain.Remove(s.ring)
		s.xrcd.users--
		s.cq.users--
	}
	s.closed = true
	s.device.srqs.Delete(s.ring.Num())
	s.device.async.forget(s.events)
	return nil
}
