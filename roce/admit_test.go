package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestDroppedInSilence: what is not for this QP changes nothing but its counter,
// though its PSN and its key be right.
func TestDroppedInSilence(t *testing.T) {
	otherPath := func(change func(p *wire.Path)) func(*script, *roctest.Packet) {
		return func(s *script, _ *roctest.Packet) {
			path := pathTo(qpnA, s.o.Framing)
			change(&path)
			must(s.t, s.path.Init(path))
		}
	}
	other := wire.GIDFromIPv4([4]byte{192, 0, 2, 99})
	for _, tt := range []struct {
		name    string
		state   roce.State
		counter counter.ID
		change  func(s *script, p *roctest.Packet)
	}{
		{
			"source", roce.StateRTS, counter.DropBadSource,
			otherPath(func(p *wire.Path) { p.Src = other }),
		},
		{
			"destination", roce.StateRTS, counter.DropBadSource,
			otherPath(func(p *wire.Path) { p.Dst = other }),
		},
		{
			"P_Key", roce.StateRTS, counter.DropBadPKey,
			func(_ *script, p *roctest.Packet) { p.PKey = 0x1234 },
		},
		{
			"ICRC", roce.StateRTS, counter.DropBadICRC,
			func(_ *script, p *roctest.Packet) { p.BadICRC = true },
		},
		{
			"UC", roce.StateRTS, counter.DropWrongService,
			func(_ *script, p *roctest.Packet) { p.Opcode = wire.UCWriteOnly },
		},
		{
			"XRC", roce.StateRTS, counter.DropWrongService,
			func(_ *script, p *roctest.Packet) { p.Opcode = wire.XRCWriteOnly },
		},
		{
			"CNP", roce.StateRTS, counter.DropWrongService,
			func(_ *script, p *roctest.Packet) {
				p.Opcode, p.Payload = wire.CNP, make([]byte, 16)
			},
		},
		{"INIT", roce.StateInit, counter.DropQPState, func(*script, *roctest.Packet) {}},
		{"RESET", roce.StateReset, counter.DropQPState, func(*script, *roctest.Packet) {}},
		{
			"response in RTR", roce.StateRTR, counter.DropQPState,
			func(s *script, p *roctest.Packet) { *p = ack(s.us(0)) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScriptIn(t, options{}, tt.state)
			p := s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 4, []byte("evil"))
			tt.change(s, &p)
			before, snap := string(s.buf), s.qp.Snapshot()
			s.Recv(p)
			s.ExpectNothing()
			s.ExpectCount(tt.counter, 1)
			s.ExpectCount(counter.RcvdPkts, 0)
			after := s.qp.Snapshot()
			after.LastDrop = snap.LastDrop
			if after != snap || string(s.buf) != before {
				t.Errorf("%s became %s", snap, after)
			}
		})
	}
}

// TestTakenAsTheyCome: fields that a receiver does not look at.
func TestTakenAsTheyCome(t *testing.T) {
	s := newScript(t, options{})
	path := pathTo(qpnA, s.o.Framing)
	path.SrcPort, path.TClass, path.HopLimit = 1, 0xff, 1
	path.Tags[0].TPID = wire.TPIDCustomer // with a priority alone
	path.SrcMAC = [6]byte{}
	must(t, s.path.Init(path))
	p := s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 4, []byte("good"))
	p.PKey = 0x7fff // limited member
	s.Recv(p)
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
}

// TestSolicitedBit: on the last packet of what consumes a receive, nowhere else.
func TestSolicitedBit(t *testing.T) {
	for _, op := range allOps {
		s := newScript(t, options{})
		s.Post(roce.SendWR{Opcode: op, Flags: roce.SendSolicited, SGList: s.sge(0, 2*s.mtu())})
		if op != roce.OpRead {
			s.Expect(roctest.Solicited(false))
		}
		s.Expect(roctest.Solicited(consumesRecv(op)))
	}
}

// TestPSNWraps: messages and READs go over the end of the PSN space, here
// and at the peer; see also TestSingleFaults.
func TestPSNWraps(t *testing.T) {
	for start := wire.PSN(0xfffffc); start != 3; start = start.Add(1) {
		s := newScript(t, options{SQPSN: start, RQPSN: start})
		s.Send(1, 3*s.mtu())
		s.Read(2, 2*s.mtu())
		for i := range uint32(4) {
			s.Expect(roctest.PSN(s.us(i)))
		}
		s.Recv(response(wire.RCReadRespFirst, s.us(3), make([]byte, s.mtu())))
		s.ExpectCQE(done(1, roce.WCSend))
		s.Advance(68 * roce.Millisecond)
		s.Expect(roctest.PSN(s.us(4)), roctest.Opcode(wire.RCReadRequest))
		s.Recv(s.readRequest(s.it(0), 0, 3*s.mtu()),
			s.writeRequest(wire.RCWriteOnly, s.it(3), 0, 0, nil),
			s.writeRequest(wire.RCWriteOnly, s.it(5), 0, 0, nil))
		for i := range uint32(3) {
			s.Expect(roctest.PSN(s.it(i)))
		}
		s.ExpectAck(s.it(4), wire.NAKPSNSequenceError, 2)
		if e := s.qp.Snapshot().ExpectedPSN; e > 0xffffff || e != s.it(4) {
			t.Errorf("start %#x: expects %#x", start, e)
		}
	}
}

// TestOtherFramingIsAnotherSource: RoCE v1 with the addresses of a v2
// connection does not belong to it.
func TestOtherFramingIsAnotherSource(t *testing.T) {
	s := newScript(t, options{Framing: wire.FramingV2IPv6})
	path := pathTo(qpnA, wire.FramingV2IPv6)
	path.Framing = wire.FramingV1
	must(t, s.path.Init(path))
	s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectNothing()
	if got := s.qp.Snapshot().LastDrop.String(); got != "source" {
		t.Errorf("dropped at %s", got)
	}
}
