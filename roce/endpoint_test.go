package roce_test

import (
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/cc"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// options say what a test's queue pairs are. The zero value of a field stands
// for the value in defaults.
type options struct {
	PKeys    roce.PKeyTable // nil for the default partition
	Framing  wire.Framing
	MTU      wire.MTU
	SQPSN    wire.PSN // of the first endpoint
	RQPSN    wire.PSN
	Timeout  uint8
	MinRNR   uint8
	MaxRd    uint8
	RetryCnt uint8
	RNRRetry uint8
	Depth    int
	SGE      int
	CQDepth  int
	Window   int
	Memory   int

	Type       roce.QPType
	Ext        roce.Extensions
	PathBytes  uint16     // of a full packet, 0 for MTU
	Pool       int        // packets that the early pool takes
	Inline     int        // bytes of inline data
	InlineRecv int        // bytes of inline receive
	Rights     mem.Access // of the region, and REMOTE_* and FLUSH_* of the QP
	SRQ        *roce.SRQ
	Sync       mem.Sync // makes the region a persistent one
	Beside     bool     // and is called when the test says so
	Paged      bool     // the region has pages that may be absent
	Link       wire.MTU // of the port
	Congestion *cc.Config
	Tolerance  uint8 // reorder window for a peer without extensions

	Unsignaled bool                        // SignalAll is off
	Attr       func(*roce.Attr)            // last changes to the attributes
	Access     func(mem.Access) mem.Access // changes to the rights of the QP
}

var defaults = options{
	Framing: wire.FramingV2IPv4, MTU: wire.MTU256, SQPSN: 0x100, RQPSN: 0x200, Timeout: 14,
	MinRNR: 12, MaxRd: 4, RetryCnt: 3, RNRRetry: 3, Depth: 64, SGE: 4, CQDepth: 256,
	Memory: 1 << 16, Type: roce.TypeRC, Rights: allRights,
}

// or returns v, or d when v is zero.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

func (o options) filled() options {
	d := defaults
	o.Framing, o.MTU = or(o.Framing, d.Framing), or(o.MTU, d.MTU)
	o.SQPSN, o.RQPSN = or(o.SQPSN, d.SQPSN), or(o.RQPSN, d.RQPSN)
	o.Timeout, o.MinRNR = or(o.Timeout, d.Timeout), or(o.MinRNR, d.MinRNR)
	o.MaxRd = or(o.MaxRd, d.MaxRd)
	o.RetryCnt, o.RNRRetry = or(o.RetryCnt, d.RetryCnt), or(o.RNRRetry, d.RNRRetry)
	o.Depth, o.SGE, o.CQDepth = or(o.Depth, d.Depth), or(o.SGE, d.SGE), or(o.CQDepth, d.CQDepth)
	o.Memory, o.Type, o.Rights = or(o.Memory, d.Memory), or(o.Type, d.Type), or(o.Rights, d.Rights)
	if o.Ext != 0 {
		o.Pool = or(o.Pool, 512)
	}
	return o
}

// The two ends of every connection in these tests.
const (
	qpnA = 0x000111
	qpnB = 0x7ffff2
)

// An endpoint is a queue pair with all that it needs: a CQ for each direction,
// keys of its own and one registered region.
type endpoint struct {
	tb         testing.TB
	qp         *roce.QP
	send, recv *roce.CQ
	keys       *mem.Keys
	domain     *mem.Domain
	count      *counter.Set
	region     *mem.Region
	buf        []byte
	pool       *roce.EarlyPool
	syncs      syncBench
	pages      *fakePager
	srq        *roce.SRQ // where receives are posted, nil for the QP's own queue
	xrcd       *roce.XRCD
	events     []roce.Event
	told       func(what string) // of each asynchronous event and each event of a CQ, or nil
}

const allRights = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead

// remoteRights are the rights a QP grants unless a test says else.
const remoteRights = mem.RemoteWrite | mem.RemoteRead

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper() // only now: it costs more than most of what is checked
		tb.Fatal(err)
	}
}

// newEndpoint returns an endpoint whose QP is in RESET.
func newEndpoint(tb testing.TB, num uint32, o options) *endpoint {
	tb.Helper()
	e := &endpoint{
		tb: tb, keys: mem.NewKeys(rand.NewPCG(uint64(num), 1)), domain: new(mem.Domain),
		count: new(counter.Set), buf: make([]byte, o.Memory),
		pool: roce.NewEarlyPool(o.Pool, 4096+128),
	}
	if o.Beside {
		e.keys.SetSyncer(&e.syncs)
	}
	if e.srq = o.SRQ; o.SRQ != nil {
		e.domain = o.SRQ.Domain()
	}
	var err error
	e.send, err = roce.NewCQ(o.CQDepth, func() { e.tell("completion of a send") })
	must(tb, err)
	e.recv, err = roce.NewCQ(o.CQDepth, func() { e.tell("completion of a receive") })
	must(tb, err)
	if o.Type == roce.TypeXRCRecv {
		e.xrcd = roce.NewXRCD()
		e.srq, err = roce.NewSRQ(srqNum, roce.SRQConfig{
			Domain: e.domain, MaxWR: o.Depth, MaxSGE: o.SGE,
		})
		must(tb, err)
		must(tb, e.xrcd.Add(e.srq, e.recv))
	}
	e.qp, err = roce.NewQP(num, e.config(o))
	must(tb, err)
	m := mem.Memory{Bytes: e.buf, Addr: uint64(num) << 32, Sync: o.Sync}
	if o.Paged {
		e.pages = newFakePager(e.buf, m.Addr)
		m.Bytes, m.Pager, m.Start, m.Length = nil, e.pages, m.Addr, uint64(len(e.buf))
		o.Rights |= mem.OnDemand
	}
	e.region, err = e.keys.RegisterMemory(e.domain, m, o.Rights)
	must(tb, err)
	return e
}

// srqNum is the number of the SRQ in the XRC domain of an XRC_RECV.
const srqNum = 0x00abcd

// tell calls told, if it is set.
func (e *endpoint) tell(what string) {
	if e.told != nil {
		e.told(what)
	}
}

// postRecv posts a receive to the SRQ or to the QP's own queue.
func (e *endpoint) postRecv(wr *roce.RecvWR) error {
	if e.srq != nil {
		return e.srq.PostRecv(wr)
	}
	return e.qp.PostRecv(wr)
}

func (e *endpoint) config(o options) roce.QPConfig {
	c := roce.QPConfig{
		Type: o.Type, Domain: e.domain, SendCQ: e.send, RecvCQ: e.recv,
		MaxSendWR: o.Depth, MaxRecvWR: o.Depth, MaxSendSGE: o.SGE, MaxRecvSGE: o.SGE,
		SignalAll: !o.Unsignaled, Window: o.Window, Counters: e.count, MaxInline: o.Inline,
		MaxInlineRecv: o.InlineRecv,
		SRQ:           o.SRQ, XRCD: e.xrcd, MTU: o.Link,
		Common:     &roce.Common{Keys: e.keys, EarlyPool: e.pool, PKeys: roce.DefaultPKeys()},
		Congestion: o.Congestion, ReorderWindow: o.Tolerance,
		OnEvent: func(ev roce.Event) {
			e.events = append(e.events, ev)
			e.tell(ev.String())
		},
	}
	if o.PKeys != nil {
		c.Common.PKeys = o.PKeys
	}
	if o.SRQ != nil {
		c.MaxRecvWR = 0
	}
	return c
}

// The masks of the three moves from RESET to RTS.
const (
	maskInit = roce.AttrState | roce.AttrPKeyIndex | roce.AttrPort | roce.AttrAccess
	maskRTR  = roce.AttrState | roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN |
		roce.AttrRQPSN | roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer
	maskRTS = roce.AttrState | roce.AttrTimeout | roce.AttrRetryCnt | roce.AttrRNRRetry |
		roce.AttrSQPSN | roce.AttrMaxRdAtomic
)

// pathTo is the path from one of the two ends to the other.
func pathTo(num uint32, f wire.Framing) wire.Path {
	p := wire.Path{
		Framing: f, SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
		Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}), Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, 2}),
		HopLimit: 64,
	}
	if f != wire.FramingV2IPv4 {
		p.Src, p.Dst = wire.GID{0xfd, 15: 1}, wire.GID{0xfd, 15: 2}
	}
	if num == qpnA {
		p.Src, p.Dst, p.SrcMAC, p.DstMAC = p.Dst, p.Src, p.DstMAC, p.SrcMAC
	}
	return p
}

// attr returns the attributes that connect the endpoint to QP peer.
func (o options) attr(peer uint32) roce.Attr {
	a := roce.Attr{
		Access: remoteRights | o.Rights&^(mem.LocalWrite|mem.Invalidatable), Port: 1,
		Path: pathTo(peer, o.Framing), PathMTU: o.MTU, DestQPN: peer,
		RQPSN: o.RQPSN, SQPSN: o.SQPSN, MaxRdAtomic: o.MaxRd, MaxDestRdAtomic: o.MaxRd,
		MinRNRTimer: o.MinRNR, Timeout: o.Timeout,
		RetryCnt: o.RetryCnt, RNRRetry: o.RNRRetry, QKey: testQKey, Extensions: o.Ext,
		PathBytes: o.PathBytes,
	}
	if o.Access != nil {
		a.Access = o.Access(a.Access)
	}
	if o.Attr != nil {
		o.Attr(&a)
	}
	return a
}

// testQKey is the Q_Key of the datagram QPs.
const testQKey = 0x11223344

// masks are those of the three moves for a type of QP.
func (o options) masks() (toInit, toRTR, toRTS roce.AttrMask) {
	const peer = roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN | roce.AttrRQPSN
	const state, psn = roce.AttrState, roce.AttrState | roce.AttrSQPSN
	switch o.Type {
	case roce.TypeUC:
		return maskInit, state | peer, psn
	case roce.TypeXRCSend:
		return maskInit, state | peer, maskRTS
	case roce.TypeXRCRecv:
		return maskInit, maskRTR, psn | roce.AttrTimeout
	case roce.TypeUD:
		return state | roce.AttrPKeyIndex | roce.AttrPort | roce.AttrQKey, state, psn
	case roce.TypeGSI:
		return state | roce.AttrPKeyIndex | roce.AttrQKey, state, psn
	case roce.TypeRawPacket:
		return state | roce.AttrPort, state, state
	}
	toRTR = maskRTR
	if o.Ext != 0 {
		toRTR |= roce.AttrExtensions
	}
	if o.PathBytes != 0 {
		toRTR |= roce.AttrPathBytes
	}
	return maskInit, toRTR, maskRTS
}

// connect moves the QP to a state on the way from RESET to RTS.
func (e *endpoint) connect(peer uint32, o options, to roce.State) {
	e.tb.Helper()
	a := o.attr(peer)
	toInit, toRTR, toRTS := o.masks()
	for _, m := range []struct {
		state roce.State
		mask  roce.AttrMask
	}{{roce.StateInit, toInit}, {roce.StateRTR, toRTR}, {roce.StateRTS, toRTS}} {
		if m.state > to {
			return
		}
		a.State = m.state
		must(e.tb, e.qp.Modify(0, &a, m.mask))
	}
}

// sge names n bytes of the endpoint's region.
func (e *endpoint) sge(off, n int) []roce.SGE {
	addr := e.region.Addr() + uint64(off)
	return []roce.SGE{{Addr: addr, Length: uint32(n), LKey: e.region.LKey()}}
}

// fill writes a pattern that differs at every offset and for every seed.
func fill(b []byte, seed uint64) {
	src := rand.NewPCG(seed, 7)
	for i := range b {
		b[i] = byte(src.Uint64())
	}
}

// drain polls everything from a CQ.
func drain(tb testing.TB, cq *roce.CQ) []roce.Completion {
	var all []roce.Completion
	var some [16]roce.Completion
	for {
		n, err := cq.Poll(some[:])
		if err != nil {
			tb.Helper()
			tb.Fatalf("poll: %v", err)
		}
		if n == 0 {
			return all
		}
		all = append(all, some[:n]...)
	}
}
