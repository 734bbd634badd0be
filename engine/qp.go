package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"xroce/roce"
	"xroce/roce/wire"
)

// QPInit says what a new QP is. Zero values get the defaults.
type QPInit struct {
	Type           roce.QPType // default RC
	SendCQ, RecvCQ *CQ         // of the same device; may be the same
	MaxSendWR      int         // default 128
	MaxRecvWR      int         // default 128
	MaxSendSGE     int         // default 4
	MaxRecvSGE     int         // default 4
	SignalAll      bool        // every send makes a completion
	Window         int         // PSNs in flight, 0 for the default
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
	if i.Type == 0 {
		i.Type = roce.TypeRC
	}
}

// A QP is a queue pair of a device.
type QP struct {
	machine *roce.QP
	device  *Device
	sendCQ  *CQ
	recvCQ  *CQ
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

// CreateQP makes a QP in state RESET with an unpredictable number.
func (d *Device) CreateQP(pd *PD, init QPInit) (*QP, error) {
	init.setDefaults()
	if pd == nil || pd.device != d {
		return nil, fmt.Errorf("%w: the PD is not of this device", roce.ErrInvalid)
	}
	for _, cq := range []*CQ{init.SendCQ, init.RecvCQ} {
		if cq == nil || cq.device != d {
			return nil, fmt.Errorf("%w: a QP needs two CQs of its device", roce.ErrInvalid)
		}
	}
	config := roce.QPConfig{
		Type: init.Type, Domain: &pd.domain, Keys: d.keys,
		SendCQ: init.SendCQ.ring, RecvCQ: init.RecvCQ.ring,
		MaxSendWR: init.MaxSendWR, MaxRecvWR: init.MaxRecvWR,
		MaxSendSGE: init.MaxSendSGE, MaxRecvSGE: init.MaxRecvSGE,
		SignalAll: init.SignalAll, Window: init.Window, Counters: &d.queue.count,
	}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if err := d.queue.err; err != nil {
		return nil, err
	}
	var failed error
	var qpn uint32
	for _, cq := range []*CQ{init.SendCQ, init.RecvCQ} {
		if cq.closed {
			return nil, fmt.Errorf("%w: the CQ is closed", roce.ErrInvalid)
		}
	}
	qp, err := d.queue.qps.Insert(func(num uint32) *QP {
		var machine *roce.QP
		qpn = num
		machine, failed = roce.NewQP(num, config)
		return &QP{machine: machine, device: d, sendCQ: init.SendCQ, recvCQ: init.RecvCQ}
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		d.queue.qps.Delete(qpn)
		return nil, failed
	}
	qp.sendCQ.users++
	qp.recvCQ.users++
	return qp, nil
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
	// Only a QP in ERR does something with a receive at once: it flushes it.
	if q.machine.State() == roce.StateErr {
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
	q.sendCQ.users--
	q.recvCQ.users--
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
}

// ConnectOptions are the attributes of a connection, with the defaults of
// ibv_rc_pingpong where they are zero.
type ConnectOptions struct {
	SGIDIndex   int
	PathMTU     wire.MTU // default: the device's active MTU
	TClass      uint8
	HopLimit    uint8 // default 64
	FlowLabel   uint32
	Timeout     uint8 // default 14: 67 ms
	RetryCnt    uint8 // default 7
	RNRRetry    uint8 // default 7: for ever
	MinRNRTimer uint8 // default 12: 0.64 ms
	MaxRdAtomic uint8 // READs outstanding each way, default 16
	Exact       bool  // take zeros as they are
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

// Connect brings a QP in INIT to RTS, connected to a remote QP; local is what
// the peer was told. The context bounds the resolution of the neighbour.
func (q *QP) Connect(ctx context.Context, local, remote Endpoint, o ConnectOptions) error {
	o.setDefaults(q.device)
	path, err := q.device.ResolvePath(ctx, AddressVector{
		DGID: remote.GID, SGIDIndex: o.SGIDIndex, TClass: o.TClass, HopLimit: o.HopLimit,
		FlowLabel: o.FlowLabel,
	})
	if err != nil {
		return err
	}
	err = q.Modify(&roce.Attr{
		State: roce.StateRTR, Path: path, PathMTU: o.PathMTU, DestQPN: remote.QPN,
		RQPSN: remote.PSN, MaxDestRdAtomic: o.MaxRdAtomic, MinRNRTimer: o.MinRNRTimer,
	}, roce.AttrState|roce.AttrAV|roce.AttrPathMTU|roce.AttrDestQPN|roce.AttrRQPSN|
		roce.AttrMaxDestRdAtomic|roce.AttrMinRNRTimer)
	if err != nil {
		return err
	}
	return q.Modify(&roce.Attr{
		State: roce.StateRTS, SQPSN: local.PSN, Timeout: o.Timeout, RetryCnt: o.RetryCnt,
		RNRRetry: o.RNRRetry, MaxRdAtomic: o.MaxRdAtomic,
	}, roce.AttrState|roce.AttrSQPSN|roce.AttrTimeout|roce.AttrRetryCnt|roce.AttrRNRRetry|
		roce.AttrMaxRdAtomic)
}
