package msg_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
	"xroce/roce/wire"
)

// What things cost an owner, in virtual time: it has a processor for messages, as endpoints have
// the goroutine of the services, and one to register memory.
const (
	costOfCompletion = 250 * roce.Nanosecond
	costOfPost       = 100 * roce.Nanosecond
	costOfMemory     = 2 * roce.Microsecond
	costOfConnection = 20 * roce.Microsecond
)

// A stage is a hub, a good peer of it and a bad one, on a simulated network of 10 Gbit/s, under
// virtual time: each run of it is the same.
type stage struct {
	t       *testing.T
	clock   *sim.VirtualClock
	network *sim.Network
	hub     *owner
	good    *owner
	bad     *villain
	joined  *joint // of the hub with the good one
	threat  *joint // of the hub with the bad one
	door    *door  // where the bad one asks for more, nil for none
	ends    []error
	react   func(s *stage) // to a new connection of the bad one

	came, next int // messages of the good peer that were received, and posted
}

// A seat is a device on the stage.
type seat struct {
	stage *stage
	port  *sim.Port
	dev   *engine.Device
	cq    *engine.CQ
}

// An owner is a seat with a machine of messages, which it drives as an endpoint does.
type owner struct {
	*seat
	machine *rmsg.Endpoint
	joints  map[uint32]*joint // by QPN
	asked   []*rmsg.Request
	busy    roce.Time // until then it has something to do
	// registering is until when memory is being registered.
	registering roce.Time
	wr          roce.SendWR
	wcs         [1]roce.Completion
}

// A joint is one end of a connection.
type joint struct {
	owner   *owner
	pd      *engine.PD
	qp      *engine.QP
	info    engine.Endpoint
	control *engine.MR
	core    *rmsg.Conn
	memory  []rmsg.Memory // that the peer may write to
}

const jointReceives = 512

func newStage(t *testing.T, c rmsg.Config) *stage {
	t.Helper()
	s := &stage{t: t, clock: &sim.VirtualClock{}}
	s.clock.AdvanceTo(1)
	var err error
	s.network, err = sim.NewNetwork(1, s.clock, sim.Faults{
		Delay: 2 * roce.Microsecond, Rate: 10_000_000_000,
	})
	must(t, err)
	s.hub, s.good = s.newOwner(1, c), s.newOwner(2, rmsg.Config{})
	s.bad = &villain{seat: s.newSeat(3)}
	var there *joint
	s.joined, there = s.hub.newJoint(), s.good.newJoint()
	s.connect(s.joined.qp, there.qp, s.joined.info, there.info)
	s.joined.open()
	there.open()
	s.threaten()
	for range 8 {
		s.post(there.core, &rmsg.Send{User: there})
		s.expect(&rmsg.Receive{})
	}
	return s
}

func (s *stage) newSeat(n byte) *seat {
	s.t.Helper()
	port, err := s.network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
	})
	must(s.t, err)
	x := &seat{stage: s, port: port}
	x.dev, err = engine.OpenLink(port, port, engine.Options{
		Clock: s.clock, Direct: true, Rand: rand.NewPCG(uint64(n), 1),
	})
	must(s.t, err)
	s.t.Cleanup(func() { must(s.t, x.dev.Close()) })
	x.cq, err = x.dev.CreateCQ(8 * jointReceives)
	must(s.t, err)
	return x
}

func (s *stage) newOwner(n byte, c rmsg.Config) *owner {
	s.t.Helper()
	o := &owner{seat: s.newSeat(n), joints: map[uint32]*joint{}}
	c.Rand = rand.NewPCG(uint64(n), 2)
	var err error
	o.machine, err = rmsg.New(c)
	must(s.t, err)
	return o
}

// newQP makes a queue pair that can receive control messages into a region.
func (x *seat) newQP(pd *engine.PD, access mem.Access) (*engine.QP, engine.Endpoint) {
	t := x.stage.t
	t.Helper()
	qp, err := x.dev.CreateQP(pd, engine.QPInit{
		SendCQ: x.cq, RecvCQ: x.cq, MaxSendWR: 64, MaxRecvWR: jointReceives,
		MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: rmsg.MaxControlLen,
	})
	must(t, err)
	must(t, qp.Init(access))
	info, err := x.dev.Endpoint(qp, 1)
	must(t, err)
	return qp, info
}

// connect joins two queue pairs.
func (s *stage) connect(a, b *engine.QP, at, to engine.Endpoint) {
	s.t.Helper()
	for range 2 {
		must(s.t, a.Connect(s.t.Context(), at, to, engine.ConnectOptions{
			SGIDIndex: 1, PathMTU: wire.MTU4096, HopLimit: 64, Timeout: 14, RetryCnt: 7,
			RNRRetry: 7, MinRNRTimer: 12, MaxRdAtomic: 16, Exact: true,
		}))
		a, b, at, to = b, a, to, at
	}
}

func (o *owner) newJoint() *joint {
	t := o.stage.t
	t.Helper()
	j := &joint{owner: o, pd: o.dev.AllocPD()}
	j.qp, j.info = o.newQP(j.pd, mem.RemoteRead|mem.RemoteWrite)
	var err error
	j.control, err = o.dev.AllocMR(j.pd, jointReceives*rmsg.MaxControlLen, mem.LocalWrite)
	must(t, err)
	for i := range jointReceives {
		must(t, j.receive(i))
	}
	o.joints[j.qp.QPN()] = j
	return j
}

func (j *joint) receive(i int) error {
	return j.qp.PostRecv(&roce.RecvWR{
		WRID:   sent | uint64(i),
		SGList: []roce.SGE{j.control.SGE(i*rmsg.MaxControlLen, rmsg.MaxControlLen)},
	})
}

// open tells the machine of the connection.
func (j *joint) open() {
	var err error
	j.core, err = j.owner.machine.Open(j.owner.stage.clock.Now(), hello(), hello(), 64)
	must(j.owner.stage.t, err)
	j.core.User = j
	j.core.Start()
}

// turn lets the owner do one thing, if it has one and has the time, and reports whether it did.
func (o *owner) turn() bool {
	worked, now := o.dev.Progress(), o.stage.clock.Now()
	if now >= o.registering && len(o.asked) > 0 { // on a processor of its own
		o.registering = now + costOfMemory
		o.provide(now)
		o.progress(now)
		worked = true
	}
	if now < o.busy {
		return worked
	}
	o.busy = now
	if at, ok := o.machine.NextDeadline(); ok && at <= now {
		o.busy += costOfCompletion
		o.machine.HandleDeadline(now)
	} else if n, err := o.cq.Poll(o.wcs[:]); err != nil || n > 0 {
		must(o.stage.t, err)
		o.busy += costOfCompletion
		o.take(now, &o.wcs[0])
	}
	o.progress(now)
	return worked || o.busy > now
}

// take hands a completion to the machine, as an endpoint does.
func (o *owner) take(now roce.Time, wc *roce.Completion) {
	j := o.joints[wc.QPN]
	switch {
	case o.stage.door != nil && wc.QPN == o.stage.door.hub.QPN() && o == o.stage.hub:
		o.stage.door.answer(o, wc)
	case j == nil:
	case wc.Status != roce.StatusSuccess && j.qp.Snapshot().BadKey:
		o.machine.HandleBadKey(now, j.core.First())
	case wc.WRID&sent == 0:
		o.machine.HandleWork(now, j.core.First(), wc)
	default:
		i := int(wc.WRID &^ sent)
		var control []byte
		if wc.Status == roce.StatusSuccess {
			if wc.Opcode == roce.WCRecv {
				at := i * rmsg.MaxControlLen
				control = bytes.Clone(j.control.Bytes()[at:][:wc.ByteLen])
			}
			_ = j.receive(i)
		}
		o.machine.HandleArrival(now, j.core.First(), wc, control)
	}
}

// provide answers the oldest request for memory.
func (o *owner) provide(now roce.Time) {
	r := o.asked[0]
	o.asked = o.asked[1:]
	j := r.Conn.User.(*joint)
	m, err := msg.Provide([]msg.Domain{{Device: o.dev, PD: j.pd}}, r)
	if r.Remote && r.Kind == rmsg.Allocate {
		j.memory = append(j.memory, m)
	}
	o.machine.Answer(now, r, m, err)
}

// progress does what the machine wants.
func (o *owner) progress(now roce.Time) {
	for r := o.machine.NextWork(now, &o.wr); r != nil; r = o.machine.NextWork(now, &o.wr) {
		o.busy += costOfPost
		c := r.Conn()
		if err := c.User.(*joint).qp.PostSend(&o.wr); err != nil {
			c.Abort(now, err)
		}
	}
	for r := o.machine.NextRequest(); r != nil; r = o.machine.NextRequest() {
		o.asked = append(o.asked, r)
	}
	for s := o.machine.NextSent(); s != nil; s = o.machine.NextSent() {
		o.stage.sent(o, s)
	}
	for r := o.machine.NextReceived(); r != nil; r = o.machine.NextReceived() {
		o.stage.received(r)
	}
	for c := o.machine.NextClosed(); c != nil; c = o.machine.NextClosed() {
		o.stage.over(c.User.(*joint), c.Err())
	}
}

// run lets time go by.
func (s *stage) run(d roce.Time) {
	s.t.Helper()
	for end := s.clock.Now() + d; s.clock.Now() < end && !s.t.Failed(); {
		worked := s.hub.turn()
		worked = s.good.turn() || worked
		worked = s.bad.turn() || worked
		if worked {
			continue
		}
		now, next := s.clock.Now(), end
		at := func(t roce.Time, ok bool) {
			if ok && t > now && t < next {
				next = t
			}
		}
		for _, x := range []*seat{s.hub.seat, s.good.seat, s.bad.seat} {
			if x == s.bad.seat && s.bad.frozen {
				continue
			}
			at(x.port.NextArrival())
			at(x.dev.NextDeadline())
		}
		for _, o := range []*owner{s.hub, s.good} {
			at(o.machine.NextDeadline())
			at(o.busy, true)
			at(o.registering, true)
		}
		s.clock.AdvanceTo(next)
	}
}
