package roce_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// Sizes and numbers of a stand.
const (
	standArea  = 4096
	standGuard = 256
	standDepth = 16
	standReads = 4
	standPool  = 24
	standSRQ   = 0x5a0
	standQKey  = 0x11111111
	canary     = 0xc5
)

// The areas of a stand's memory, each a region between bytes that nothing may
// touch.
const (
	areaOpen     = iota // all rights
	areaReadOnly        // the peer may read it
	areaLocal           // only the owner may write it
	areaForeign         // all rights, in another protection domain
	areaRevoke          // all rights, and its key can be invalidated

	areaCount
)

const everyRight = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic |
	mem.FlushGlobal

var areaRights = [areaCount]mem.Access{
	areaOpen: everyRight, areaReadOnly: mem.RemoteRead, areaLocal: mem.LocalWrite,
	areaForeign: everyRight, areaRevoke: everyRight | mem.Invalidatable,
}

// A stand is one queue pair of any kind with all that a peer may reach for. The
// test is the peer, and the wire. Every step counts completions; see check.
type stand struct {
	tb    testing.TB
	kind  kind
	start roce.State
	qp    *roce.QP

	send, recv *roce.CQ
	keys       *mem.Keys
	own, other *mem.Domain
	count      counter.Set
	pool       *roce.EarlyPool
	srq        *roce.SRQ
	ah         *roce.AH
	events     []roce.Event

	bytes []byte
	areas [areaCount]*mem.Region

	path   wire.Template // of packets to the QP
	frame  []byte
	packet wire.Packet
	now    roce.Time

	// Work requests have the numbers 0, 1, 2 in the order in which they were
	// posted, and must complete so.
	sendPosted, sendDone, recvPosted, recvDone uint64
	statuses                                   map[roce.Status]int
}

// newStand returns a stand with a QP in a state, and with work in its queues
// where the state allows it.
func newStand(tb testing.TB, k kind, state roce.State) *stand {
	tb.Helper()
	s := bareStand(tb, k)
	s.start = state
	s.moveUp(min(state, roce.StateRTS))
	if state != roce.StateReset {
		s.postReceives(4)
	}
	if state < roce.StateRTS {
		return s
	}
	if state != roce.StateSQE {
		s.postWork()
		s.sendAll()
	}
	switch state {
	case roce.StateSQD, roce.StateErr:
		must(tb, s.qp.Modify(s.now, &roce.Attr{State: state}, roce.AttrState))
	case roce.StateSQE:
		bad := s.request(roce.OpSend, areaOpen, 0, 64)
		bad.SGList[0].LKey = 0
		s.post(&bad)
		s.sendAll()
	}
	if got := s.qp.State(); got != state {
		tb.Fatalf("%s is in %s, want %s", k.name, got, state)
	}
	s.check()
	return s
}

// bareStand returns a stand whose QP is in RESET.
func bareStand(tb testing.TB, k kind) *stand {
	tb.Helper()
	s := &stand{
		tb: tb, kind: k, keys: mem.NewKeys(rand.NewPCG(3, 4)), own: new(mem.Domain),
		other: new(mem.Domain), pool: roce.NewEarlyPool(standPool, 512),
		frame: make([]byte, 8192), statuses: map[roce.Status]int{},
		bytes: bytes.Repeat([]byte{canary}, areaCount*(standArea+standGuard)+standGuard),
	}
	for i := range s.areas {
		domain := s.own
		if i == areaForeign {
			domain = s.other
		}
		var err error
		s.areas[i], err = s.keys.RegisterAt(domain, s.area(i), uint64(i+1)<<32, areaRights[i])
		must(tb, err)
	}
	var err error
	s.send, err = roce.NewCQ(4*standDepth, nil)
	must(tb, err)
	s.recv, err = roce.NewCQ(4*standDepth, nil)
	must(tb, err)
	must(tb, s.path.Init(pathTo((kind{far: k.far}).qpn(), wire.FramingV2IPv4)))
	s.ah, err = roce.NewAH(s.own, pathTo(k.peer(), wire.FramingV2IPv4))
	must(tb, err)
	c := roce.QPConfig{
		Type: k.typ, Domain: s.own, SendCQ: s.send, RecvCQ: s.recv,
		MaxSendWR: standDepth, MaxRecvWR: standDepth, MaxSendSGE: 4, MaxRecvSGE: 4,
		MaxInline: 64, SignalAll: true, Counters: &s.count,
		Common:  &roce.Common{Keys: s.keys, EarlyPool: s.pool, PKeys: roce.DefaultPKeys()},
		OnEvent: func(e roce.Event) { s.events = append(s.events, e) },
	}
	s.share(&c)
	s.qp, err = roce.NewQP(k.qpn(), c)
	must(tb, err)
	return s
}

// share makes the shared receive queue of a kind that has one.
func (s *stand) share(c *roce.QPConfig) {
	s.tb.Helper()
	if !s.kind.srq {
		return
	}
	var err error
	s.srq, err = roce.NewSRQ(standSRQ, roce.SRQConfig{Domain: s.own, MaxWR: standDepth, MaxSGE: 4})
	must(s.tb, err)
	c.MaxRecvWR = 0
	if s.kind.typ == roce.TypeXRCRecv {
		c.XRCD = roce.NewXRCD()
		must(s.tb, c.XRCD.Add(s.srq, s.recv))
		return
	}
	c.SRQ = s.srq
}

// area is the memory of an area.
func (s *stand) area(i int) []byte {
	off := standGuard + i*(standArea+standGuard)
	return s.bytes[off:][:standArea:standArea]
}

// attr are the attributes of the stand's QP.
func (s *stand) attr() roce.Attr {
	a := roce.Attr{
		Access: everyRight &^ mem.LocalWrite, Port: 1, QKey: standQKey,
		Path: pathTo(s.kind.peer(), wire.FramingV2IPv4), PathMTU: wire.MTU256,
		DestQPN: s.kind.peer(),
		RQPSN:   0x200, SQPSN: 0x100, MaxRdAtomic: standReads, MaxDestRdAtomic: standReads,
		MinRNRTimer: 12, Timeout: 8, RetryCnt: 3, RNRRetry: 3, Extensions: s.kind.ext,
	}
	if s.kind.psn != nil {
		a.RQPSN, a.SQPSN = s.kind.psn[0], s.kind.psn[1]
	}
	return a
}

// moveUp moves the QP on the way from RESET to RTS.
func (s *stand) moveUp(to roce.State) {
	s.tb.Helper()
	a := s.attr()
	for st := s.qp.State() + 1; st <= to; st++ {
		a.State = st
		must(s.tb, s.qp.Modify(s.now, &a, moveMask(s.kind, st)))
	}
}

// request is a send work request of n bytes in an area.
func (s *stand) request(op roce.Opcode, area, off, n int) roce.SendWR {
	r := s.areas[area]
	wr := roce.SendWR{
		Opcode: op, RemoteAddr: 1 << 40, RKey: 3, AH: s.ah, RemoteQPN: s.kind.peer(),
		RemoteQKey: standQKey, RemoteSRQN: standSRQ, CompareAdd: 1, Swap: 2,
		SGList: []roce.SGE{{Addr: r.Addr() + uint64(off), Length: uint32(n), LKey: r.LKey()}},
	}
	switch op {
	case roce.OpFlush:
		wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, uint32(n)
	case roce.OpLocalInv:
		wr.SGList, wr.InvalidateKey = nil, s.areas[areaRevoke].LKey()
	}
	return wr
}

// post posts a send and reports whether it was taken.
func (s *stand) post(wr *roce.SendWR) bool {
	wr.WRID = s.sendPosted
	if s.qp.PostSend(wr) != nil {
		return false
	}
	s.sendPosted++
	return true
}

// postRecv posts a receive of n bytes in an area and reports whether it was taken.
func (s *stand) postRecv(area, off, n int) bool {
	r := s.areas[area]
	wr := roce.RecvWR{WRID: s.recvPosted, SGList: []roce.SGE{
		{Addr: r.Addr() + uint64(off), Length: uint32(n), LKey: r.LKey()},
	}}
	err := s.qp.PostRecv(&wr)
	if s.srq != nil {
		err = s.srq.PostRecv(&wr)
	}
	if err != nil {
		return false
	}
	s.recvPosted++
	return true
}

func (s *stand) postReceives(n int) {
	for i := range n {
		s.postRecv(areaOpen, 512*i, 400)
	}
}

// postWork posts one request of each sort that the QP takes.
func (s *stand) postWork() {
	for i, op := range []roce.Opcode{
		roce.OpSend, roce.OpRead, roce.OpWriteImm, roce.OpFetchAdd, roce.OpAtomicWrite,
		roce.OpFlush, roce.OpSendImm,
	} {
		n := 600
		if op == roce.OpFetchAdd || op == roce.OpAtomicWrite {
			n = 8
		}
		wr := s.request(op, areaOpen, 64*i, n)
		s.post(&wr)
	}
}

// sendAll takes all that the QP sends, which must be well-formed, and returns it.
func (s *stand) sendAll() (sent []wire.Packet) {
	for range 1 << 12 {
		n := s.qp.NextPacket(s.now, s.frame)
		if n == 0 {
			s.poll()
			return sent
		}
		if s.kind.typ == roce.TypeRawPacket {
			continue
		}
		if err := roctest.Frame(s.frame[:n]); err != nil {
			s.tb.Helper()
			s.tb.Fatal(err)
		}
		var p wire.Packet
		p.Decode(bytes.Clone(s.frame[:n]), nil)
		sent = append(sent, p)
	}
	s.tb.Helper()
	s.tb.Fatal("the QP does not stop to send")
	return nil
}

// give hands the QP bytes from the BTH on, without ICRC, as a packet with a right
// one. What is not a multiple of four is cut off; less than a BTH is nothing.
func (s *stand) give(transport []byte) {
	n := len(transport) &^ 3
	if n < wire.BTHLen {
		return
	}
	copy(s.frame[s.path.Len():], transport[:n])
	s.giveFrame(s.frame[:s.path.Seal(s.frame, n, 1)])
}

// giveFrame hands the QP a frame as it is.
func (s *stand) giveFrame(frame []byte) wire.Reason {
	r := s.packet.Decode(frame, nil)
	if r == wire.OK {
		s.qp.HandlePacket(s.now, &s.packet)
	}
	if s.kind.typ == roce.TypeRawPacket {
		must(s.tb, s.qp.HandleFrame(s.now, frame, nil))
	}
	return r
}

// givePacket hands the QP a packet.
func (s *stand) givePacket(p roctest.Packet) { s.giveFrame(p.Frame(&s.path)) }

// tick lets the next timer expire and reports whether there was one.
func (s *stand) tick() bool {
	at, ok := s.qp.NextDeadline()
	if ok {
		s.now = max(s.now, at)
		s.qp.HandleDeadline(s.now)
	}
	return ok
}

// poll takes the completions: those of each queue must come once, in order.
func (s *stand) poll() {
	for _, q := range []struct {
		cq   *roce.CQ
		done *uint64
		what string
	}{{s.send, &s.sendDone, "send"}, {s.recv, &s.recvDone, "receive"}} {
		for _, wc := range drain(s.tb, q.cq) {
			if wc.WRID != *q.done || wc.QPN != s.qp.Num() {
				s.tb.Helper()
				s.tb.Fatalf("%s: %s completion %+v, want request %d", s.kind.name, q.what, wc,
					*q.done)
			}
			*q.done++
			s.statuses[wc.Status]++
		}
	}
}

// modify changes attributes. What RESET makes vanish is no longer awaited.
func (s *stand) modify(a *roce.Attr, mask roce.AttrMask) error {
	s.poll()
	err := s.qp.Modify(s.now, a, mask)
	if err == nil && s.qp.State() == roce.StateReset {
		s.sendDone = s.sendPosted
		s.recvDone = s.recvPosted
		if s.srq != nil {
			_, posted := s.srq.Query()
			s.recvDone -= uint64(posted)
		}
	}
	return err
}

// target is a packet of an opcode that could be meant for the QP: from the right
// peer, with the PSN that is expected or awaited, a right key and a legal length.
func (s *stand) target(op wire.Opcode) roctest.Packet {
	v, spec := s.qp.Snapshot(), op.Spec()
	open := s.areas[areaOpen]
	p := roctest.Packet{
		Opcode: op, DestQP: s.qp.Num(), PSN: v.ExpectedPSN, AckReq: spec.Is(wire.ClassRequest),
		AETH: wire.AETH{Syndrome: wire.ACKNoCredits},
		RETH: wire.RETH{VA: open.Addr(), RKey: open.RKey()}, IETH: s.areas[areaRevoke].RKey(),
		Atomic: wire.AtomicETH{VA: open.Addr() + 8, RKey: open.RKey(), SwapAdd: 1},
	}
	if spec.Is(wire.ClassResponse) {
		p.PSN = v.UnackedPSN
	}
	switch spec.Payload {
	case wire.PayloadNone:
	case wire.PayloadFull:
		p.Payload = make([]byte, 256)
	case wire.Payload8, wire.Payload16, wire.Payload32:
		p.Payload = make([]byte, map[wire.PayloadRule]int{
			wire.Payload8: 8, wire.Payload16: 16, wire.Payload32: 32,
		}[spec.Payload])
	default:
		p.Payload = []byte("data")
	}
	p.RETH.DMALen = uint32(len(p.Payload))
	if spec.Is(wire.ClassFirst) && !spec.Is(wire.ClassLast) {
		p.RETH.DMALen += 4
	}
	if op&0x1f == wire.RCReadRequest || op == wire.RCFlush {
		p.RETH.DMALen = 4
	}
	return p
}

// frameOf is the frame of target.
func (s *stand) frameOf(op wire.Opcode) []byte {
	p := s.target(op)
	return s.service(p.Frame(&s.path), op.Spec())
}
