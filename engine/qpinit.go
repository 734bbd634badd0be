package engine

import (
	"errors"
	"fmt"

	"xroce/roce"
)

// QPInit says what a new QP is. Zero values get the defaults.
type QPInit struct {
	Type           roce.QPType // default RC
	SendCQ, RecvCQ *CQ         // of the same device; may be the same
	SRQ            *SRQ        // where receives come from, instead of a receive queue
	XRCD           *XRCD       // of an XRC_RECV, which needs no CQ
	MaxSendWR      int         // default 128
	MaxRecvWR      int         // default 128
	MaxSendSGE     int         // default 4
	MaxRecvSGE     int         // default 4
	MaxInline      int         // bytes of inline data, 0 to roce.MaxInline
	SignalAll      bool        // every send makes a completion
	Window         int         // PSNs in flight, 0 for the default
}

func (i *QPInit) setDefaults() {
	shared := i.SRQ != nil
	for _, d := range []struct {
		field *int
		value int
	}{{&i.MaxSendWR, 128}, {&i.MaxRecvWR, 128}, {&i.MaxSendSGE, 4}, {&i.MaxRecvSGE, 4}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if shared {
		i.MaxRecvWR = 0
	}
	if i.Type == 0 {
		i.Type = roce.TypeRC
	}
}

// check tests that everything is of the device.
func (i *QPInit) check(d *Device, pd *PD) error {
	switch {
	case pd == nil || pd.device != d:
		return fmt.Errorf("%w: the PD is not of this device", roce.ErrInvalid)
	case i.SRQ != nil && i.SRQ.device != d:
		return fmt.Errorf("%w: the SRQ is not of this device", roce.ErrInvalid)
	case i.XRCD != nil && i.XRCD.device != d:
		return fmt.Errorf("%w: the XRC domain is not of this device", roce.ErrInvalid)
	case i.Type == roce.TypeRawPacket && !d.options.RawPackets:
		return fmt.Errorf("%w: RAW_PACKET needs a device opened with RawPackets",
			roce.ErrInvalid)
	case i.Type == roce.TypeXRCRecv:
		return nil
	}
	for _, cq := range []*CQ{i.SendCQ, i.RecvCQ} {
		if cq == nil && i.Type == roce.TypeXRCSend {
			continue
		}
		if cq == nil || cq.device != d {
			return fmt.Errorf("%w: a QP needs two CQs of its device", roce.ErrInvalid)
		}
	}
	return nil
}

// config is the transport's part of the QP.
func (i *QPInit) config(d *Device, pd *PD) roce.QPConfig {
	c := roce.QPConfig{
		Type: i.Type, Domain: &pd.domain, Keys: d.keys,
		MaxSendWR: i.MaxSendWR, MaxRecvWR: i.MaxRecvWR,
		MaxSendSGE: i.MaxSendSGE, MaxRecvSGE: i.MaxRecvSGE, MaxInline: i.MaxInline,
		SignalAll: i.SignalAll, Window: i.Window, MTU: d.ActiveMTU(),
		Counters: &d.queue.count, Holds: d.queue.holds,
	}
	if i.SendCQ != nil {
		c.SendCQ = i.SendCQ.ring
	}
	if i.RecvCQ != nil {
		c.RecvCQ = i.RecvCQ.ring
	}
	if i.SRQ != nil {
		c.SRQ = i.SRQ.ring
	}
	if i.XRCD != nil {
		c.XRCD = i.XRCD.domain
	}
	return c
}

// CreateQP makes a QP in state RESET with an unpredictable number.
func (d *Device) CreateQP(pd *PD, init QPInit) (*QP, error) {
	init.setDefaults()
	if err := init.check(d, pd); err != nil {
		return nil, err
	}
	config := init.config(d, pd)
	qp := &QP{device: d, shares: shares{init.SendCQ, init.RecvCQ, init.SRQ, init.XRCD}}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if err := errors.Join(d.queue.err, qp.shares.closed()); err != nil {
		return nil, err
	}
	var failed error
	var qpn uint32
	config.OnEvent = qp.raise
	_, err := d.queue.qps.Insert(func(num uint32) *QP {
		qpn = num
		qp.machine, failed = roce.NewQP(num, config)
		return qp
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		d.queue.qps.Delete(qpn)
		return nil, failed
	}
	qp.shares.use(1)
	return qp, nil
}
