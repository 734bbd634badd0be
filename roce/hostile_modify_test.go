package roce_test

import (
	"bytes"
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/cc"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// extreme sets the attribute of a bit to the n-th of a few values, among them
// such as are out of range.
func extreme(a *roce.Attr, bit roce.AttrMask, n int) {
	small := []uint8{0, 1, 7, 8, 31, 32, 128, 129, 255}[n]
	large := []uint32{
		0, 1, 1<<23 - 1, 1 << 23, 1<<24 - 1, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1,
	}[n]
	switch bit {
	case roce.AttrState:
		a.State = roce.State(n)
	case roce.AttrCurState:
		a.CurState = roce.State(n)
	case roce.AttrAccess:
		a.Access = mem.Access(large)
	case roce.AttrPKeyIndex:
		a.PKeyIndex = uint16(large)
	case roce.AttrPort:
		a.Port = small
	case roce.AttrQKey:
		a.QKey = large
	case roce.AttrAV:
		a.Path.FlowLabel = large
	case roce.AttrPathMTU:
		a.PathMTU = wire.MTU(n)
	case roce.AttrTimeout:
		a.Timeout = small
	case roce.AttrRetryCnt:
		a.RetryCnt = small
	case roce.AttrRNRRetry:
		a.RNRRetry = small
	case roce.AttrRQPSN:
		a.RQPSN = wire.PSN(large)
	case roce.AttrSQPSN:
		a.SQPSN = wire.PSN(large)
	case roce.AttrMaxRdAtomic:
		a.MaxRdAtomic = small
	case roce.AttrMaxDestRdAtomic:
		a.MaxDestRdAtomic = small
	case roce.AttrMinRNRTimer:
		a.MinRNRTimer = small
	case roce.AttrDestQPN:
		a.DestQPN = large
	case roce.AttrRateLimit:
		a.RateLimit = large
	case roce.AttrExtensions:
		a.Extensions = roce.Extensions(small)
	case roce.AttrCongestion:
		a.Congestion = cc.Algorithm(small)
	case roce.AttrKeepalive:
		a.Keepalive = large
	case roce.AttrFlowControl:
		a.NoFlowControl = small != 0
	}
}

const extremes = 9

// sameQP compares two snapshots but for what a refusal may note.
func sameQP(a, b roce.Snapshot) bool {
	a.LastDrop = b.LastDrop
	return a == b
}

// TestHostileModify: every attribute alone, with values from one end of its range
// to beyond the other, to every kind of QP in every state with work under way.
// What is refused changes nothing; after what is taken all work still ends.
func TestHostileModify(t *testing.T) {
	taken, refused := 0, 0
	eachKind(func(k kind, state roce.State) {
		for bit := roce.AttrMask(1); bit != 0; bit <<= 1 {
			s := newStand(t, k, state)
			for n := range extremes {
				a := s.qp.Attr()
				extreme(&a, bit, n)
				before, old := s.qp.Snapshot(), s.qp.Attr()
				if s.modify(&a, bit) != nil {
					refused++
					if s.qp.Attr() != old || !sameQP(s.qp.Snapshot(), before) {
						t.Fatalf("%s in %s: refused %s changed %+v to %+v", k.name, state, bit,
							before, s.qp.Snapshot())
					}
					continue
				}
				taken++
				s.sendAll()
				for op := range wire.Opcodes() {
					if op.Spec().Service == k.service() {
						s.giveFrame(s.frameOf(op))
					}
				}
				s.sendAll()
				s.check()
			}
			if s.qp.Attr().Timeout != 0 && s.qp.Attr().Timeout < 20 {
				s.runOut()
			}
			s.end()
		}
	})
	t.Logf("%d changes taken, %d refused", taken, refused)
	if taken == 0 || refused == 0 {
		t.Error("nothing was taken, or nothing refused")
	}
}

// A change is one that a QP under traffic takes, and after which the traffic ends
// as if nothing had been.
type change struct {
	name string
	sqd  bool // it takes the detour over SQD
	mask roce.AttrMask
	set  func(a *roce.Attr, i int)
}

var changes = []change{
	{"CUR_STATE", false, roce.AttrCurState, func(a *roce.Attr, _ int) { a.CurState = a.State }},
	{"ACCESS_FLAGS", false, roce.AttrAccess, func(a *roce.Attr, i int) {
		a.Access = remoteRights | mem.RemoteAtomic*mem.Access(i%2)
	}},
	{"MIN_RNR_TIMER", false, roce.AttrMinRNRTimer, func(a *roce.Attr, i int) {
		a.MinRNRTimer = uint8(1 + i%8)
	}},
	{"RATE_LIMIT", false, roce.AttrRateLimit, func(a *roce.Attr, i int) {
		a.RateLimit = []uint32{0, 1 << 20, 1 << 31, 1<<32 - 1}[i%4]
	}},
	{"TIMEOUT", true, roce.AttrTimeout, func(a *roce.Attr, i int) { a.Timeout = uint8(8 + i%8) }},
	{"RETRY_CNT", true, roce.AttrRetryCnt, func(a *roce.Attr, i int) {
		a.RetryCnt = uint8(4 + i%4)
	}},
	{"RNR_RETRY", true, roce.AttrRNRRetry, func(a *roce.Attr, _ int) { a.RNRRetry = 7 }},
	{"MAX_QP_RD_ATOMIC", true, roce.AttrMaxRdAtomic, func(a *roce.Attr, i int) {
		a.MaxRdAtomic = uint8(1 + i%4)
	}},
	{"MAX_DEST_RD_ATOMIC", true, roce.AttrMaxDestRdAtomic, func(a *roce.Attr, i int) {
		a.MaxDestRdAtomic = uint8(4 + i%100)
	}},
	{"AV", true, roce.AttrAV, func(a *roce.Attr, i int) { a.Path.FlowLabel = uint32(i) }},
	{"PORT", true, roce.AttrPort, func(*roce.Attr, int) {}},
	{"PKEY_INDEX", true, roce.AttrPKeyIndex, func(*roce.Attr, int) {}},
}

// refusals are what every QP under traffic refuses.
var refusals = []roce.AttrMask{
	roce.AttrPathMTU, roce.AttrRQPSN, roce.AttrSQPSN, roce.AttrDestQPN, roce.AttrQKey,
	roce.AttrAltPath, roce.AttrPathMigState, roce.AttrCap, roce.AttrExtensions,
	roce.AttrFlowControl, roce.AttrCongestion, roce.AttrPathBytes, 1 << 21, 1 << 31,
}

// TestHostileModifyUnderTraffic: each change at every few events of a run with
// faults, on both ends, with refused ones in between: all data arrives all the
// same.
func TestHostileModifyUnderTraffic(t *testing.T) {
	for _, c := range changes {
		for _, every := range []int{1, 3, 10} {
			modifiedRun(t, c, every)
		}
	}
}

func modifiedRun(t *testing.T, c change, every int) {
	t.Helper()
	p := newRCPair(t, options{
		RetryCnt: 7, RNRRetry: 7, Timeout: 8, Memory: 1 << 15, MinRNR: 1, Depth: 32,
	})
	p.fault = func(_, nth int, _ []byte) fault { return fault{Drop: nth%13 == 5 && nth < 300} }
	const size = 1500
	for i, e := range p.ends {
		fill(e.buf[:8*size], uint64(i))
		for n := range 8 {
			into := e.sge((8+n)*size, size)
			must(t, e.qp.PostRecv(&roce.RecvWR{WRID: uint64(n), SGList: into}))
			op := []roce.Opcode{roce.OpSend, roce.OpRead, roce.OpSend, roce.OpWrite}[n%4]
			wr := roce.SendWR{
				WRID: uint64(n), Opcode: op, SGList: e.sge(n*size, size),
				RKey: p.ends[1-i].region.RKey(),
			}
			wr.RemoteAddr = p.ends[1-i].region.Addr() + uint64((16+n%4)*size)
			if op == roce.OpRead {
				wr.SGList = e.sge(16*size, 1)
				wr.RemoteAddr = p.ends[1-i].region.Addr()
			}
			must(t, e.qp.PostSend(&wr))
		}
	}
	changed := 0
	for n := 0; p.step(); n++ {
		if n > 1<<16 {
			t.Fatalf("%s: no end: %s; %s", c.name, p.ends[0].qp.Snapshot(), p.ends[1].qp.Snapshot())
		}
		if n%every == 0 {
			changed += changeBoth(t, p, c, n)
		}
	}
	for _, e := range p.ends {
		leaveSQD(p, e)
	}
	p.run()
	if changed == 0 {
		t.Errorf("%s: never taken", c.name)
	}
	for i, e := range p.ends {
		other := p.ends[1-i]
		wcs, rwcs := drain(t, e.send), drain(t, e.recv)
		if len(wcs) != 8 || len(rwcs) != 4 {
			t.Fatalf("%s every %d: %d sends, %d receives done: %s", c.name, every, len(wcs),
				len(rwcs), e.qp.Snapshot())
		}
		for n, wc := range append(wcs, rwcs...) {
			if wc.Status != roce.StatusSuccess || wc.WRID != uint64(n%8) {
				t.Fatalf("%s every %d: completion %d is %+v", c.name, every, n, wc)
			}
		}
		for n, from := range []int{0, 2, 4, 6} { // the SENDs
			if !bytes.Equal(e.buf[8*size+n*size:][:size], other.buf[from*size:][:size]) {
				t.Fatalf("%s every %d: message %d differs", c.name, every, n)
			}
		}
	}
}

// changeBoth tries a change on both ends, and some that must be refused. It
// returns how often it was taken.
func changeBoth(t *testing.T, p *pair, c change, n int) (taken int) {
	t.Helper()
	for _, e := range p.ends {
		if e.qp.State() == roce.StateErr {
			continue
		}
		for _, mask := range refusals {
			a := e.qp.Attr()
			before := e.qp.Snapshot()
			if e.qp.Modify(p.now, &a, mask) == nil || e.qp.Snapshot() != before {
				t.Fatalf("%s taken in %s, or not without a trace", mask, e.qp.State())
			}
		}
		switch state := e.qp.State(); {
		case c.sqd && state == roce.StateRTS:
			a := roce.Attr{State: roce.StateSQD}
			must(t, e.qp.Modify(p.now, &a, roce.AttrState))
			fallthrough
		case state == roce.StateSQD || !c.sqd:
			a := e.qp.Attr()
			c.set(&a, n)
			if err := e.qp.Modify(p.now, &a, c.mask); err == nil {
				taken++
			} else if c.mask != roce.AttrMaxDestRdAtomic {
				t.Fatalf("%s in %s: %v", c.name, e.qp.State(), err)
			}
			leaveSQD(p, e)
		}
	}
	return taken
}

// leaveSQD goes back to RTS once the send queue is drained.
func leaveSQD(p *pair, e *endpoint) {
	if a := e.qp.Attr(); a.State == roce.StateSQD && !a.SQDraining {
		a.State = roce.StateRTS
		must(p.tb, e.qp.Modify(p.now, &a, roce.AttrState))
	}
}

// TestHostileStopAroundTimers: a run whose timers expire is stopped at every
// event, by each of the ways to stop it, just before and just after the
// deadline; the old deadline then comes all the same. Nothing wakes up, nothing
// completes twice.
func TestHostileStopAroundTimers(t *testing.T) {
	for _, k := range kinds {
		if k.typ == roce.TypeXRCRecv || k.typ == roce.TypeRawPacket {
			continue
		}
		for _, to := range []roce.State{roce.StateReset, roce.StateErr, roce.StateSQD} {
			for at := range 12 {
				for _, late := range []bool{false, true} {
					stoppedAt(t, k, to, at, late)
				}
			}
		}
	}
}

// stoppedAt lets timers expire some times, with an RNR NAK in between, and then
// moves the QP while the next one is due.
func stoppedAt(t *testing.T, k kind, to roce.State, at int, late bool) {
	t.Helper()
	s := newStand(t, k, roce.StateRTS)
	for n := range at {
		if n == at/2 && k.reliable() {
			op, _ := k.opcode(wire.RCAck)
			p := s.target(op)
			p.AETH.Syndrome = wire.RNRSyndrome(uint8(1 + n))
			s.givePacket(p)
		}
		if !s.tick() {
			break
		}
		s.sendAll()
		s.check()
	}
	due, armed := s.qp.NextDeadline()
	if armed && late {
		s.now = due
	}
	if s.modify(&roce.Attr{State: to}, roce.AttrState) != nil {
		return // it had failed, or has no such state
	}
	for _, now := range []roce.Time{due - 1, due, due + 1, due + roce.Second} {
		s.now = max(s.now, now)
		if to == roce.StateSQD {
			s.qp.HandleDeadline(s.now)
			s.sendAll()
			s.check()
			continue
		}
		s.frozen(fmt.Sprintf("the deadline %d after %s", now, to), func() {
			s.qp.HandleDeadline(s.now)
		})
	}
	if to != roce.StateSQD {
		if _, ok := s.qp.NextDeadline(); ok {
			t.Fatalf("%s: a timer runs in %s", k.name, to)
		}
	}
	if to == roce.StateReset {
		s.moveUp(roce.StateRTS)
		s.postReceives(2)
		s.postWork()
		s.runOut()
	}
	s.end()
}

// reliable reports whether the peer acknowledges.
func (k kind) reliable() bool { return k.typ == roce.TypeRC || k.typ == roce.TypeXRCSend }

// TestHostileStopOfOneEnd: the run of two QPs with loss is cut at every one of
// its events, on one end, by RESET and by ERR: the other ends by its retries,
// and both serve again after a new start.
func TestHostileStopOfOneEnd(t *testing.T) {
	for _, to := range []roce.State{roce.StateReset, roce.StateErr} {
		for at := 0; ; at++ {
			p := newRCPair(t, options{Timeout: 6, MinRNR: 1, Memory: 1 << 14})
			p.fault = func(_, nth int, _ []byte) fault { return fault{Drop: nth%5 == 3} }
			for _, e := range p.ends {
				must(t, e.qp.PostRecv(&roce.RecvWR{SGList: e.sge(0, 2000)}))
				for id, op := range []roce.Opcode{roce.OpRead, roce.OpSend, roce.OpWrite} {
					must(t, e.qp.PostSend(&roce.SendWR{
						WRID: uint64(id), Opcode: op, SGList: e.sge(4000, 2000),
						RemoteAddr: p.other(e).region.Addr() + 8000, RKey: p.other(e).region.RKey(),
					}))
				}
			}
			n := 0
			for n < at && p.step() {
				n++
			}
			if n < at {
				break // the run is over
			}
			must(t, p.ends[0].qp.Modify(p.now, &roce.Attr{State: to}, roce.AttrState))
			p.run()
			if got := len(drain(t, p.ends[1].send)); got != 3 {
				t.Fatalf("cut by %s at %d: %d of 3 completed at the other end", to, at, got)
			}
			got := len(drain(t, p.ends[0].send))
			if to == roce.StateErr && got != 3 || to == roce.StateReset && got != 0 {
				t.Fatalf("cut by %s at %d: %d completed", to, at, got)
			}
			p.again()
		}
	}
}

func (p *pair) other(e *endpoint) *endpoint {
	if e == p.ends[0] {
		return p.ends[1]
	}
	return p.ends[0]
}

// again connects both ends anew and moves a message each way.
func (p *pair) again() {
	p.tb.Helper()
	p.fault, p.air = nil, nil
	o := p.o
	for i, e := range p.ends {
		must(p.tb, e.qp.Modify(p.now, &roce.Attr{State: roce.StateReset}, roce.AttrState))
		drain(p.tb, e.recv)
		e.connect([]uint32{qpnB, qpnA}[i], o, roce.StateRTS)
		o.SQPSN, o.RQPSN = o.RQPSN, o.SQPSN
	}
	for _, e := range p.ends {
		must(p.tb, e.qp.PostRecv(&roce.RecvWR{SGList: e.sge(0, 300)}))
		must(p.tb, e.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: e.sge(1000, 300)}))
	}
	p.run()
	for _, e := range p.ends {
		for _, wc := range append(drain(p.tb, e.send), drain(p.tb, e.recv)...) {
			if wc.Status != roce.StatusSuccess {
				p.tb.Fatalf("after a new start: %+v", wc)
			}
		}
	}
}
