package roce_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A cage is a QP whose regions lie between bytes that nothing may touch.
type cage struct {
	*endpoint
	tb       testing.TB
	bytes    []byte // guard, writable region, guard, read-only region, guard
	readOnly *mem.Region
	path     wire.Template
	frame    []byte
	now      roce.Time
}

const (
	cageGuard = 256
	cageSize  = 4096
)

// newCage returns a cage with a QP in a state, with work in both queues.
func newCage(tb testing.TB, state roce.State) *cage {
	tb.Helper()
	o := options{CQDepth: 64, Depth: 8}.filled()
	c := &cage{
		endpoint: newEndpoint(tb, qpnA, o), tb: tb, frame: make([]byte, 8192),
		bytes: bytes.Repeat([]byte{0xc5}, 2*cageSize+3*cageGuard),
	}
	var err error
	c.buf = c.bytes[cageGuard:][:cageSize:cageSize]
	c.region, err = c.keys.RegisterAt(c.domain, c.buf, 0x10000, allRights)
	must(tb, err)
	c.readOnly, err = c.keys.RegisterAt(c.domain,
		c.bytes[2*cageGuard+cageSize:][:cageSize:cageSize], 0x20000, mem.RemoteRead)
	must(tb, err)
	must(tb, c.path.Init(pathTo(qpnA, o.Framing)))
	c.connect(qpnB, o, min(state, roce.StateRTS))
	if state != roce.StateReset {
		for i := range uint64(4) {
			must(tb, c.qp.PostRecv(&roce.RecvWR{WRID: i, SGList: split(c.sge(100*int(i), 300))}))
		}
	}
	if state < roce.StateRTS {
		return c
	}
	for i, op := range []roce.Opcode{roce.OpSend, roce.OpRead, roce.OpWriteImm, roce.OpRead} {
		must(tb, c.qp.PostSend(&roce.SendWR{
			WRID: uint64(i), Opcode: op,
			SGList: split(c.sge(1000*i, 600)), RemoteAddr: 1 << 40, RKey: 3,
		}))
	}
	c.drain()
	if state > roce.StateRTS {
		a := c.qp.Attr()
		a.State = state
		must(tb, c.qp.Modify(0, &a, roce.AttrState))
	}
	return c
}

// drain takes all that the QP sends, which must be well-formed.
func (c *cage) drain() (answers []wire.Packet) {
	c.tb.Helper()
	for range 10_000 {
		n := c.qp.NextPacket(c.now, c.frame)
		if n == 0 {
			return answers
		}
		must(c.tb, roctest.Frame(c.frame[:n], roctest.DestQP(qpnB)))
		var p wire.Packet
		p.Decode(bytes.Clone(c.frame[:n]), nil)
		answers = append(answers, p)
	}
	c.tb.Fatal("the QP does not stop to send")
	return nil
}

// give hands the QP the bytes of a packet from the BTH on, with a right ICRC.
func (c *cage) give(transport []byte) {
	n := len(transport) &^ 3
	if n < wire.BTHLen {
		return
	}
	copy(c.frame[c.path.Len():], transport[:n])
	var p wire.Packet
	if p.Decode(c.frame[:c.path.Seal(c.frame, n, 1)], nil) == wire.OK {
		c.qp.HandlePacket(c.now, &p)
	}
}

// check looks at what no packet may ever change.
func (c *cage) check() {
	c.tb.Helper()
	same := bytes.Repeat([]byte{0xc5}, cageSize+2*cageGuard)
	if !bytes.Equal(c.bytes[:cageGuard], same[:cageGuard]) ||
		!bytes.Equal(c.bytes[cageGuard+cageSize:], same) {
		c.tb.Fatal("bytes outside the writable region were changed")
	}
	s := c.qp.Snapshot()
	next, top := s.NextPSN.Diff(s.UnackedPSN), s.TopPSN.Diff(s.UnackedPSN)
	reads := int(defaults.MaxRd)
	if next < 0 || next > top || s.Answers > 2*reads+1 || int(s.Outstanding) > reads {
		c.tb.Fatalf("bounds: %+v", s)
	}
}

// end lets all timers run out; then everything must have completed once.
func (c *cage) end(state roce.State) {
	c.tb.Helper()
	for range 100 {
		at, ok := c.qp.NextDeadline()
		if !ok {
			break
		}
		c.now = max(c.now, at)
		c.qp.HandleDeadline(c.now)
		c.drain()
		c.check()
	}
	if _, ok := c.qp.NextDeadline(); ok {
		c.tb.Fatalf("timers do not end: %+v", c.qp.Snapshot())
	}
	if state == roce.StateRTS {
		seen := 0
		for _, wc := range drain(c.tb, c.send) {
			if wc.WRID != uint64(seen) {
				c.tb.Fatalf("completion %+v, want request %d", wc, seen)
			}
			seen++
		}
		if seen != 4 {
			c.tb.Fatalf("%d of 4 requests completed", seen)
		}
	}
	a := roce.Attr{State: roce.StateReset}
	must(c.tb, c.qp.Modify(c.now, &a, roce.AttrState))
}

// FuzzHandlePacket gives a QP in any state any packets, each with a length of
// two bytes before it, from the BTH on.
func FuzzHandlePacket(f *testing.F) {
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		state := states[int(in)%len(states)]
		c := newCage(t, state)
		for len(data) > 2 {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2, 4500)
			c.give(data[2 : 2+n])
			data = data[2+n:]
			c.drain()
			c.check()
		}
		c.end(state)
	})
}

// respOps are the requests that FuzzResponder knows.
var respOps = []wire.Opcode{
	wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLast,
	wire.RCSendLastImm, wire.RCSendOnly, wire.RCSendOnlyImm, wire.RCWriteFirst,
	wire.RCWriteMiddle, wire.RCWriteLast, wire.RCWriteLastImm, wire.RCWriteOnly,
	wire.RCWriteOnlyImm, wire.RCReadRequest, wire.RCFetchAdd, wire.RCSendOnlyInv,
}

// FuzzResponder speaks to a responder in requests of six bytes each: opcode, PSN
// relative to the expected one, flags, address, length of message and payload.
func FuzzResponder(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCage(t, roce.StateRTR)
		naks, dead := map[wire.PSN]int{}, false
		for ; len(data) >= 6; data = data[6:] {
			before := c.qp.Snapshot()
			p := c.fuzzRequest(before.ExpectedPSN, data[:6])
			c.give(p.Frame(&c.path)[c.path.Len():][:p.Opcode.Spec().TransportLen(len(p.Payload))-4])
			after := c.qp.Snapshot()
			moved := after.ExpectedPSN.Diff(before.ExpectedPSN)
			if moved < 0 || moved > 0 && p.PSN != before.ExpectedPSN || dead && moved != 0 {
				t.Fatalf("%+v moved %s to %s", p, before, after)
			}
			for _, a := range c.drain() {
				if dead {
					t.Fatalf("answered %s after a fatal NAK", roctest.Describe(&a))
				}
				dead = c.checkAnswer(&a, after, naks)
			}
			c.check()
		}
		if got, max := len(drain(t, c.recv)), 4; got > max {
			t.Fatalf("%d completions of %d receives", got, max)
		}
	})
}

// fuzzRequest makes a request of six bytes.
func (c *cage) fuzzRequest(expected wire.PSN, b []byte) roctest.Packet {
	mtu := defaults.MTU.Bytes()
	p := roctest.Packet{
		Opcode: respOps[int(b[0])%len(respOps)], DestQP: qpnA,
		PSN: expected.Add(uint32(int32(int8(b[1])))), AckReq: b[2]&1 == 0, SE: b[2]&2 != 0,
	}
	region := c.region
	if b[2]&4 != 0 {
		region = c.readOnly
	}
	p.RETH = wire.RETH{
		VA: region.Addr() + uint64(b[3])*17, RKey: region.RKey(),
		DMALen: uint32(b[4]) * 5,
	}
	if b[2]&8 != 0 {
		p.RETH.RKey++
	}
	switch n := int(b[5]); p.Opcode.Spec().Payload {
	case wire.PayloadNone:
	case wire.PayloadFull:
		p.Payload = make([]byte, mtu)
	default:
		p.Payload = make([]byte, n*5%(mtu+2))
	}
	if b[2]&16 != 0 && p.Opcode.Spec().Is(wire.ClassLast) && p.Opcode != wire.RCReadRequest {
		p.RETH.DMALen = uint32(len(p.Payload))
	}
	return p
}

// checkAnswer holds an answer against the rules and reports whether it ends the
// connection.
func (c *cage) checkAnswer(a *wire.Packet, s roce.Snapshot, naks map[wire.PSN]int) bool {
	c.tb.Helper()
	ahead := a.BTH.PSN.Diff(s.ExpectedPSN)
	syndrome := a.AETH().Syndrome
	switch {
	case a.Spec.Is(wire.ClassRead) || syndrome.IsACK():
		if ahead >= 0 {
			c.tb.Fatalf("%s, expected is %s", roctest.Describe(a), s)
		}
		return false
	case syndrome.NAK() == wire.NAKPSNSequenceError:
		if naks[a.BTH.PSN]++; naks[a.BTH.PSN] > 1 || ahead != 0 {
			c.tb.Fatalf("second or wrong %s", roctest.Describe(a))
		}
		return false
	case syndrome.IsRNRNAK():
		return false
	}
	if s.State != roce.StateErr {
		c.tb.Fatalf("%s, but the QP is in %s", roctest.Describe(a), s.State)
	}
	return true
}

// maxSteps bounds what one input of a fuzzer does.
const maxSteps = 300

// FuzzAnyQP gives a QP of any kind in any state any packets with a right ICRC,
// each with a length of two bytes before it, from the BTH on.
func FuzzAnyQP(f *testing.F) {
	f.Fuzz(func(t *testing.T, in, at byte, data []byte) {
		k, state := kinds[int(in)%len(kinds)], everyState[int(at)%len(everyState)]
		if !k.reaches(state) {
			t.Skip("no such state")
		}
		s := newStand(t, k, state)
		for steps := 0; len(data) > 2 && steps < maxSteps; steps++ {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2, 4500)
			s.give(data[2 : 2+n])
			data = data[2+n:]
			s.sendAll()
			s.check()
		}
		s.runOut()
		s.end()
	})
}

// FuzzInterleave lets posts, packets, timers, changes of attributes and of memory
// follow each other in any order, on a QP of any kind.
func FuzzInterleave(f *testing.F) {
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		s := newStand(t, kinds[int(in)%len(kinds)], roce.StateRTS)
		play := &tape{data}
		for steps := 0; len(play.data) > 0 && steps < maxSteps; steps++ {
			s.act(play)
			s.check()
		}
		if s.qp.Attr().RateLimit == 0 || s.qp.Attr().RateLimit > 1000 {
			s.runOut()
		}
		s.end()
	})
}

// act does one thing that a tape asks for.
func (s *stand) act(play *tape) {
	s.tb.Helper()
	switch play.IntN(16) {
	default: // packets are what there is most of
		s.giveFrame(s.noisy(play))
	case 0, 1:
		op := roce.Opcode(play.IntN(16))
		n := []int{8, 0, 1, 255, 256, 257, 600}[play.IntN(7)]
		wr := s.request(op, play.IntN(areaCount), 8*play.IntN(64), n)
		wr.Flags = roce.SendFlags(play.IntN(8))
		s.post(&wr)
	case 2:
		s.postRecv(play.IntN(areaCount), play.IntN(64), play.IntN(1000))
	case 3:
		s.sendSome(1 + play.IntN(4))
	case 4:
		s.sendAll()
	case 5:
		s.tick()
	case 6:
		s.now += roce.Time(play.IntN(1<<16)) * roce.Microsecond
		s.qp.HandleDeadline(s.now)
	case 7:
		a, bit := s.qp.Attr(), roce.AttrMask(1)<<play.IntN(31)
		extreme(&a, bit, play.IntN(extremes))
		_ = s.modify(&a, bit) // refused or not, the stand must hold
	case 8:
		_ = s.modify(&roce.Attr{State: everyState[play.IntN(7)]}, roce.AttrState)
		if s.qp.State() == roce.StateReset && play.IntN(2) == 0 {
			s.moveUp(roce.StateRTS)
		}
	case 9:
		s.revoke(play)
	}
}

// sendSome lets the QP send up to n packets.
func (s *stand) sendSome(n int) {
	for range n {
		s.qp.NextPacket(s.now, s.frame)
	}
}

// revoke takes a region away, and may bring it back under another key.
func (s *stand) revoke(play *tape) {
	s.tb.Helper()
	i := play.IntN(areaCount)
	switch play.IntN(3) {
	case 0:
		s.keys.Invalidate(s.own.Local(), s.areas[i].RKey())
	case 1:
		_ = s.keys.Validate(s.areas[i], uint8(play.next())) // it may be valid
	default:
		s.keys.Deregister(s.areas[i])
		if play.IntN(2) != 0 {
			return
		}
		domain := s.own
		if i == areaForeign {
			domain = s.other
		}
		var err error
		s.areas[i], err = s.keys.RegisterAt(domain, s.area(i), uint64(i+1)<<32, areaRights[i])
		must(s.tb, err)
	}
}

// FuzzAnswers answers a requester that has work of all sorts, with any answers
// near those that it awaits, SELECTIVE_ACK among them. All its work must end.
func FuzzAnswers(f *testing.F) {
	requesters := []kind{kinds[0], kinds[1], kinds[2], kinds[10]}
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		s := newStand(t, requesters[int(in)%len(requesters)], roce.StateRTS)
		play := &tape{data}
		for steps := 0; len(play.data) > 0 && steps < maxSteps; steps++ {
			switch play.IntN(10) {
			default:
				s.giveFrame(s.answer(play))
			case 0:
				s.tick()
			case 1:
				wr := s.request(roce.Opcode(play.IntN(16)), areaOpen, 8*play.IntN(8),
					[]int{8, 600, 300, 0}[play.IntN(4)])
				s.post(&wr)
			case 2:
				s.sendAll()
			case 3:
				s.revoke(play)
			}
			s.check()
		}
		s.runOut()
		if s.sendDone != s.sendPosted {
			t.Fatalf("%d of %d requests completed", s.sendDone, s.sendPosted)
		}
		s.end()
	})
}

// answer is a frame with an answer that a tape asks for.
func (s *stand) answer(play *tape) []byte {
	p := s.target(pick(play, answersOf[s.kind.service()]))
	p.PSN = p.PSN.Add(uint32(play.IntN(20)) - 2)
	p.AETH.Syndrome = pick(play, []wire.Syndrome{
		wire.ACKNoCredits, wire.ACKNoCredits, wire.ACKNoCredits, 0x60, 0x21, 0, 3, 0x61, 0x40, 0xff,
	})
	p.AETH.MSN = uint32(play.IntN(16))
	switch p.Opcode.Spec().Payload {
	case wire.PayloadPartial, wire.PayloadAny:
		p.Payload = make([]byte, []int{88, 0, 256, 44, 1, 300}[play.IntN(6)])
	case wire.Payload32:
		for i := range p.Payload[:4] {
			p.Payload[i] = play.next()
		}
	}
	return p.Frame(&s.path)
}

// A duel is two connected queue pairs whose wire belongs to a fuzzer.
type duel struct {
	ends [2]*stand
	air  [2][][]byte // frames on their way to each end
	evil bool        // somebody made an ICRC right that was wrong, or took memory away
}

// maxAir is how many frames the wire keeps in each direction.
const maxAir = 200

// FuzzWire gives two queue pairs that work for each other a wire that loses,
// repeats, reorders and damages what the fuzzer wants it to. Then the wire is
// whole again, and all work ends.
func FuzzWire(f *testing.F) {
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		near := []kind{kinds[0], kinds[1], kinds[2], kinds[4], kinds[3]}[int(in)%5]
		far := near
		far.far, far.psn = true, &[2]wire.PSN{0x100, 0x200}
		d := &duel{ends: [2]*stand{bareStand(t, near), bareStand(t, far)}}
		for _, s := range d.ends {
			s.start = roce.StateRTS
			s.moveUp(roce.StateRTS)
		}
		play := &tape{data}
		for steps := 0; len(play.data) > 0 && steps < maxSteps; steps++ {
			d.act(play)
			d.ends[0].check()
			d.ends[1].check()
		}
		d.heal(t)
	})
}

// act does one thing that a tape asks for.
func (d *duel) act(play *tape) {
	to := play.IntN(2)
	s, air := d.ends[to], &d.air[to]
	switch play.IntN(12) {
	default:
		d.pump(1-to, 1+play.IntN(4))
		d.deliver(to, 0)
	case 0, 1:
		op := roce.Opcode(play.IntN(16))
		wr := s.request(op, areaOpen, 8*play.IntN(64), []int{8, 0, 1, 256, 257, 1500}[play.IntN(6)])
		goal := d.ends[1-to].areas[areaOpen]
		wr.RemoteAddr, wr.RKey = goal.Addr()+8*uint64(play.IntN(64)), goal.RKey()
		wr.InvalidateKey = d.ends[1-to].areas[areaRevoke].RKey()
		wr.Flags = roce.SendFlags(play.IntN(8))
		s.post(&wr)
	case 2:
		s.postRecv(areaOpen, play.IntN(64), 1600)
	case 3:
		d.deliver(to, play.IntN(8))
	case 4:
		d.take(to, play.IntN(8))
	case 5:
		if f := d.take(to, play.IntN(8)); f != nil {
			*air = append(*air, f, bytes.Clone(f))
		}
	case 6, 7:
		if f := d.take(to, play.IntN(8)); f != nil {
			at := frameBTH + play.IntN(len(f)-frameBTH)
			f[at] ^= 1 << play.IntN(8)
			if play.IntN(4) == 0 {
				d.evil = true
				s.path.Seal(f, len(f)-frameBTH-wire.ICRCLen, 1)
			}
			*air = append([][]byte{f}, *air...)
		}
	case 8:
		s.tick()
	case 9:
		d.evil = true
		s.revoke(play)
	}
}

// pump lets an end send up to n frames.
func (d *duel) pump(from, n int) {
	s, air := d.ends[from], &d.air[1-from]
	for range n {
		if len(*air) == maxAir {
			return
		}
		size := s.qp.NextPacket(s.now, s.frame)
		if size == 0 {
			return
		}
		*air = append(*air, bytes.Clone(s.frame[:size]))
	}
}

// take takes the i-th frame off the wire, nil when there is none.
func (d *duel) take(to, i int) []byte {
	air := d.air[to]
	if i >= len(air) {
		return nil
	}
	f := air[i]
	d.air[to] = append(air[:i:i], air[i+1:]...)
	return f
}

func (d *duel) deliver(to, i int) {
	if f := d.take(to, i); f != nil {
		d.ends[to].giveFrame(f)
	}
}

// heal lets everything arrive until nothing is left to happen.
func (d *duel) heal(t *testing.T) {
	t.Helper()
	for range 20_000 {
		for to := range d.ends {
			d.pump(1-to, maxAir)
			for len(d.air[to]) > 0 {
				d.deliver(to, 0)
			}
			d.ends[to].check()
		}
		d.pump(0, 1)
		d.pump(1, 1)
		if len(d.air[0])+len(d.air[1]) > 0 {
			continue
		}
		if a, b := d.ends[0].tick(), d.ends[1].tick(); !a && !b {
			d.judge(t)
			return
		}
	}
	t.Fatalf("no end: %+v, %+v", d.ends[0].qp.Snapshot(), d.ends[1].qp.Snapshot())
}

// judge wants all work done, and by an honest wire only such failures as loss
// explains.
func (d *duel) judge(t *testing.T) {
	t.Helper()
	for i, s := range d.ends {
		s.check()
		if s.sendDone != s.sendPosted {
			t.Fatalf("end %d: %d of %d requests completed: %+v", i, s.sendDone, s.sendPosted,
				s.qp.Snapshot())
		}
		s.end()
		if d.evil {
			continue
		}
		for _, bad := range []roce.Status{
			roce.StatusBadRespErr, roce.StatusLocProtErr, roce.StatusRemOpErr,
			roce.StatusLocLenErr, roce.StatusGeneralErr,
		} {
			if s.statuses[bad] > 0 {
				t.Fatalf("end %d: %s on an honest wire", i, bad)
			}
		}
	}
}
