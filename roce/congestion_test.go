package roce_test

import (
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/cc"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// configured is a configuration with its defaults, at 10 Gb/s.
func configured(a cc.Algorithm) *cc.Config {
	c := cc.Config{Algorithm: a, LineRate: 10_000_000}.Defaults()
	return &c
}

var dcqcn = configured(cc.AlgorithmDCQCN)

// cnp is a congestion notification from the peer.
func cnp() roctest.Packet {
	return roctest.Packet{Opcode: wire.CNP, Payload: make([]byte, 16)}
}

// mark has the peer's packets come with these ECN bits from now on.
func (s *script) mark(ecn uint8) {
	s.t.Helper()
	path := pathTo(qpnA, s.o.Framing)
	path.TClass = ecn
	must(s.t, s.path.Init(path))
}

// sent takes the next packet that the QP sends.
func (s *script) sent() (p wire.Packet) {
	s.t.Helper()
	n := s.qp.NextPacket(s.now, s.frame)
	if n == 0 {
		s.t.Fatalf("nothing to send; %s", s.qp.Snapshot())
	}
	if r := p.Decode(s.frame[:n], nil); r != wire.OK || !p.VerifyICRC() {
		s.t.Fatalf("a bad packet: %s", r)
	}
	return p
}

// TestCNP: data that a switch has marked is answered with a CNP as ConnectX sends it, at once
// and once an interval, whatever becomes of the data. Acknowledges and CNPs are not.
func TestCNP(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeXRCRecv} {
		s := newScript(t, options{Type: typ, Congestion: configured(cc.None)})
		s.mark(wire.ECNCE)
		write := func(n uint32) roctest.Packet {
			p := roctest.Packet{
				Opcode: wire.RCWriteOnly, PSN: s.it(n),
				RETH: wire.RETH{VA: s.region.Addr(), RKey: s.region.RKey()},
			}
			switch typ {
			case roce.TypeUC:
				p.Opcode = wire.UCWriteOnly
			case roce.TypeXRCRecv:
				p = xrc(srqNum, p)
			}
			return p
		}
		s.Recv(write(0), write(0), write(9)) // one, a duplicate, one behind a gap
		if !s.qp.Responding() {
			t.Error("the CNP does not hurry")
		}
		p := s.sent()
		if p.BTH.Opcode != wire.CNP || !p.BTH.BECN || p.BTH.FECN || p.BTH.M || p.BTH.AckReq ||
			p.BTH.PSN != 0 || p.BTH.DestQP != qpnB || p.TClass != 0xc2 || p.NetworkLen() != 60 {
			t.Errorf("%s: %+v, traffic class %#x, %d bytes", typ, p.BTH, p.TClass, p.NetworkLen())
		}
		for s.qp.NextPacket(s.now, s.frame) > 0 {
		}
		s.now += 50*roce.Microsecond - 1
		s.Recv(write(1))
		s.ExpectCount(counter.NPCNPSent, 1)
		s.now++
		s.Recv(cnp())
		if s.Recv(ack(s.us(0))); s.qp.Responding() {
			t.Errorf("%s: a CNP for a CNP or an acknowledge", typ)
		}
		s.Recv(write(2))
		if p := s.sent(); p.BTH.Opcode != wire.CNP {
			t.Errorf("%s: %s, not a CNP", typ, p.BTH.Opcode)
		}
		s.ExpectCount(counter.NPCNPSent, 2)
		s.ExpectCount(counter.NPECNMarked, 5)
		s.ExpectCount(counter.RPCNPIgnored, 1)
		s.ExpectCount(counter.RPCNPHandled, 0)
	}
}

// TestNoECNWithoutCongestionControl: a QP without it sends, and takes, what it always did.
func TestNoECNWithoutCongestionControl(t *testing.T) {
	s := newScript(t, options{})
	s.mark(wire.ECNCE)
	s.Recv(cnp(), request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.Send(1, 64)
	if p := s.sent(); p.TClass&wire.ECNMask != 0 {
		t.Errorf("traffic class %#x", p.TClass)
	}
	s.ExpectNothing()
	s.ExpectCount(counter.DropWrongService, 1)
	s.ExpectCount(counter.NPECNMarked, 0)
	a := s.o.attr(qpnB)
	a.Congestion, a.State = cc.AlgorithmDCQCN, roce.StateRTR
	s.move(roce.StateReset)
	s.connect(qpnB, s.o, roce.StateInit)
	wantErr(t, s.qp.Modify(0, &a, maskRTR|roce.AttrCongestion), roce.ErrInvalid, "CONGESTION")
}

// TestECT: with DCQCN what is sent may be marked, and whatever bits the path had are not; the
// DSCP stays. A QP may have another algorithm than its device.
func TestECT(t *testing.T) {
	for algorithm, want := range map[cc.Algorithm]uint8{
		cc.None: 0x61, cc.AlgorithmDCQCN: 0x62, cc.AlgorithmSwift: 0x61,
	} {
		s := newScriptIn(t, options{Congestion: dcqcn}, roce.StateInit)
		a := s.o.attr(qpnB)
		a.Path.TClass, a.Congestion, a.State = 0x61, algorithm, roce.StateRTR
		must(t, s.qp.Modify(0, &a, maskRTR|roce.AttrCongestion))
		a.State = roce.StateRTS
		must(t, s.qp.Modify(0, &a, maskRTS))
		s.Send(1, 64)
		if p := s.sent(); p.TClass != want || s.qp.Attr().Path.TClass != 0x61 {
			t.Errorf("%s: traffic class %#x", algorithm, p.TClass)
		}
	}
	s := newScript(t, options{Congestion: dcqcn, Framing: wire.FramingV1})
	s.mark(wire.ECNCE)
	s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	if p := s.sent(); p.TClass != 0 || p.BTH.Opcode != wire.RCAck {
		t.Errorf("RoCE v1: %s, traffic class %#x", p.BTH.Opcode, p.TClass)
	}
}

// TestCNPOfPartition: a CNP is in the partition of the queue pair, else the peer would drop it.
func TestCNPOfPartition(t *testing.T) {
	const segment = 0x8005
	s := newScript(t, options{
		Congestion: configured(cc.None), PKeys: roce.PKeyTable{wire.DefaultPKey, segment},
		Attr: func(a *roce.Attr) { a.PKeyIndex = 1 },
	})
	s.mark(wire.ECNCE)
	s.Recv(roctest.Packet{
		Opcode: wire.RCWriteOnly, PSN: s.it(0), PKey: segment,
		RETH: wire.RETH{VA: s.region.Addr(), RKey: s.region.RKey()},
	})
	if p := s.sent(); p.BTH.Opcode != wire.CNP || p.BTH.PKey != segment {
		t.Errorf("%s of partition 0x%04x", p.BTH.Opcode, p.BTH.PKey)
	}
}

// TestForgedCNPs: one from another source is dropped and counted; a flood from the right one
// lowers the rate to its floor, and the connection works all the same.
func TestForgedCNPs(t *testing.T) {
	s := newScript(t, options{Congestion: dcqcn, RetryCnt: 7})
	right := s.path
	path := pathTo(qpnA, s.o.Framing)
	path.Src[15] ^= 1
	must(t, s.path.Init(path))
	s.Recv(cnp())
	s.path = right
	bad := cnp()
	bad.BadICRC = true
	s.Recv(bad)
	s.ExpectCount(counter.DropBadSource, 1)
	s.ExpectCount(counter.DropBadICRC, 1)
	if rate := s.qp.Snapshot().Rate; rate != 0 {
		t.Fatalf("a forged CNP set the rate to %d", rate)
	}
	before := s.qp.Snapshot()
	for range 1000 {
		s.Recv(cnp())
	}
	after := s.qp.Snapshot()
	if after.Rate != dcqcn.DCQCN.MinRate {
		t.Errorf("the rate is %d, its floor %d", after.Rate, dcqcn.DCQCN.MinRate)
	}
	if after.Rate, after.Alpha = 0, 0; after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.ExpectCount(counter.RPCNPHandled, 1000)
	s.ExpectNothing()
	for i := range uint32(20) {
		s.Send(uint64(i), 200)
		for s.qp.NextPacket(s.now, s.frame) == 0 {
			at, ok := s.qp.NextDeadline()
			if !ok || at <= s.now {
				t.Fatalf("deadline %d at %d", at, s.now)
			}
			s.Advance(at - s.now)
		}
		s.Recv(ack(s.us(i)))
		s.ExpectCQE(done(uint64(i), roce.WCSend))
	}
	s.ExpectCount(counter.LocalAckTimeout, 0)
}

// paced sends for a while, as fast as the QP lets it, and returns the rate in kbit/s.
func (s *script) paced(d roce.Time, more func()) uint32 {
	s.t.Helper()
	bytes := 0
	for begun := s.now; s.now < begun+d; {
		more()
		n := s.qp.NextPacket(s.now, s.frame)
		if bytes += n; n > 0 {
			continue
		}
		at, ok := s.qp.NextDeadline()
		if !ok {
			s.t.Fatal("nothing to send and no deadline")
		}
		s.Advance(max(at-s.now, 1))
	}
	return uint32(int64(bytes) * 8 * int64(roce.Millisecond) / int64(d))
}

// TestRateOfCNPs: requests are sent at the rate that two CNPs leave, and so is the data of
// READs; the lower of that and RATE_LIMIT counts.
func TestRateOfCNPs(t *testing.T) {
	c := *dcqcn
	c.DCQCN.RateTimer, c.DCQCN.ByteCounter = roce.Second, 1<<40 // it stays where it is
	for _, limit := range []uint32{0, 50_000_000, 1_000_000} {
		for _, reads := range []bool{false, true} {
			t.Run(fmt.Sprintf("limit %d, READ %t", limit, reads), func(t *testing.T) {
				o := options{Congestion: &c, MTU: wire.MTU1024, Type: roce.TypeUC}
				if reads {
					o.Type = roce.TypeRC
				}
				s := newScript(t, o)
				s.rate(limit)
				s.Recv(cnp(), cnp())
				if alpha := s.qp.Snapshot().Alpha; alpha != 1 {
					t.Errorf("alpha %g behind two CNPs, want 1", alpha)
				}
				asked := uint32(0)
				got := s.paced(10*roce.Millisecond, func() {
					switch {
					case !reads && s.qp.Snapshot().SendPosted < 8:
						s.Send(1, 1024)
						drain(t, s.send)
					case reads && s.qp.Snapshot().Responses == 0:
						s.Recv(s.readRequest(s.it(asked), 0, 32<<10))
						asked += 32
					}
				})
				want := uint32(2_500_000)
				if limit != 0 && limit < want {
					want = limit
				}
				if got < want-want/50 || got > want+want/50 {
					t.Errorf("%d kbit/s, want %d", got, want)
				}
			})
		}
	}
}

// TestSwiftWindow: round trips above the target shrink the window of packets, a CNP does not,
// and a packet that went again tells no round trip.
func TestSwiftWindow(t *testing.T) {
	s := newScript(t, options{
		Congestion: configured(cc.AlgorithmSwift), RetryCnt: 7, Window: 64, Depth: 256,
	})
	next, una := uint32(0), uint32(0)
	fly := func() (n uint32) {
		for s.qp.Snapshot().SendPosted < 200 {
			s.Send(1, 64)
		}
		for s.qp.NextPacket(s.now, s.frame) > 0 {
			n++
		}
		next += n
		return n
	}
	answer := func() {
		una = next
		s.Recv(ack(s.us(una - 1)))
		drain(t, s.send)
	}
	if n := fly(); n != 64 {
		t.Fatalf("%d packets", n)
	}
	s.Recv(cnp())
	s.ExpectCount(counter.RPCNPIgnored, 1)
	s.now += 100 * roce.Microsecond
	answer()
	if n := fly(); n < 64 {
		t.Fatalf("%d packets after one long round trip, of a window of 256 halved", n)
	}
	for range 10 {
		s.now += 200 * roce.Microsecond
		answer()
		fly()
	}
	small := next - una
	if small > 2 {
		t.Errorf("%d packets after ten long round trips", small)
	}
	for range 100 {
		s.now += 5 * roce.Microsecond
		answer()
		fly()
	}
	if next-una <= small+10 {
		t.Errorf("%d packets after a hundred short round trips", next-una)
	}
	// Whatever it measured, it is no round trip of 10 ms.
	grown := next - una
	s.now += 10 * roce.Millisecond
	s.Recv(ackWith(s.us(una), wire.NAKPSNSequenceError))
	for s.qp.NextPacket(s.now, s.frame) > 0 {
	}
	s.now += 5 * roce.Microsecond
	answer()
	if n := fly(); n < grown/2-1 {
		t.Errorf("%d packets after a loss, %d before", n, grown)
	}
}

// TestECNBits: what a switch may do to the ECN bits leaves the ICRC right; that is what lets
// it.
func TestECNBits(t *testing.T) {
	s := newScript(t, options{Congestion: dcqcn})
	for _, ecn := range []uint8{0, 1, wire.ECT0, wire.ECNCE} {
		s.mark(ecn)
		s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	}
	s.ExpectCount(counter.RcvdPkts, 4)
	s.ExpectCount(counter.NPECNMarked, 1)
}

// TestRateOutlivesSQE: what a switch said of the path of a UC QP holds when the send queue goes on
// behind an error of its own, and comes to its end as it would have.
func TestRateOutlivesSQE(t *testing.T) {
	s := newScript(t, options{Congestion: dcqcn, MTU: wire.MTU1024, Type: roce.TypeUC})
	for range 20 {
		s.Recv(cnp())
	}
	s.Post(s.badLKey(1, 8))
	s.ExpectNothing()
	s.ExpectState(roce.StateSQE)
	s.move(roce.StateRTS)
	if rate := s.qp.Snapshot().Rate; rate == 0 {
		t.Error("the rate is not told of")
	}
	s.Recv(cnp())
	s.ExpectCount(counter.RPCNPIgnored, 0)
	for range 1000 { // what raises the rate is a deadline
		s.Advance(roce.Millisecond)
	}
	for range 200 { // at 10 Mb/s they take 170 ms
		s.Send(1, 1024)
		if s.qp.NextPacket(s.now, s.frame) == 0 {
			t.Fatal("there is a limit a second after the last CNP")
		}
		drain(t, s.send)
	}
}

// TestSwiftTimesNoWait: neither a receiver that has no receive, nor a packet that was lost, is a
// path that is long.
func TestSwiftTimesNoWait(t *testing.T) {
	const most = 64
	s := newScript(t, options{
		Congestion: configured(cc.AlgorithmSwift), RetryCnt: 7, Window: most, Depth: 256,
	})
	for n := range uint32(10) {
		s.Send(1, 64)
		s.Expect(roctest.PSN(s.us(n)))
		s.Recv(ackWith(s.us(n), wire.RNRSyndrome(0)))
		s.Advance(655_360 * roce.Microsecond)
		s.Expect(roctest.PSN(s.us(n)))
		s.Recv(ack(s.us(n)))
		drain(t, s.send)
	}
	for range 2 * most {
		s.Send(1, 64)
	}
	for n := range uint32(most) {
		if s.qp.NextPacket(s.now, s.frame) == 0 {
			t.Fatalf("%d packets at once, want %d", n, most)
		}
	}
}
