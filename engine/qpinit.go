package engine

import (
	"errors"
	"fmt"

	"xroce/roce"
	"xroce/roce/cc"
)

// QPInit says what a new QP is (struct ibv_qp_init_attr). Zero values get the
// defaults.
type QPInit struct {
	// Type is roce.TypeRC by default. roce.TypeRawPacket needs a device opened
	// with Options.RawPackets; roce.TypeGSI is for CreateGSI alone.
	Type roce.QPType
	// SendCQ and RecvCQ are where completions go; they may be the same.
	// XRC_SEND needs only SendCQ, XRC_RECV none.
	SendCQ, RecvCQ *CQ
	SRQ            *SRQ  // where receives come from, instead of a receive queue
	XRCD           *XRCD // the XRC domain of an XRC_RECV
	MaxSendWR      int   // send work requests, 1 to roce.MaxWR, default 128
	MaxRecvWR      int   // receive work requests, as above; no meaning with SRQ
	MaxSendSGE     int   // pieces of a send, 1 to roce.MaxSGE, default 4
	MaxRecvSGE     int   // pieces of a receive, as above; no meaning with SRQ
	MaxInline      int   // bytes of inline data, 0 to roce.MaxInline
	// MaxInlineRecv is how many bytes of a SEND received, of a READ response or of an
	// atomic one may ride in the completion, and go to their memory when it is polled:
	// 1 to roce.MaxInlineRecv, 0 for that, NoInlineRecv for none. Where ScatterToCQE
	// turns it off, this has no effect.
	MaxInlineRecv int
	SignalAll     bool // every send makes a completion (sq_sig_all)
	Window        int  // packets in flight, 0 for the default
	// PKeyIndex is the partition that Init and Start put the QP into, by the index of its
	// P_Key in the table of the device. Modify can name another.
	PKeyIndex uint16
	// Extensions are what Device.Endpoint offers the peer of an RC QP; Connect
	// uses those that both ends offer.
	Extensions roce.Extensions
	// ReorderWindow is how many packets of a foreign peer may overtake a missing one before an
	// RC QP asks for that; see roce.QPConfig. 0 asks at once.
	ReorderWindow uint8
	// Congestion is the congestion control of a connected QP, nil for that of the device,
	// which must have been opened with Options.Congestion. It may also be chosen by
	// roce.AttrCongestion on the way to RTR.
	Congestion *cc.Algorithm
}

func (i *QPInit) setDefaults() {
	for _, d := range []struct {
		field *int
		value int
	}{{&i.MaxSendWR, 128}, {&i.MaxRecvWR, 128}, {&i.MaxSendSGE, 4}, {&i.MaxRecvSGE, 4}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if i.SRQ != nil {
		i.MaxRecvWR = 0
	}
	if i.Type == 0 {
		i.Type = roce.TypeRC
	}
}

// check tests what depends on the type. What a type needs is tested by roce.NewQP.
func (i *QPInit) check(d *Device) error {
	switch {
	case i.Type == roce.TypeGSI:
		return fmt.Errorf("%w: a QP of type GSI is not for applications", roce.ErrInvalid)
	case i.Type == roce.TypeRawPacket && !d.options.RawPackets:
		return fmt.Errorf("%w: RAW_PACKET needs a device opened with RawPackets",
			roce.ErrInvalid)
	case i.MaxInlineRecv < NoInlineRecv || i.MaxInlineRecv > roce.MaxInlineRecv:
		return fmt.Errorf("%w: %d bytes of inline receive are not in 0..%d", roce.ErrInvalid,
			i.MaxInlineRecv, roce.MaxInlineRecv)
	case int(i.PKeyIndex) >= len(d.options.PKeys):
		return fmt.Errorf("%w: P_Key index %d, the table has %d", roce.ErrInvalid, i.PKeyIndex,
			len(d.options.PKeys))
	case i.Extensions != 0 && i.Type != roce.TypeRC:
		return fmt.Errorf("%w: a QP of type %s has no extensions", roce.ErrInvalid, i.Type)
	case i.Congestion != nil && (d.options.Congestion == nil || !i.Congestion.Known()):
		return fmt.Errorf("%w: congestion control %s on a device without any, or unknown",
			roce.ErrInvalid, *i.Congestion)
	}
	return nil
}

// gsiQPN is the number of the QP of management.
const gsiQPN = 1

// config is the transport's part of a QP that lives on q.
func (i *QPInit) config(q *queue, pd *PD) roce.QPConfig {
	d := q.device
	c := roce.QPConfig{
		Type: i.Type, Domain: &pd.core,
		MaxSendWR: i.MaxSendWR, MaxRecvWR: i.MaxRecvWR,
		MaxSendSGE: i.MaxSendSGE, MaxRecvSGE: i.MaxRecvSGE, MaxInline: i.MaxInline,
		MaxInlineRecv: d.inlineRecv(i.MaxInlineRecv),
		SignalAll:     i.SignalAll, Window: i.Window, MTU: q.activeMTU(),
		Counters: &q.count, Common: &q.common,
		Congestion: d.options.Congestion, ReorderWindow: i.ReorderWindow,
	}
	if i.Congestion != nil {
		own := *c.Congestion
		own.Algorithm = *i.Congestion
		c.Congestion = &own
	}
	if i.SendCQ != nil {
		c.SendCQ = i.SendCQ.core
	}
	if i.RecvCQ != nil {
		c.RecvCQ = i.RecvCQ.core
	}
	if i.SRQ != nil {
		c.SRQ = i.SRQ.core
	}
	if i.XRCD != nil {
		c.XRCD = i.XRCD.core
	}
	return c
}

// CreateQP makes a QP in state RESET with an unpredictable number
// (ibv_create_qp). It returns roce.ErrInvalid, with what is wrong, when init does
// not fit its type or names what is closed or of another device.
func (d *Device) CreateQP(pd *PD, init QPInit) (*QP, error) {
	init.setDefaults()
	if err := init.check(d); err != nil {
		return nil, err
	}
	return d.createQP(pd, init)
}

// CreateGSI makes the QP number 1 in state RESET, which management datagrams go to
// and come from. A device has one: it is of the connection manager (engine/cm), if
// that is used. The init is that of a UD QP without Type. It returns ErrBusy when
// the device has one already.
func (d *Device) CreateGSI(pd *PD, init QPInit) (*QP, error) {
	if init.Type != 0 {
		return nil, fmt.Errorf("%w: a QP number 1 of type %s", roce.ErrInvalid, init.Type)
	}
	init.Type = roce.TypeGSI
	init.setDefaults()
	return d.createQP(pd, init)
}

// createQP makes a QP of what was checked.
func (d *Device) createQP(pd *PD, init QPInit) (*QP, error) {
	d.life.Lock()
	defer d.life.Unlock()
	queue := d.queueFor()
	q := &QP{
		extensions: init.Extensions, pkeyIndex: init.PKeyIndex,
		control: &qpControl{
			refs: references{pd, init.SendCQ, init.RecvCQ, init.SRQ, init.XRCD},
		},
	}
	q.at.Store(queue)
	q.entity.Init(q)
	q.timer.Init(q)
	queue.lock()
	defer queue.mu.Unlock()
	if err := errors.Join(queue.err, q.control.refs.check(d)); err != nil {
		return nil, err
	}
	if err := pd.retain(d); err != nil {
		return nil, err
	}
	if err := q.enter(&init); err != nil {
		pd.release()
		return nil, err
	}
	q.control.refs.retain()
	queue.members++
	if d.options.CountQPs {
		queue.countApart(q)
	}
	queue.sizeReceiveRing(init.Type)
	return q, nil
}

// enter gives the QP a number, under which packets find it, or nothing. The caller holds
// the life lock and the progress lock.
func (q *QP) enter(init *QPInit) error {
	config := init.config(q.home(), q.control.refs.pd)
	config.OnEvent = q.raise
	qps := q.device().qps
	if init.Type == roce.TypeGSI {
		var err error
		if q.core, err = roce.NewQP(gsiQPN, config); err != nil {
			return err
		}
		if !qps.InsertAt(gsiQPN, q) {
			return fmt.Errorf("%w: somebody has the QP number 1", ErrBusy)
		}
		return nil
	}
	var qpn uint32
	var failed error
	_, err := qps.Insert(func(num uint32) *QP {
		qpn = num
		q.core, failed = roce.NewQP(num, config)
		return q
	})
	if err != nil {
		return err
	}
	if failed != nil {
		// Nobody used it: that needs the progress lock of its queue.
		qps.Delete(qpn)
	}
	return failed
}
