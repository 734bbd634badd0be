package conversation

import (
	"errors"
	"fmt"
	"math"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// errNoQP says that a statement needs the QP that comes later in the file.
var errNoQP = errors.New("the file has to make its QP first")

// errNoSRQ says that a statement needs an SRQ.
var errNoSRQ = errors.New("there is no srq")

// ordinary are the attributes of a QP that the file says nothing about.
func ordinary() roce.Attr {
	return roce.Attr{
		Access: mem.RemoteWrite | mem.RemoteRead, Port: 1, Path: pathTo(peerHost),
		PathMTU: wire.MTU256, DestQPN: 0x22, RQPSN: 500, SQPSN: 100, MaxRdAtomic: 4,
		MaxDestRdAtomic: 4, MinRNRTimer: 12, Timeout: 14, RetryCnt: 3, RNRRetry: 3,
	}
}

// parseQP reads: qp TYPE [ATTRIBUTE=VALUE...] [state=STATE] and the sizes.
func parseQP(a *args) action {
	typ, _, ok := choose(a, qpTypes)
	if !ok {
		a.fail(a.pos, "the type of the QP is missing")
	}
	c := config{
		typ: typ, qpn: a.number("qpn", 0x11, 1<<24-1), all: a.flag("signal_all"),
		window: int(a.number("window", 0, math.MaxInt32)),
		sendWR: int(a.number("send_wr", 64, math.MaxInt32)),
		recvWR: int(a.number("recv_wr", 64, math.MaxInt32)),
		sge:    int(a.number("sge", 4, math.MaxInt32)),
		cq:     int(a.number("cq", 256, 1<<16)),
		inline: int(a.number("max_inline", 0, math.MaxInt32)),
		shared: a.flag("srq"),
	}
	attr, to := ordinary(), roce.StateRTS
	for _, v := range readAttrs(a) {
		switch {
		case v.set == nil:
			a.fail(v.pos, "%s is no attribute of a new QP", v.name)
		case v.name == "state":
			to = roce.State(v.v)
		default:
			v.set(&attr, v.v)
		}
	}
	c.destQPN = uint64(attr.DestQPN)
	return func(p *player) error {
		if p.qp != nil {
			return errors.New("there is a QP already")
		}
		p.conf = c
		if err := p.create(); err != nil {
			return err
		}
		return p.connect(attr, to)
	}
}

// create makes the QP and its CQs.
func (p *player) create() error {
	cqs := [2]*roce.CQ{}
	for i := range cqs {
		cq, err := roce.NewCQ(p.conf.cq, func() { p.notes[i]++ })
		if err != nil {
			return err
		}
		cq.OnError(func() { p.raise(roce.EventCQErr) })
		cqs[i] = cq
	}
	p.sq, p.rq = cqs[0], cqs[1]
	c := &p.conf
	q := roce.QPConfig{
		Type: c.typ.num, Domain: p.domain, SendCQ: p.sq, RecvCQ: p.rq,
		MaxSendWR: c.sendWR, MaxRecvWR: c.recvWR, MaxSendSGE: c.sge, MaxRecvSGE: c.sge,
		MaxInline: c.inline, SignalAll: c.all, Window: c.window, Counters: &p.count,
		Common:  &roce.Common{Keys: p.keys, PKeys: roce.DefaultPKeys()},
		OnEvent: p.raise,
	}
	var err error
	switch c.typ.num {
	case roce.TypeXRCRecv:
		q.XRCD = roce.NewXRCD()
		q.SendCQ, q.RecvCQ, q.MaxSendWR, q.MaxSendSGE = nil, nil, 0, 0
		q.MaxRecvWR, q.MaxRecvSGE = 0, 0
		if p.srq == nil {
			return errors.New("an XRC_RECV needs an srq before it")
		}
		err = q.XRCD.Add(p.srq, p.rq)
	case roce.TypeXRCSend:
		q.RecvCQ, q.MaxRecvWR, q.MaxRecvSGE = nil, 0, 0
	}
	if c.shared {
		q.SRQ, q.MaxRecvWR, q.MaxRecvSGE = p.srq, 0, 0
	}
	if err == nil {
		p.qp, err = roce.NewQP(uint32(c.qpn), q)
	}
	return err
}

// raise keeps an event for the file to announce.
func (p *player) raise(e roce.Event) { p.events = append(p.events, e) }

// parseSRQ reads: srq [srqn=N] [wr=N] [sge=N] [other_domain].
func parseSRQ(a *args) action {
	num := uint32(a.number("srqn", 3, math.MaxUint32))
	c := roce.SRQConfig{
		MaxWR:  int(a.number("wr", 64, math.MaxInt32)),
		MaxSGE: int(a.number("sge", 4, math.MaxInt32)),
	}
	foreign := a.flag("other_domain")
	return func(p *player) error {
		if p.srq != nil || p.qp != nil {
			return errors.New("one srq, before the QP")
		}
		c := c
		if c.Domain, c.OnEvent = p.domain, p.raise; foreign {
			c.Domain = p.other
		}
		var err error
		p.srq, err = roce.NewSRQ(num, c)
		return err
	}
}

// parseLimit reads: limit N, and arms the SRQ with it.
func parseLimit(a *args) action {
	n, err := parseNumber(a.word("a number"))
	if err != nil || n > math.MaxInt32 {
		a.fail(a.pos, "a number of receives is missing")
	}
	return func(p *player) error {
		if p.srq == nil {
			return errNoSRQ
		}
		return p.srq.Modify(roce.SRQAttr{Limit: int(n)}, roce.SRQAttrLimit)
	}
}

// parseValid reads: valid NAME yes|no, whether the key of a region may be used, or
// the window is bound.
func parseValid(a *args) action {
	name := a.word("the name of the region or window")
	want := a.flag("yes")
	if !want && !a.flag("no") {
		a.fail(a.pos, "yes or no is missing")
	}
	return func(p *player) error {
		if w := p.window(name); w != nil {
			if w.mw.Bound() != want {
				return fmt.Errorf("got: %t", !want)
			}
			return nil
		}
		r, err := p.region(name)
		if err == nil && r.mr.Valid() != want {
			err = fmt.Errorf("got: %t", r.mr.Valid())
		}
		return err
	}
}

// connect moves the QP from RESET to a state, on the way that verbs prescribe.
func (p *player) connect(attr roce.Attr, to roce.State) error {
	t := &p.conf.typ
	way := []struct {
		state roce.State
		names []string
	}{
		{roce.StateInit, t.init}, {roce.StateRTR, t.rtr}, {roce.StateRTS, t.rts}, {to, nil},
	}
	p.state = to
	for _, leg := range way {
		if p.qp.State() == to {
			return nil
		}
		attr.State = leg.state
		mask := roce.AttrState | maskOf(leg.names)
		if attr.NoFlowControl && leg.state == roce.StateRTR {
			mask |= roce.AttrFlowControl
		}
		if err := p.qp.Modify(p.now, &attr, mask); err != nil {
			return fmt.Errorf("on the way to %s: %w", to, err)
		}
	}
	return nil
}

// parseRegion reads: region NAME LENGTH RIGHTS [addr=ADDRESS] [other_domain].
func parseRegion(a *args) action {
	name := a.word("the name")
	if !isName(name) {
		a.fail(a.pos, "%q is not a name", name)
	}
	n, err := parseNumber(a.word("the length"))
	if err != nil || n > maxData {
		a.fail(a.pos, "the length is 0 to %d bytes", maxData)
	}
	access, err := parseRights(a.word("the access rights"))
	if err != nil {
		a.fail(a.pos, "%v", err)
	}
	addr := a.number("addr", 0, math.MaxUint64)
	foreign := a.flag("other_domain")
	return func(p *player) error {
		if r, _ := p.region(name); r != nil {
			return fmt.Errorf("there is a region %s already", name)
		}
		index := uint64(len(p.regions) + 1)
		r := &region{name: name, bytes: make([]byte, n)}
		pattern(r.bytes, 1<<16+index, 0)
		r.shadow = append([]byte(nil), r.bytes...)
		domain := p.domain
		if foreign {
			domain = p.other
		}
		if addr == 0 && mem.Access(access)&mem.ZeroBased == 0 {
			addr = index << 32
		}
		var err error
		r.mr, err = p.keys.RegisterAt(domain, r.bytes, addr, mem.Access(access))
		if err == nil {
			p.regions = append(p.regions, r)
		}
		return err
	}
}

// parseDeregister reads: deregister NAME.
func parseDeregister(a *args) action {
	name := a.word("the name of the region")
	return func(p *player) error {
		r, err := p.region(name)
		if err == nil {
			err = p.keys.Deregister(r.mr)
		}
		return err
	}
}
