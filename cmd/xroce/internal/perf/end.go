package perf

import (
	"context"
	"errors"
	"fmt"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/wire"
)

// An end is one end of a test: its queue pairs and all that they need. One
// completion queue takes everything.
type end struct {
	*region
	cfg *Config
	dev *engine.Device
	cq  *engine.CQ
	// rest is a completion queue of nothing: to wait on it drives the device.
	rest   *engine.CQ
	srq    *engine.SRQ
	at     layout
	flows  []flow
	wcs    [64]roce.Completion
	polls  uint   // how often the loop has looked, see pollOn
	length uint32 // that each message received must have in its receive
	peers  peers  // who sends datagrams to this end
	strays uint64 // messages that do not count, since takeStrays

	gid           int
	mtu           wire.MTU
	outReads      int
	local, remote []perftest.Endpoint
}

// newEnd makes the queue pairs, ready to be posted receives to, and the memory: that of ready, if
// it is not nil and as large as what both ends use asks for.
func newEnd(
	dev *engine.Device, c *Config, s perftest.System, mtu wire.MTU, gid int, ready *region,
) (_ *end, err error) {
	e := &end{cfg: c, dev: dev, mtu: mtu, gid: gid, outReads: 1}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if c.Test.Answered() {
		if e.outReads = c.OutReads; e.outReads == 0 {
			e.outReads = roce.MaxRdAtomic
		}
	}
	if e.at, err = newLayout(c, s); err != nil {
		return nil, err
	}
	if e.region, err = ready.of(dev, c, e.at.size()); err != nil {
		return nil, err
	}
	if err = e.initMemory(mtu); err != nil {
		return nil, err
	}
	depth := c.QPs * (c.TxDepth + c.PostList + c.RxDepth)
	if e.cq, err = dev.CreateCQ(min(depth, roce.MaxCQDepth)); err != nil {
		return nil, err
	}
	if e.rest, err = dev.CreateCQ(1); err != nil {
		return nil, err
	}
	if c.UseSRQ && c.receives() {
		e.srq, err = dev.CreateSRQ(e.pd, engine.SRQInit{MaxWR: c.RxDepth, MaxSGE: 1})
		if err != nil {
			return nil, err
		}
	}
	e.flows = make([]flow, c.QPs)
	for i := range e.flows {
		if err := e.newQP(&e.flows[i]); err != nil {
			return nil, fmt.Errorf("QP %d of %d: %w", i+1, c.QPs, err)
		}
		local, err := e.endpoint(i)
		if err != nil {
			return nil, err
		}
		e.local = append(e.local, local)
	}
	e.remote = make([]perftest.Endpoint, c.QPs)
	return e, nil
}

func (e *end) newQP(f *flow) error {
	c := e.cfg
	init := engine.QPInit{
		Type: c.Type, SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq, MaxSendWR: c.TxDepth + c.PostList,
		MaxRecvWR: c.RxDepth, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: c.Inline,
		MaxInlineRecv: c.InlineRecv,
	}
	if e.srq != nil {
		init.MaxRecvWR, init.MaxRecvSGE = 0, 0
	}
	f.srq = e.srq
	var err error
	if f.qp, err = e.dev.CreateQP(e.pd, init); err != nil {
		return err
	}
	if c.raw() {
		return e.startRaw(f)
	}
	if c.Type != roce.TypeUD {
		return f.qp.Init(verbs[c.Test.Verb].access)
	}
	if err := f.qp.Start(qkey); err != nil {
		return err
	}
	if rate := c.Rate.kbits(c.QPs); rate != 0 { // with others it is a part of connecting
		err := f.qp.Modify(&roce.Attr{RateLimit: rate}, roce.AttrRateLimit)
		if err != nil {
			return err
		}
	}
	if c.Group.IsZero() || !c.receives() {
		return nil
	}
	return f.qp.AttachMulticast(c.Group)
}

// connect makes the queue pairs ready to send.
func (e *end) connect(ctx context.Context, via Connector) error {
	e.peers = e.findPeers()
	for i := range e.flows {
		f := &e.flows[i]
		vector := engine.AddressVector{
			DGID: e.remote[i].GID, SGIDIndex: e.gid, TClass: e.cfg.TClass,
			FlowLabel: e.cfg.FlowLabel, HopLimit: e.cfg.HopLimit,
		}
		// What rdma_cm has connected is connected, whatever the peer tells.
		if !e.cfg.Managed && e.local[i].GID.IsIPv4() != e.remote[i].GID.IsIPv4() {
			return fmt.Errorf("%w: GID %s cannot reach %s: choose the same IP version at both "+
				"ends (-x, --ipv6)", roce.ErrInvalid, e.local[i].GID, e.remote[i].GID)
		}
		if !e.cfg.Group.IsZero() {
			vector.DGID = e.cfg.Group
		}
		var err error
		switch {
		case e.cfg.raw():
			err = e.connectRaw(ctx, f, vector)
		case e.cfg.Type == roce.TypeUD:
			f.ah, err = e.dev.CreateAH(ctx, e.pd, vector)
		default:
			err = via.Connect(ctx, Link{
				QP: f.qp, Local: e.local[i], Remote: e.remote[i], Vector: vector, MTU: e.mtu,
				Timeout: e.cfg.Timeout, RateLimit: e.cfg.Rate.kbits(len(e.flows)),
			})
		}
		if err != nil {
			return fmt.Errorf("connect QP %d to 0x%06x of %s: %w", i+1, e.remote[i].QPN,
				e.remote[i].GID, err)
		}
	}
	return nil
}

// prepare fills in the work requests for messages of a size.
func (e *end) prepare(size int) {
	e.length = uint32(size + e.cfg.header())
	for i := range e.flows {
		e.flows[i].prepare(e, i, size)
	}
}

// slots says how many places messages of n bytes go through, and how far they are
// apart: those of a latency test have one.
func (e *end) slots(n int) (count, stride uint64) {
	if e.cfg.Test.Latency {
		return 1, 0
	}
	return e.at.slots(n)
}

// supply posts the first receives for messages of a size: as many as are missing, for those
// that an earlier size has left are still there.
func (e *end) supply() error {
	for i := range e.flows {
		for e.flows[i].standing < e.cfg.share() {
			if err := e.flows[i].supply(); err != nil {
				return fmt.Errorf("post receives: %w", err)
			}
		}
	}
	return nil
}

// await returns completions, which are the first of wcs, as soon as there are some.
// It returns 0 now and then when there are none, for the caller to look at the time.
// With an error, that one of them failed for example, none of them counts.
func (e *end) await(ctx context.Context) (int, error) {
	if e.cfg.Events {
		n, err := e.cq.Wait(ctx, e.wcs[:])
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if n, err = e.check(n, err); n > 0 || err != nil {
			return n, err
		}
		return 0, e.alive(ctx) // there were strays alone, and there may always be some
	}
	for e.pollOn() {
		n, err := e.cq.Poll(e.wcs[:])
		if n, err = e.check(n, err); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, e.alive(ctx)
}

// pollsInARow is how often to poll before the context and the device are asked,
// which would cost more than the poll.
const pollsInARow = 256

// pollOn counts a poll, and reports whether it may come before those are asked. Polls that
// bring something count, too: a stream that never pauses can be interrupted.
func (e *end) pollOn() bool {
	e.polls++
	return e.polls%pollsInARow != 0
}

// alive tells why there is nothing more to wait for.
func (e *end) alive(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return e.dev.Err()
}

// check finds a failed completion among the first n, or a message of another length than
// all have. It takes out strays, and returns how many are left, which are the first.
func (e *end) check(n int, err error) (int, error) {
	if err != nil {
		return n, err
	}
	kept := 0
	for i := range e.wcs[:n] {
		wc := &e.wcs[i]
		if err := wc.Err(); err != nil {
			return n, err
		}
		if wc.WRID&wridRecv != 0 {
			e.flows[wridQP(wc.WRID)].standing--
		}
		switch {
		case wc.WRID&wridRecv == 0:
		case wc.Opcode != roce.WCRecv:
			return n, fmt.Errorf("a receive ended with %s: start both ends with the same test",
				wc.Opcode)
		case e.stray(wc):
			e.strays++
			if err := e.flows[wridQP(wc.WRID)].supplyAgain(); err != nil {
				return n, fmt.Errorf("post receives: %w", err)
			}
			continue
		case wc.ByteLen != e.length:
			return n, fmt.Errorf("a message has %d bytes, not %d: start both ends with the same -s",
				int(wc.ByteLen)-e.cfg.header(), int(e.length)-e.cfg.header())
		}
		if kept != i {
			e.wcs[kept] = *wc
		}
		kept++
	}
	return kept, nil
}

// empty takes off the completion queue what is there, of which nothing counts any more.
func (e *end) empty() error {
	// Those that are there now: what is posted again in place of strays has no end.
	for left, n := e.cq.Depth(), 1; left > 0 && n > 0; left -= n {
		var err error
		n, err = e.cq.Poll(e.wcs[:])
		if _, err = e.check(n, err); err != nil {
			return err
		}
	}
	return nil
}

// cause is why a run failed with err: work that failed here, or a request that was
// refused here, tells more than that the peer has gone.
func (e *end) cause(err error) error {
	if errors.Is(err, roce.ErrFailed) {
		return err
	}
	if failed := e.empty(); failed != nil {
		return fmt.Errorf("%w; then %w", failed, err)
	}
	if refused := e.refused(); refused != nil {
		return fmt.Errorf("%w; then %w", refused, err)
	}
	return err
}

// refused says that a request of the peer was refused, if one was.
func (e *end) refused() error {
	for i := range e.flows {
		if qp := e.flows[i].qp; qp.State() == roce.StateErr {
			return fmt.Errorf("QP 0x%06x refused a request of the peer", qp.QPN())
		}
	}
	return nil
}

// close destroys everything.
func (e *end) close() {
	e.closeQPs()
	e.deregister()
}

// closeQPs destroys the queue pairs: then nobody changes the memory any more.
func (e *end) closeQPs() {
	for i := range e.flows {
		if e.flows[i].qp != nil {
			e.flows[i].qp.Close()
		}
	}
}
