package cm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Implementation constants.
const (
	grhLen  = wire.GRHLen        // before each datagram
	slotLen = grhLen + cm.MADLen // of a receive
	sendWRs = 512                // MADs that wait for the device

	// So many of them there are from one that tells when it is sent to the next: there is one
	// whenever the send queue is full.
	sendSignal = sendWRs / 8
)

// A Manager makes and ends the connections of a device. Its methods are safe for
// concurrent use.
type Manager struct {
	dev   *engine.Device
	clock engine.Clock // of the machine: the device's by default
	pd    *engine.PD
	cq    *engine.CQ
	qp    *engine.QP // number 1
	mr    *engine.MR
	rand  source

	ctx     context.Context // ends with the manager
	cancel  context.CancelFunc
	handle  atomic.Pointer[engine.ServiceHandle] // nil until Open is done
	running sync.WaitGroup                       // the goroutines that resolve addresses
	linger  time.Duration
	left    chan struct{} // closed when the manager is closed and leaving is empty
	once    sync.Once     // of Close
	failed  error         // what Close returns

	quiet     noted      // that have failed without a completion
	heard     noted      // whose peers were heard
	working   sync.Mutex // before mu
	worker    *worker    // nil until a connection needs it
	workEnded bool

	mu        sync.Mutex
	machine   *cm.Machine
	closed    bool               // nothing new begins
	ended     bool               // nothing goes on
	parting   []cm.ID            // once closed, connections whose peers are to be told
	leaving   map[cm.ID]struct{} // those whose peers have to confirm
	conns     map[cm.ID]*Conn
	resting   map[cm.ID]chan struct{} // released of those that were destroyed
	requests  map[cm.ID]*Request
	listeners map[cm.ListenerID]*Listener
	lookups   map[cm.ID]chan cm.Event
	routes    routes
	posted    uint64 // MADs that were given to the device
	lost      Lost
}

// Lost counts MADs that the machine does not know of.
type Lost struct {
	NotQP1    uint64 // received from another QP than number 1
	Martian   uint64 // received in the name of an address of ours, or from no station
	SendFull  uint64 // not sent: too many waited for the device
	Refusals  uint64 // not sent: answers about nothing, as REJs, of which fewer may wait
	NoRoute   uint64 // not sent: the address has no route or no neighbour
	Resolving uint64 // not sent: too many addresses were being resolved
}

// Open makes the manager of a device. It returns engine.ErrBusy when it has one.
func Open(dev *engine.Device, o Options) (*Manager, error) {
	if o.Clock == nil {
		o.Clock = dev
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
		linger: o.Linger, left: make(chan struct{}),
		conns: map[cm.ID]*Conn{}, resting: map[cm.ID]chan struct{}{},
		requests:  map[cm.ID]*Request{},
		listeners: map[cm.ListenerID]*Listener{}, lookups: map[cm.ID]chan cm.Event{},
	}
	m.routes.init()
	// The GUID of a port is that of its link-local GID.
	gid := wire.LinkLocalGID(dev.Port().MAC)
	c := o.Machine
	c.CAGUID, c.MTU, c.Rand = binary.BigEndian.Uint64(gid[8:]), 0, &m.rand
	c.PKeys = dev.PKeys()
	if c.AckDelay == 0 {
		c.AckDelay = dev.Query().CAAckDelay
	}
	var err error
	if m.machine, err = cm.New(c); err != nil {
		return nil, err
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.open(o.Receives); err != nil {
		m.cancel()
		return nil, errors.Join(err, m.release())
	}
	handle, err := dev.AddService(service{m}, m.cq)
	if err != nil {
		m.cancel()
		return nil, errors.Join(err, m.release())
	}
	m.handle.Store(handle)
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

// dispatch takes the machine's events to whom they concern and sends its MADs. The caller holds mu.
func (m *Manager) dispatch() {
	m.part()
	m.tellAll()
	m.transmit()
	m.checkLeft()
}

// tellAll takes the machine's events to whom they concern. The caller holds mu.
func (m *Manager) tellAll() {
	for e, ok := m.machine.NextEvent(); ok; e, ok = m.machine.NextEvent() {
		m.tell(e)
	}
}

// tell takes an event to whom it concerns. The caller holds mu.
func (m *Manager) tell(e cm.Event) {
	switch e.Type {
	case cm.EventDisconnected, cm.EventTimewaitExit:
		delete(m.leaving, e.ID)
	case cm.EventConnectRequest, cm.EventSIDRRequest:
		if l := m.listeners[e.Listener]; l != nil {
			m.takeRequest(l, e)
			return
		}
		m.refuse(e)
		return
	case cm.EventSIDRResponse:
		m.endLookup(e)
		return
	}
	if m.lookups[e.ID] != nil {
		m.endLookup(e)
		return
	}
	if r := m.requests[e.ID]; r != nil && e.Type != cm.EventTimewaitExit {
		r.fail(errorOf(e))
		r.listener.drop(r)
		m.giveUp(r)
	}
	delete(m.requests, e.ID)
	if c := m.conns[e.ID]; c != nil {
		c.take(e)
	}
	if released := m.resting[e.ID]; released != nil && e.Type == cm.EventTimewaitExit {
		delete(m.resting, e.ID)
		close(released)
	}
}

// refuse rejects a request that came for a listener that has just been closed. The
// caller holds mu.
func (m *Manager) refuse(e cm.Event) {
	// Both are there, so this cannot be refused.
	if e.Type == cm.EventSIDRRequest {
		_ = m.machine.RespondSIDR(m.clock.Now(), e.ID, cm.SIDRResponse{Status: cm.SIDRUnsupported})
		return
	}
	_ = m.machine.Reject(m.clock.Now(), e.ID, cm.ReasonInvalidServiceID, nil, nil)
}

// wake has the device ask for the next deadline anew.
func (m *Manager) wake() {
	if handle := m.handle.Load(); handle != nil {
		handle.Wake()
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

// Usage returns how many objects the manager's machine has.
func (m *Manager) Usage() cm.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Usage()
}

// errorOf returns the error of an attempt to connect that an event ended.
func errorOf(e cm.Event) error {
	switch {
	case e.Type == cm.EventUnreachable:
		return fmt.Errorf("%w: %s", ErrTimeout, e.Reason)
	case e.Reason != cm.ReasonNone:
		return &RejectedError{Reason: e.Reason, Private: e.Private}
	case bytes.HasPrefix(e.Private, largeLost):
		return ErrLargeLost
	}
	return ErrHungUp
}
