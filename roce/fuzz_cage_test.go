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
func (c *cage) drain() (responses []wire.Packet) {
	c.tb.Helper()
	for range 10_000 {
		n := c.qp.NextPacket(c.now, c.frame)
		if n == 0 {
			return responses
		}
		must(c.tb, roctest.Frame(c.frame[:n], roctest.DestQP(qpnB)))
		var p wire.Packet
		p.Decode(bytes.Clone(c.frame[:n]), nil)
		responses = append(responses, p)
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
	if next < 0 || next > top || s.Responses > 2*reads+1 || int(s.Outstanding) > reads {
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
				dead = c.checkResponse(&a, after, naks)
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
func (c *cage) checkResponse(a *wire.Packet, s roce.Snapshot, naks map[wire.PSN]int) bool {
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
