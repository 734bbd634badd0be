package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
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

// A QP is a queue pair of a device.
type QP struct {
	machine *roce.QP
	device  *Device
	init    QPInit
	trace   *roce.Trace  // under the progress lock
	events  *eventSource // of the device's asyncEvents
	rung    atomic.Bool  // the doorbell was rung and not answered

	// Under the progress lock:
	closed bool

	// Of the queue's turns.
	waiting              bool   // it is in a list of them,
	place                uint8  // which is this one
	round                uint32 // the last one in which it had a turn,
	credit               int32  // and what was left of it, in bytes
	nextReady, prevReady *QP

	// Of the queue's wheel.
	timerSlot            uint16 // the list that it is in plus one, 0 for none
	timerAt              roce.Time
	nextTimer, prevTimer *QP
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

// use counts the QP as a user of what it shares, by n. The caller holds the
// progress lock.
func (i *QPInit) use(n int) {
	for _, cq := range []*CQ{i.SendCQ, i.RecvCQ} {
		if cq != nil {
			cq.users += n
		}
	}
	if i.SRQ != nil {
		i.SRQ.users += n
	}
	if i.XRCD != nil {
		i.XRCD.users += n
	}
}

// closed says what the QP cannot use any more.
func (i *QPInit) closed() error {
	for _, cq := range []*CQ{i.SendCQ, i.RecvCQ} {
		if cq != nil && cq.closed {
			return fmt.Errorf("%w: the CQ is closed", roce.ErrInvalid)
		}
	}
	if i.SRQ != nil && i.SRQ.closed {
		return fmt.Errorf("%w: the SRQ is closed", roce.ErrInvalid)
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
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if err := errors.Join(d.queue.err, init.closed()); err != nil {
		return nil, err
	}
	var failed error
	var qpn uint32
	qp := &QP{device: d, init: init}
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
	init.use(1)
	return qp, nil
}

// raise reports an event of the QP. The caller holds the progress lock.
func (q *QP) raise(e roce.Event) { q.device.raise(AsyncEvent{Type: e, QP: q}) }

// Type returns the QP's type.
func (q *QP) Type() roce.QPType { return q.machine.Type() }

// Query returns the QP's attributes (ibv_query_qp).
func (q *QP) Query() roce.Attr {
	q.device.queue.mu.Lock()
	defer q.device.queue.mu.Unlock()
	return q.machine.Attr()
}

// QPN returns the QP number.
func (q *QP) QPN() uint32 { return q.machine.Num() }

// State returns the QP's state.
func (q *QP) State() roce.State { return q.machine.State() }

// Modify is ibv_modify_qp; a.Path comes from Device.ResolvePath. The error
// names the attribute that is missing, superfluous or out of range.
func (q *QP) Modify(a *roce.Attr, mask roce.AttrMask) error {
	if mask&roce.AttrPathMTU != 0 {
		if active := q.device.ActiveMTU(); a.PathMTU > active {
			return fmt.Errorf("%w: PATH_MTU %d is above the device's active MTU %d",
				roce.ErrInvalid, a.PathMTU.Bytes(), active.Bytes())
		}
	}
	queue := q.device.queue
	queue.mu.Lock()
	defer queue.mu.Unlock()
	if q.closed {
		return errClosed
	}
	err := q.machine.Modify(queue.clock.Now(), a, mask)
	queue.touched(q)
	return err
}

// PostSend posts to the send queue: see roce.QP.PostSend.
func (q *QP) PostSend(wr *roce.SendWR) error {
	if err := q.machine.PostSend(wr); err != nil {
		return err
	}
	q.device.queue.ring(q)
	return nil
}

// PostRecv posts to the receive queue: see roce.QP.PostRecv.
func (q *QP) PostRecv(wr *roce.RecvWR) error {
	if err := q.machine.PostRecv(wr); err != nil {
		return err
	}
	// Few have something to do at once: one in ERR flushes the receive, one whose
	// peer was told that there is none tells it.
	if q.machine.WantsCredit() || q.machine.State() == roce.StateErr {
		q.device.queue.ring(q)
	}
	return nil
}

// Snapshot copies the QP's state, for tools.
func (q *QP) Snapshot() roce.Snapshot {
	q.device.queue.mu.Lock()
	defer q.device.queue.mu.Unlock()
	return q.machine.Snapshot()
}

// Close destroys the QP. Outstanding work vanishes without completions; what
// the peer still sends to it is dropped.
func (q *QP) Close() {
	queue := q.device.queue
	queue.mu.Lock()
	defer queue.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.init.use(-1)
	q.device.detachAll(q)
	queue.detachRaw(q)
	queue.qps.Delete(q.machine.Num())
	queue.forget(q)
	q.device.async.forget(q.events)
	// To RESET from any state: this cannot be refused.
	_ = q.machine.Modify(queue.clock.Now(), &roce.Attr{State: roce.StateReset}, roce.AttrState)
}

// Endpoint is what a peer must be told to connect to a QP.
type Endpoint struct {
	QPN uint32
	PSN wire.PSN // the first PSN that this end sends
	GID wire.GID

	// Extensions are those that this end can do. Connect uses what both can;
	// a foreign peer can none.
	Extensions roce.Extensions
}

// ConnectOptions are the attributes of a connection, with the defaults of
// ibv_rc_pingpong where they are zero.
type ConnectOptions struct {
	SGIDIndex   int
	PathMTU     wire.MTU // default: the device's active MTU
	TClass      uint8
	HopLimit    uint8 // default 64
	FlowLabel   uint32
	Timeout     uint8  // default 14: 67 ms
	RetryCnt    uint8  // default 7
	RNRRetry    uint8  // default 7: for ever
	MinRNRTimer uint8  // default 12: 0.64 ms
	MaxRdAtomic uint8  // READs and atomics outstanding each way, default 16
	RateLimit   uint32 // of what we send, kbit/s of frames, 0 for none
	Exact       bool   // take zeros as they are
}

func (o *ConnectOptions) setDefaults(d *Device) {
	if o.PathMTU == 0 {
		o.PathMTU = d.ActiveMTU()
	}
	if o.Exact {
		return
	}
	for _, f := range []struct {
		field *uint8
		value uint8
	}{
		{&o.HopLimit, 64},
		{&o.Timeout, 14},
		{&o.RetryCnt, 7},
		{&o.RNRRetry, 7},
		{&o.MinRNRTimer, 12},
		{&o.MaxRdAtomic, 16},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
}

// Connect brings a QP of type RC, UC or XRC in INIT to RTS, connected to a remote
// QP; local is what the peer was told. The context bounds the resolution of the
// neighbour.
func (q *QP) Connect(ctx context.Context, local, remote Endpoint, o ConnectOptions) error {
	o.setDefaults(q.device)
	path, err := q.device.ResolvePath(ctx, AddressVector{
		DGID: remote.GID, SGIDIndex: o.SGIDIndex, TClass: o.TClass, HopLimit: o.HopLimit,
		FlowLabel: o.FlowLabel,
	})
	if err != nil {
		return err
	}
	rtr := roce.AttrState | roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN | roce.AttrRQPSN
	rts := roce.AttrState | roce.AttrSQPSN
	requester := roce.AttrTimeout | roce.AttrRetryCnt | roce.AttrRNRRetry | roce.AttrMaxRdAtomic
	responder := roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer
	switch q.Type() {
	case roce.TypeRC:
		rtr |= responder | roce.AttrExtensions
		rts |= requester
	case roce.TypeXRCRecv:
		rtr |= responder
		rts |= roce.AttrTimeout
	case roce.TypeXRCSend:
		rts |= requester
	}
	if o.RateLimit != 0 {
		rts |= roce.AttrRateLimit
	}
	err = q.Modify(&roce.Attr{
		State: roce.StateRTR, Path: path, PathMTU: o.PathMTU, DestQPN: remote.QPN,
		RQPSN: remote.PSN, MaxDestRdAtomic: o.MaxRdAtomic, MinRNRTimer: o.MinRNRTimer,
		Extensions: local.Extensions & remote.Extensions,
	}, rtr)
	if err != nil {
		return err
	}
	return q.Modify(&roce.Attr{
		State: roce.StateRTS, SQPSN: local.PSN, Timeout: o.Timeout, RetryCnt: o.RetryCnt,
		RNRRetry: o.RNRRetry, MaxRdAtomic: o.MaxRdAtomic, RateLimit: o.RateLimit,
	}, rts)
}

// Init brings a QP from RESET to INIT, where it takes receives; the access rights
// are those that a connection grants its peer.
func (q *QP) Init(access mem.Access) error {
	mask := roce.AttrState | roce.AttrPKeyIndex | roce.AttrPort
	switch q.Type() {
	case roce.TypeUD:
		return fmt.Errorf("%w: a QP of type UD is made ready by Start", roce.ErrInvalid)
	case roce.TypeRawPacket:
		mask &^= roce.AttrPKeyIndex
	default:
		mask |= roce.AttrAccess
	}
	return q.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: access}, mask)
}

// Start brings a QP of type UD or RAW_PACKET from RESET to RTS. A datagram must
// carry the Q_Key.
func (q *QP) Start(qkey uint32) error {
	psn := q.device.RandomPSN()
	first := roce.AttrState | roce.AttrPKeyIndex | roce.AttrPort | roce.AttrQKey
	last := roce.AttrState | roce.AttrSQPSN
	switch q.Type() {
	case roce.TypeUD:
	case roce.TypeRawPacket:
		first, last = roce.AttrState|roce.AttrPort, roce.AttrState
	default:
		return fmt.Errorf("%w: a QP of type %s must be connected", roce.ErrInvalid, q.Type())
	}
	for _, m := range []struct {
		state roce.State
		mask  roce.AttrMask
	}{
		{roce.StateInit, first}, {roce.StateRTR, roce.AttrState}, {roce.StateRTS, last},
	} {
		err := q.Modify(&roce.Attr{State: m.state, Port: 1, QKey: qkey, SQPSN: psn}, m.mask)
		if err != nil {
			return err
		}
	}
	return nil
}
