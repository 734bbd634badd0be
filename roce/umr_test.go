package roce_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

const layoutRights = mem.LocalWrite | mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic

// mirror is the endpoint's region as a source of layouts.
func (e *endpoint) mirror() *roctest.Mirror {
	m := &roctest.Mirror{Region: e.region, Bytes: make([]*byte, len(e.buf))}
	for i := range e.buf {
		m.Bytes[i] = &e.buf[i]
	}
	return m
}

// indirect makes a key that has no layout yet.
func (e *endpoint) indirect(entries int) *mem.Region {
	e.tb.Helper()
	r, err := e.keys.RegisterIndirect(e.domain, entries)
	must(e.tb, err)
	return r
}

// laid makes a key with a layout, by the call.
func (e *endpoint) laid(l *mem.Layout, access mem.Access) *mem.Region {
	e.tb.Helper()
	r := e.indirect(l.Entries())
	what := mem.ChangeTranslation | mem.ChangeAccess
	must(e.tb, e.keys.ReregisterLayout(r, what, l, nil, access))
	return r
}

// umr is a work request that gives a key a layout.
func umr(r *mem.Region, l *mem.Layout, access mem.Access) *roce.SendWR {
	return &roce.SendWR{
		Opcode: roce.OpUMR, UMR: mem.UMR{Key: r.LKey(), Layout: l, Access: access},
	}
}

// column is every stride-th run of n bytes of the endpoint's region.
func (e *endpoint) column(at, n, stride, count int) *mem.Layout {
	e.tb.Helper()
	l, err := mem.NewInterleaved([]uint64{uint64(count)}, []mem.Block{{
		LKey: e.region.LKey(), Addr: e.region.Addr() + uint64(at), Bytes: uint64(n),
		Strides: []uint64{uint64(stride)},
	}})
	must(e.tb, err)
	return l
}

func whole(r *mem.Region) []roce.SGE {
	return []roce.SGE{{Addr: r.Addr(), Length: uint32(r.Len()), LKey: r.LKey()}}
}

// TestUMRHoldsForNextRequest posts UMRs and requests that use their keys at
// once, all before anything runs: each request goes by the layout before it.
func TestUMRHoldsForNextRequest(t *testing.T) {
	p := newRCPair(t, options{Rights: allRights | mem.RemoteAtomic, Unsignaled: true})
	a, b := p.ends[0], p.ends[1]
	fill(a.buf, 1)
	fill(b.buf, 2)
	clear(b.buf[1<<15:])
	r := a.indirect(2)
	want := bytes.Clone(b.buf)
	remote := b.region.Addr() + 1<<15
	const rounds, n = 10, 700
	for i := range rounds {
		must(t, a.qp.PostSend(umr(r, a.column(i, 7, 13+i, n/7), mem.RemoteRead)))
		wr := roce.SendWR{
			Opcode: roce.OpWrite, SGList: []roce.SGE{{Length: n, LKey: r.LKey()}},
			RemoteAddr: remote + uint64(i*n), RKey: b.region.RKey(),
		}
		if i == rounds-1 {
			wr.Flags = roce.SendSignaled
		}
		must(t, a.qp.PostSend(&wr))
		for k := range n {
			want[1<<15+i*n+k] = a.buf[i+k/7*(13+i)+k%7]
		}
	}
	// A READ into the last layout needs LOCAL_WRITE, which the next one has.
	must(t, a.qp.PostSend(umr(r, a.column(0, 1, 2, n), mem.LocalWrite)))
	must(t, a.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpRead, Flags: roce.SendSignaled,
		SGList: []roce.SGE{{Length: n, LKey: r.LKey()}}, RemoteAddr: b.region.Addr(),
		RKey: b.region.RKey(),
	}))
	p.run()
	if got := drain(t, a.send); len(got) != 2 || got[1].Status != roce.StatusSuccess {
		t.Fatalf("%+v", got) // the UMRs asked for no completion
	}
	if !bytes.Equal(b.buf, want) {
		t.Error("what was written is not what the layouts say")
	}
	for k := range n {
		if a.buf[2*k] != b.buf[k] {
			t.Fatalf("byte %d of what was read is %d, want %d", k, a.buf[2*k], b.buf[k])
		}
	}
}

// TestUMRCompletion: a UMR is reported as DRIVER1, in its turn.
func TestUMRCompletion(t *testing.T) {
	p := newRCPair(t, options{})
	a, b := p.ends[0], p.ends[1]
	must(t, a.qp.PostSend(&roce.SendWR{
		WRID: 1, Opcode: roce.OpWrite, SGList: a.sge(0, 600), RemoteAddr: b.region.Addr(),
		RKey: b.region.RKey(),
	}))
	wr := umr(a.indirect(1), a.column(0, 1, 2, 3), 0)
	wr.WRID = 2
	must(t, a.qp.PostSend(wr))
	p.run()
	sameCompletions(t, drain(t, a.send), []roce.Completion{
		{WRID: 1, Opcode: roce.WCWrite, QPN: qpnA},
		{WRID: 2, Opcode: roce.WCDriver1, QPN: qpnA},
	})
	if s := roce.WCDriver1.String(); s != "DRIVER1" || roce.WCDriver1 != 135 || roce.OpUMR != 11 {
		t.Errorf("%s is %d, of opcode %d", s, roce.WCDriver1, roce.OpUMR)
	}
}

// TestUMRFails: a UMR that cannot be executed ends the QP with a status of the
// bind class and leaves the key invalid; another QP can give it a layout again.
func TestUMRFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(e *endpoint, wr *roce.SendWR)
		valid bool // the key, after that
	}{
		{"too many entries", func(e *endpoint, wr *roce.SendWR) {
			p := mem.Piece{LKey: e.region.LKey(), Addr: e.region.Addr(), Length: 1}
			l, err := mem.NewList([]mem.Piece{p, p})
			must(e.tb, err)
			wr.UMR.Layout = l
		}, false},
		{"out of range", func(e *endpoint, wr *roce.SendWR) {
			wr.UMR.Layout = e.column(1<<16-1, 2, 2, 1)
		}, false},
		{"overlap", func(e *endpoint, wr *roce.SendWR) {
			wr.UMR.Layout = e.column(0, 2, 1, 2)
		}, false},
		{"access", func(_ *endpoint, wr *roce.SendWR) { wr.UMR.Access = mem.OnDemand }, false},
		{"no such key", func(_ *endpoint, wr *roce.SendWR) { wr.UMR.Key ^= 1 }, true},
		{"a region", func(e *endpoint, wr *roce.SendWR) { wr.UMR.Key = e.region.LKey() }, true},
	} {
		p := newRCPair(t, options{})
		a := p.ends[0]
		r := a.laid(a.column(0, 1, 2, 3), layoutRights)
		wr := umr(r, a.column(0, 1, 2, 4), layoutRights)
		wr.WRID = 7
		tt.spoil(a, wr)
		must(t, a.qp.PostSend(wr))
		must(t, a.qp.PostSend(&roce.SendWR{WRID: 8, Opcode: roce.OpWrite}))
		p.run()
		got := drain(t, a.send)
		if len(got) != 2 || got[0].Status != roce.StatusMWBindErr || got[0].WRID != 7 ||
			got[1].Status != roce.StatusWRFlushErr || a.qp.State() != roce.StateErr {
			t.Errorf("%s: %+v in %s", tt.name, got, a.qp.State())
		}
		if r.Valid() != tt.valid || !a.region.Valid() {
			t.Errorf("%s: the key is valid: %t", tt.name, r.Valid())
		}
	}
}

// TestUMRPostRefuses what cannot be a UMR whatever the keys are.
func TestUMRPostRefuses(t *testing.T) {
	p := newRCPair(t, options{Inline: 64})
	a := p.ends[0]
	r := a.indirect(1)
	for name, spoil := range map[string]func(wr *roce.SendWR){
		"no layout": func(wr *roce.SendWR) { wr.UMR.Layout = nil },
		"an SGE":    func(wr *roce.SendWR) { wr.SGList = a.sge(0, 1) },
		"inline":    func(wr *roce.SendWR) { wr.Flags, wr.Inline = roce.SendInline, []byte("x") },
		"new key":   func(wr *roce.SendWR) { wr.UMR.NewKey = wr.UMR.Key ^ 0x100 },
	} {
		wr := umr(r, a.column(0, 1, 2, 3), 0)
		spoil(wr)
		if err := a.qp.PostSend(wr); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	u := newRCPair(t, options{Type: roce.TypeUC}).ends[0]
	if err := u.qp.PostSend(umr(r, a.column(0, 1, 2, 3), 0)); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("on UC: %v", err)
	}
}

// TestUMRLocalInvalidate takes a layout away, under traffic that uses it before,
// and a UMR gives the key another one under other low bits.
func TestUMRLocalInvalidate(t *testing.T) {
	p := newRCPair(t, options{})
	a, b := p.ends[0], p.ends[1]
	fill(a.buf, 3)
	r := a.laid(a.column(0, 8, 16, 64), 0)
	write := roce.SendWR{
		Opcode: roce.OpWrite, SGList: whole(r), RemoteAddr: b.region.Addr(), RKey: b.region.RKey(),
	}
	must(t, a.qp.PostSend(&write))
	must(t, a.qp.PostSend(&roce.SendWR{Opcode: roce.OpLocalInv, InvalidateKey: r.LKey()}))
	again := umr(r, a.column(3, 8, 16, 64), 0)
	again.Opcode = roce.OpRegMR // the kernel's name
	again.UMR.NewKey = r.LKey() ^ 0x55
	must(t, a.qp.PostSend(again))
	write.SGList[0].LKey ^= 0x55
	write.RemoteAddr += 512
	must(t, a.qp.PostSend(&write))
	p.run()
	for i, wc := range drain(t, a.send) {
		if wc.Status != roce.StatusSuccess {
			t.Errorf("request %d: %s", i, wc.Status)
		}
	}
	for i := range 512 {
		if at := i/8*16 + i%8; b.buf[i] != a.buf[at] || b.buf[512+i] != a.buf[at+3] {
			t.Fatalf("byte %d", i)
		}
	}
}

// TestLayoutAsRemoteKey: WRITE scatters by the pattern of the remote key, READ
// gathers, and atomics work on words that are one piece; others are invalid requests.
func TestLayoutAsRemoteKey(t *testing.T) {
	for _, tt := range []struct {
		off uint64
		at  int // in the region; -1: refused
	}{{0, 0}, {24, 104}, {8, -1}} {
		p := newRCPair(t, options{Rights: allRights | mem.RemoteAtomic})
		a, b := p.ends[0], p.ends[1]
		// Elements of 12 bytes, so that the second begins in the middle of a word.
		r := b.laid(b.column(0, 12, 52, 4), layoutRights)
		fill(a.buf, 1)
		fill(b.buf, 2)
		want := bytes.Clone(b.buf)
		for i := range 48 {
			want[i/12*52+i%12] = a.buf[i]
		}
		must(t, a.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpWrite, SGList: a.sge(0, 48), RKey: r.RKey(),
		}))
		must(t, a.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpRead, SGList: a.sge(100, 40), RemoteAddr: 8, RKey: r.RKey(),
		}))
		must(t, a.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpFetchAdd, SGList: a.sge(200, 8), RemoteAddr: tt.off, RKey: r.RKey(),
			CompareAdd: 5,
		}))
		p.run()
		got := drain(t, a.send)
		if !bytes.Equal(a.buf[100:140], a.buf[8:48]) {
			t.Error("what was read is not what was written")
		}
		status := roce.StatusSuccess
		if tt.at < 0 {
			status = roce.StatusRemInvReqErr
		} else {
			word := want[tt.at:]
			binary.NativeEndian.PutUint64(word, binary.NativeEndian.Uint64(word)+5)
		}
		if got[2].Status != status || !bytes.Equal(b.buf, want) {
			t.Errorf("atomic at %d: %s, want %s", tt.off, got[2].Status, status)
		}
	}
}

// TestUMRUnderWay: a WRITE into a key that gets another layout while it is under
// way never lands half in each.
func TestUMRUnderWay(t *testing.T) {
	p := newRCPair(t, options{})
	a, b := p.ends[0], p.ends[1]
	fill(a.buf, 1)
	r := b.laid(b.column(0, 1, 2, 2048), layoutRights)
	must(t, a.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpWrite, SGList: a.sge(0, 2048), RKey: r.RKey(),
	}))
	for range 3 { // packets of eight
		p.step()
	}
	if b.buf[2*3*256-2] != a.buf[3*256-1] || b.buf[2*3*256] != 0 {
		t.Fatal("not under way")
	}
	must(t, b.keys.ReregisterLayout(r, mem.ChangeTranslation, b.column(1, 1, 2, 2048), nil, 0))
	p.run()
	if got := drain(t, a.send); got[0].Status != roce.StatusRemAccessErr {
		t.Errorf("%+v", got)
	}
	for i := 1; i < len(b.buf); i += 2 {
		if b.buf[i] != 0 {
			t.Fatalf("byte %d is of the second layout", i)
		}
	}
}

// TestLayoutTraffic moves data through random layouts at both ends: as the pieces of
// sends, of receives on the QP and on an SRQ, of reads and writes, and as the remote
// key, over packets of every path MTU, some of them lost.
func TestLayoutTraffic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "choice") }
		typ := []roce.QPType{roce.TypeRC, roce.TypeXRCSend}[choose(2)]
		p := newRCPairOn(t, options{
			MTU: wire.MTU(1 + choose(5)), Memory: 1 << 12, RetryCnt: 7, Type: typ,
		}, typ == roce.TypeRC && choose(2) == 0)
		drop := choose(12)
		p.fault = func(_, nth int, _ []byte) fault { return fault{Drop: nth == drop} }
		var mirrors [2][]*roctest.Mirror
		for i, e := range p.ends {
			fill(e.buf, uint64(i))
			mirrors[i] = []*roctest.Mirror{e.mirror()}
			for range 1 + choose(6) {
				l, m := roctest.Draw(choose, mirrors[i], true)
				if m.Depth <= mem.MaxDepth {
					m.Region = e.laid(l, layoutRights)
					mirrors[i] = append(mirrors[i], m)
				}
			}
		}
		for range 3 {
			x := exchange{p: p, choose: choose}
			for i := range x.mirrors {
				x.mirrors[i] = mirrors[i][len(mirrors[i])-1-choose(min(len(mirrors[i]), 3))]
			}
			x.run(rt)
		}
	})
}

// An exchange is one message between the layouts of two ends.
type exchange struct {
	p       *pair
	choose  func(n int) int
	mirrors [2]*roctest.Mirror
}

// pieces is n bytes of the mirror of an end, from off on, as up to three SGEs.
func (x *exchange) pieces(end, off, n int) []roce.SGE {
	r := x.mirrors[end].Region
	var list []roce.SGE
	for len(list) < 2 && n > 1 && x.choose(2) == 0 {
		k := 1 + x.choose(n-1)
		list = append(list,
			roce.SGE{Addr: r.Addr() + uint64(off), Length: uint32(k), LKey: r.LKey()})
		off, n = off+k, n-k
	}
	return append(list,
		roce.SGE{Addr: r.Addr() + uint64(off), Length: uint32(n), LKey: r.LKey()})
}

// run moves some bytes and compares all memory of both ends.
func (x *exchange) run(rt *rapid.T) {
	a, b := x.p.ends[0], x.p.ends[1]
	n := 1 + x.choose(min(len(x.mirrors[0].Bytes), len(x.mirrors[1].Bytes)))
	here := x.choose(len(x.mirrors[0].Bytes) - n + 1)
	there := x.choose(len(x.mirrors[1].Bytes) - n + 1)
	op := []roce.Opcode{roce.OpSend, roce.OpWrite, roce.OpRead, roce.OpWriteImm}[x.choose(4)]
	to, at, data := 1, there, x.mirrors[0].Load(here, n)
	if op == roce.OpRead {
		to, at, data = 0, here, x.mirrors[1].Load(there, n)
	}
	wr := roce.SendWR{Opcode: op, SGList: x.pieces(0, here, n), RemoteSRQN: srqNum}
	switch op {
	case roce.OpSend:
		must(x.p.tb, b.postRecv(&roce.RecvWR{SGList: x.pieces(1, there, n)}))
	case roce.OpWriteImm:
		must(x.p.tb, b.postRecv(&roce.RecvWR{}))
		fallthrough
	default:
		wr.RKey = x.mirrors[1].Region.RKey()
		wr.RemoteAddr = x.mirrors[1].Region.Addr() + uint64(there)
	}
	before := bytes.Clone(x.p.ends[to].buf)
	must(x.p.tb, a.qp.PostSend(&wr))
	x.p.run()
	if got := drain(x.p.tb, a.send); len(got) != 1 || got[0].Status != roce.StatusSuccess {
		rt.Fatalf("%s: %+v", op, got)
	}
	drain(x.p.tb, b.recv)
	after := bytes.Clone(x.p.ends[to].buf)
	copy(x.p.ends[to].buf, before)
	x.mirrors[to].Store(at, data)
	if !bytes.Equal(after, x.p.ends[to].buf) {
		rt.Fatalf("%s of %d bytes, from %d to %d: memory is not what the layouts say", op, n, here,
			there)
	}
}

// TestLayoutTrafficAllocatesNothing: traffic through layouts allocates nothing.
func TestLayoutTrafficAllocatesNothing(t *testing.T) {
	p := newRCPair(t, options{})
	a, b := p.ends[0], p.ends[1]
	from, to := a.laid(a.column(0, 8, 24, 500), 0), b.laid(b.column(5, 4, 9, 1000), layoutRights)
	wr := roce.SendWR{Opcode: roce.OpWrite, SGList: whole(from), RKey: to.RKey()}
	var done [4]roce.Completion
	if n := testing.AllocsPerRun(50, func() {
		must(t, a.qp.PostSend(&wr))
		p.run()
		if n, err := a.send.Poll(done[:]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// TestUMRInTurns: a large layout is looked at over many turns, so that it keeps nobody else
// waiting, and what is posted behind it waits. A queue pair that ends meanwhile leaves the key as
// it was.
func TestUMRInTurns(t *testing.T) {
	const entries = 10_000
	layout := func(s *script) *mem.Layout {
		pieces := make([]mem.Piece, entries)
		for i := range pieces {
			pieces[i] = mem.Piece{
				LKey: s.region.LKey(), Addr: s.region.Addr() + uint64(i), Length: 1,
			}
		}
		l, err := mem.NewList(pieces)
		must(t, err)
		return l
	}
	s := newScript(t, options{Rights: atomicRights, MTU: wire.MTU4096})
	r := s.indirect(entries)
	s.Post(*umr(r, layout(s), mem.LocalWrite))
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpSend, SGList: []roce.SGE{
		{Length: 100, LKey: r.LKey()},
	}})
	for range entries / 2000 {
		s.ExpectNothing()
		s.Advance(roce.Nanosecond)
	}
	for range entries {
		if r.Valid() {
			break
		}
		s.Advance(roce.Nanosecond)
		if n := s.qp.NextPacket(s.now, s.frame); (n > 0) != r.Valid() {
			t.Fatalf("%d bytes were sent, the key is valid: %t", n, r.Valid())
		}
	}
	if got := s.frame[:54+100]; !bytes.Contains(got, s.buf[:100]) {
		t.Errorf("sent % x", got)
	}

	s = newScript(t, options{Rights: atomicRights})
	r = s.indirect(entries)
	s.Post(*umr(r, layout(s), mem.LocalWrite))
	s.ExpectNothing()
	s.move(roce.StateErr)
	s.ExpectCQE(failed(0, roce.StatusWRFlushErr))
	s.ExpectNothing()
	if r.Valid() {
		t.Error("the key has the layout of a work request that was flushed")
	}
	must(t, s.keys.Deregister(s.region))
}
