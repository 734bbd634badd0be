package cm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Implementation constants.
const (
	grhLen   = wire.GRHLen        // before each datagram
	slotLen  = grhLen + cm.MADLen // of a receive
	sendWRs  = 512                // MADs that wait for the device
	pollEach = time.Millisecond   // on a device in direct mode
	// batches is how often MADs are taken from the CQ before what they made is told and
	// sent: the answers to them are within what the machine holds by default.
	batches = 8
)

// A Manager makes and ends the connections of a device. Its methods are safe for
// concurrent use.
type Manager struct {
	dev   *engine.Device
	clock engine.Clock
	pd    *engine.PD
	cq    *engine.CQ
	qp    *engine.QP // number 1
	mr    *engine.MR
	rand  source

	ctx     context.Context // ends with the manager
	cancel  context.CancelFunc
	kick    chan struct{} // the next deadline may have changed
	running sync.WaitGroup
	linger  time.Duration
	left    chan struct{} // closed when leaving is empty at last
	once    sync.Once     // of Close
	failed  error         // what Close returns

	mu        sync.Mutex
	machine   *cm.Machine
	closed    bool               // nothing new begins
	ended     bool               // nothing goes on
	leaving   map[cm.ID]struct{} // once closed, connections whose peers have to confirm
	conns     map[cm.ID]*Conn
	requests  map[cm.ID]*Request
	listeners map[cm.ListenerID]*Listener
	lookups   map[cm.ID]chan cm.Event
	routes    routes
	lost      Lost
}

// Lost counts MADs that the machine does not know of.
type Lost struct {
	NotQP1    uint64 // received from another QP than number 1
	SendFull  uint64 // not sent: too many waited for the device
	NoRoute   uint64 // not sent: nobody answers for the address
	Resolving uint64 // not sent: too many addresses were being resolved
}

// Open makes the manager of a device. It returns engine.ErrBusy when it has one.
func Open(dev *engine.Device, o Options) (*Manager, error) {
	if o.Clock == nil {
		o.Clock = engine.NewSystemClock()
	}
	if o.Receives == 0 {
		o.Receives = defaultReceives
	}
	if o.Linger == 0 {
		o.Linger = defaultLinger
	}
	if o.Receives < 1 || o.Receives > roce.MaxWR {
		return nil, fmt.Errorf("%w: %d receives", roce.ErrInvalid, o.Receives)
	}
	m := &Manager{
		dev: dev, clock: o.Clock, rand: source{from: o.Rand, dev: dev},
		kick: make(chan struct{}, 1), linger: o.Linger, left: make(chan struct{}),
		conns: map[cm.ID]*Conn{}, requests: map[cm.ID]*Request{},
		listeners: map[cm.ListenerID]*Listener{}, lookups: map[cm.ID]chan cm.Event{},
	}
	m.routes.init()
	// The GUID of a port is that of its link-local GID.
	gid := wire.LinkLocalGID(dev.Port().MAC)
	c := o.Machine
	c.CAGUID, c.MTU, c.Rand = binary.BigEndian.Uint64(gid[8:]), 0, &m.rand
	if c.AckDelay == 0 {
		c.AckDelay = dev.Query().CAAckDelay
	}
	var err error
	if m.machine, err = cm.New(c); err != nil {
		return nil, err
	}
	if err := m.open(o.Receives); err != nil {
		return nil, errors.Join(err, m.release())
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.running.Go(m.run)
	return m, nil
}

// open makes the objects of the device.
func (m *Manager) open(receives int) error {
	m.pd = m.dev.AllocPD()
	var err error
	if m.cq, err = m.dev.CreateCQ(receives + sendWRs); err != nil {
		return err
	}
	m.mr, err = m.dev.RegMR(m.pd, make([]byte, receives*slotLen), mem.LocalWrite)
	if err != nil {
		return err
	}
	m.qp, err = m.dev.CreateGSI(m.pd, engine.QPInit{
		SendCQ: m.cq, RecvCQ: m.cq, MaxSendWR: sendWRs, MaxRecvWR: receives, MaxSendSGE: 1,
		MaxRecvSGE: 1, MaxInline: cm.MADLen,
	})
	if err != nil {
		return err
	}
	if err := m.qp.Start(roce.GSIQKey); err != nil {
		return err
	}
	m.cq.Arm(false)
	for i := range receives {
		if err := m.receive(i); err != nil {
			return err
		}
	}
	return nil
}

// receive posts a slot.
func (m *Manager) receive(slot int) error {
	return m.qp.PostRecv(&roce.RecvWR{
		WRID: uint64(slot), SGList: []roce.SGE{m.mr.SGE(slot*slotLen, slotLen)},
	})
}

// release gives the objects of the device back.
func (m *Manager) release() error {
	if m.qp != nil {
		m.qp.Close()
	}
	if m.mr != nil {
		m.mr.Deregister()
	}
	var err error
	if m.cq != nil {
		err = m.cq.Close()
	}
	return errors.Join(err, m.pd.Close())
}

// run joins QP 1, the machine and time until the manager or the device is closed.
func (m *Manager) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.cq.Events():
		case <-timer.C:
		case <-m.kick:
		case <-m.ctx.Done():
			return
		case <-m.dev.Done():
			m.end()
			m.cancel()
			return
		}
		if m.dev.Direct() {
			m.dev.Progress()
		}
		m.mu.Lock()
		if m.poll() {
			m.wake()
		}
		m.machine.HandleDeadline(m.clock.Now())
		m.settle()
		timer.Reset(m.untilNext())
		m.mu.Unlock()
	}
}

// untilNext is how long there is nothing to do if nothing comes. The caller holds
// mu.
func (m *Manager) untilNext() time.Duration {
	wait := time.Hour
	if at, ok := m.machine.NextDeadline(); ok {
		wait = max(0, time.Duration(at-m.clock.Now()))
	}
	if m.dev.Direct() {
		wait = min(wait, pollEach)
	}
	return wait
}

// poll takes what came to QP 1, a bounded part of it: whoever sends all the time must
// not keep everybody else waiting. It reports whether there may be more. The caller
// holds mu.
func (m *Manager) poll() (more bool) {
	m.machine.SetMTU(m.dev.ActiveMTU())
	var wcs [32]roce.Completion
	for range batches {
		if m.ended {
			return false
		}
		n, err := m.cq.Poll(wcs[:])
		for i := range wcs[:n] {
			m.take(&wcs[i])
		}
		if err != nil {
			return false // the CQ has room for all: this is the end of the device
		}
		if n == 0 && !m.cq.Arm(false) {
			return false
		}
	}
	return true
}

// take hands what a completion tells to the machine.
func (m *Manager) take(wc *roce.Completion) {
	if wc.Opcode != roce.WCRecv || wc.Status != roce.StatusSuccess {
		return
	}
	slot := int(wc.WRID)
	b := m.mr.Bytes()[slot*slotLen:][:wc.ByteLen]
	if wc.SrcQP != m.qp.QPN() {
		m.lost.NotQP1++
	} else {
		// A header that cannot be read leaves the path zero, which the machine
		// counts as a wrong source. The flow label is the sender's to choose, and
		// each one would be a way of its own to remember: answers have none.
		came, _ := wire.ParseReplyGRH(b)
		m.machine.HandleMAD(m.clock.Now(), cm.Path{
			Local: came.Dst, Remote: came.Src, TClass: came.TClass &^ ecnBits,
		}, b[grhLen:])
	}
	// It was posted before, so only the end of the device can refuse it.
	_ = m.receive(slot)
}

// ecnBits are what the way of a packet said, not its sender.
const ecnBits = 3

// settle tells what happened and sends what there is to send. The caller holds mu.
func (m *Manager) settle() {
	for e, ok := m.machine.NextEvent(); ok; e, ok = m.machine.NextEvent() {
		m.tell(e)
	}
	m.transmit()
	m.checkLeft()
}

// tell takes an event to whom it concerns. The caller holds mu.
func (m *Manager) tell(e cm.Event) {
	switch e.Type {
	case cm.EventDisconnected, cm.EventTimewaitExit:
		delete(m.leaving, e.ID)
	case cm.EventConnectRequest, cm.EventSIDRRequest:
		if l := m.listeners[e.Listener]; l != nil {
			l.take(e)
			return
		}
		m.refuse(e)
		return
	case cm.EventSIDRResponse:
		m.answerLookup(e)
		return
	}
	if m.lookups[e.ID] != nil {
		m.answerLookup(e)
		return
	}
	if r := m.requests[e.ID]; r != nil && e.Type != cm.EventTimewaitExit {
		r.fail(errorOf(e))
		r.listener.drop(r)
	}
	delete(m.requests, e.ID)
	if c := m.conns[e.ID]; c != nil {
		c.take(e)
	}
}

// refuse answers a request that came for a listener that has just been closed. The
// caller holds mu.
func (m *Manager) refuse(e cm.Event) {
	// Both are there, so this cannot be refused.
	if e.Type == cm.EventSIDRRequest {
		_ = m.machine.RespondSIDR(e.ID, cm.SIDRResponse{Status: cm.SIDRUnsupported})
		return
	}
	_ = m.machine.Reject(m.clock.Now(), e.ID, cm.ReasonInvalidServiceID, nil, nil)
}

// wake makes the goroutine look at the deadlines anew.
func (m *Manager) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// Counters returns the counters of the machine.
func (m *Manager) Counters() cm.CounterSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Counters()
}

// Lost returns what else was lost.
func (m *Manager) Lost() Lost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// Held says how much the manager holds.
func (m *Manager) Held() cm.Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Held()
}

// errorOf is what an event means to somebody who wants a connection.
func errorOf(e cm.Event) error {
	switch {
	case e.Type == cm.EventUnreachable:
		return fmt.Errorf("%w: %s", ErrTimeout, e.Reason)
	case e.Reason != cm.ReasonNone:
		return &RejectedError{Reason: e.Reason, Private: e.Private}
	}
	return ErrHungUp
}
