package roce_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// givenFields are those that a QP gets when it is made and keeps for its life, and of
// the attributes' copies those that are set anew before they are looked at again.
var givenFields = []string{
	"qp.transport.num", "qp.transport.typ", "qp.transport.service",
	"qp.transport.inline", "qp.transport.party._", "qp.transport.count", "qp.transport.trace",
	"qp.transport.domain", "qp.transport.onEvent", "qp.transport.posts",
	"qp.transport.common",
	"qp.req.transport", "qp.req.sendCQ", "qp.req.configured", "qp.req.sigAll",
	"qp.req.portMTU", "qp.req.mostMTU",
	"qp.rsp.transport", "qp.rsp.recvCQ", "qp.rsp.xrcd",
	"qp.transport.ipID", "qp.transport.path",
	"qp.rsp.sges", "qp.rsp.tolerance", "qp.transport.congestion", "qp.transport.congestion.config",
	"qp.transport.congestion.cnp",
}

// A disturbance leaves a QP in a state from which RESET has to bring it back.
type disturbance struct {
	name string
	o    options
	do   func(s *script)
}

var disturbances = []disturbance{
	{"work under way", options{Rights: atomicRights}, func(s *script) {
		for i := range uint64(3) {
			s.Read(i, 600)
			s.Expect()
		}
		s.PostRecv(1, 0, 64)
		s.Recv(response(wire.RCReadRespFirst, s.us(0), make([]byte, s.mtu())))
	}},
	{
		"another partition",
		options{
			PKeys: roce.PKeyTable{wire.DefaultPKey, 0x8005},
			Attr:  func(a *roce.Attr) { a.PKeyIndex = 1 },
		},
		func(*script) {},
	},
	{"probe of go-back-N", options{}, func(s *script) {
		s.now = roce.Second
		s.lose()
		s.trip(2, 10*roce.Microsecond)
		s.Send(1, 4)
		s.Expect()
		s.Advance(probeLeast)
		s.move(roce.StateSQD)
	}},
	{"probes of go-back-N", options{}, func(s *script) {
		s.now = roce.Second
		s.lose()
		s.trip(2, 10*roce.Microsecond)
		s.Send(1, 4)
		s.Expect()
		s.probed(probeLeast, 3)
	}},
	{"RNR wait", options{}, func(s *script) {
		s.sendMany(3)
		s.Recv(ackWith(s.us(1), wire.RNRSyndrome(20)))
	}},
	{"sent again for a NAK", options{}, func(s *script) {
		s.sendMany(3)
		s.Recv(ackWith(s.us(1), wire.NAKPSNSequenceError))
		s.Expect(roctest.PSN(s.us(1)))
		must(s.t, s.qp.Modify(s.now, &roce.Attr{State: roce.StateSQD}, roce.AttrState))
	}},
	{"word of the first packet", options{}, func(s *script) { s.qp.TellEstablished() }},
	{"timer postponed", options{}, func(s *script) {
		s.sendMany(1)
		at, _ := s.qp.NextDeadline()
		s.now = at
		if !s.qp.PostponeAckTimer(s.now, s.now) {
			s.t.Fatal("not postponed")
		}
	}},
	{"no ACK asked for yet", options{}, func(s *script) {
		s.Send(1, 3*s.mtu())
		s.Expect(roctest.AckReq(false))
	}},
	{"no credits", options{}, func(s *script) {
		s.sendMany(1)
		s.Recv(roctest.Packet{
			Opcode: wire.RCAck, PSN: s.us(0),
			AETH: wire.AETH{Syndrome: wire.ACKSyndrome(0), MSN: 1},
		})
		s.Recv(request(wire.RCWriteOnly, s.it(0), nil)) // and none to give
	}},
	{"rate limit", options{}, func(s *script) {
		s.rate(7)
		s.Send(1, 200)
		s.Send(2, 200)
		s.Expect()
		s.ExpectNothing()
	}},
	{"page wait of a SEND", options{Paged: true}, func(s *script) {
		s.Send(1, 64)
		s.miss(0, 5)
		s.ExpectNothing()
	}},
	{"looking at a result", options{Paged: true}, func(s *script) {
		_, piece := s.bytesApart(16 << 10)
		s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpRead, SGList: []roce.SGE{piece}})
		s.ExpectNothing()
	}},
	{"FLUSH under way", flushBeside, func(s *script) {
		s.Recv(s.flushRequest(s.it(0), wire.FlushPersistent, wire.FlushRange, 0, 8))
		s.ExpectNothing()
	}},
	{"page wait of a READ", options{Paged: true}, func(s *script) {
		s.Recv(s.readRequest(s.it(0), 0, 64))
		s.miss(0, 5)
		s.ExpectNothing()
	}},
	{"page wait of a request", options{Paged: true}, func(s *script) {
		s.miss(0, 5)
		s.Recv(s.readRequest(s.it(0), 0, 64))
	}},
	{"cannot be sent", options{}, func(s *script) {
		s.sendMany(1)
		list := s.sge(0, 64)
		list[0].LKey ^= 1 << 8
		s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpSend, SGList: list})
		s.ExpectNothing()
	}},
	{"SEND under way", options{}, func(s *script) {
		s.PostRecv(3, 0, 1024)
		s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())))
	}},
	{"WRITE under way", options{}, func(s *script) {
		s.Recv(s.writeRequest(wire.RCWriteFirst, s.it(0), 64, 1024, make([]byte, s.mtu())))
	}},
	{"gap", options{}, func(s *script) {
		s.Recv(request(wire.RCWriteOnly, s.it(3), nil))
	}},
	{"RNR of ours", options{}, func(s *script) {
		s.Recv(request(wire.RCSendOnly, s.it(0), nil))
	}},
	{"ACK passed", options{}, func(s *script) {
		s.Send(1, 64)
		p := request(wire.RCWriteOnly, s.it(0), nil)
		p.AckReq = true
		s.Recv(p)
		s.Expect(roctest.PSN(s.us(0)))
	}},
	{"READ answered", options{}, func(s *script) {
		s.Recv(s.readRequest(s.it(0), 0, 64))
		s.Expect(roctest.Opcode(wire.RCReadRespOnly))
	}},
	{"early packets", options{Ext: 3, Window: 300}, func(s *script) {
		s.Read(1, 1024)
		s.Expect()
		s.Recv(request(wire.RCWriteOnly, s.it(3), nil),
			response(wire.RCReadRespMiddle, s.us(2), make([]byte, s.mtu())))
	}},
	{"gap closed", options{Ext: 3, Window: 300}, func(s *script) {
		s.Recv(request(wire.RCWriteOnly, s.it(1), nil), request(wire.RCWriteOnly, s.it(0), nil))
	}},
	{"fatal", options{CQDepth: 1}, func(s *script) {
		s.sendMany(3)
		s.Recv(ack(s.us(2)))
		s.ExpectState(roce.StateErr)
	}},
	{"failed", options{}, func(s *script) {
		s.sendMany(3)
		s.Recv(ackWith(s.us(1), wire.NAKInvalidRequest))
		s.ExpectState(roce.StateErr)
	}},
	{"wrong key", options{}, func(s *script) {
		s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(0), 1<<40, 64, make([]byte, 64)))
		s.ExpectState(roce.StateErr)
	}},
	{"draining", options{}, func(s *script) {
		s.sendMany(1)
		s.modify(roce.AttrState|roce.AttrEnSQDAsyncNotify, func(a *roce.Attr) {
			a.State = roce.StateSQD
		})
	}},
	{"SQE", options{Type: roce.TypeUC}, func(s *script) {
		list := s.sge(0, 64)
		list[0].LKey ^= 1 << 8
		s.Post(roce.SendWR{Opcode: roce.OpSend, SGList: list})
		s.ExpectNothing()
		s.ExpectState(roce.StateSQE)
	}},
	{"no flow control", options{}, func(s *script) {
		s.move(roce.StateReset)
		a := s.o.attr(qpnB)
		a.NoFlowControl, a.State = true, roce.StateInit
		must(s.t, s.qp.Modify(0, &a, maskInit))
		a.State = roce.StateRTR
		must(s.t, s.qp.Modify(0, &a, maskRTR|roce.AttrFlowControl))
	}},
	{"keepalive that asks", options{}, func(s *script) {
		s.now = roce.Second
		s.askPeer(0)
	}},
	{"keepalive that has asked", options{}, func(s *script) { s.askPeer(1) }},
	{"keepalive that was not answered", options{}, func(s *script) { s.askPeer(100) }},
	{"large packet that is lost", options{MTU: wire.MTU4096, RetryCnt: 1}, func(s *script) {
		s.Send(1, 4096)
		s.Expect()
		at, _ := s.qp.NextDeadline()
		s.now = at
		s.qp.HandleDeadline(s.now)
	}},
	{"congestion", options{Congestion: dcqcn}, func(s *script) {
		s.now = roce.Millisecond
		s.sendMany(2)
		s.Recv(cnp())
		s.mark(wire.ECNCE)
		s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	}},
	{"SRQ of XRC", options{Type: roce.TypeXRCRecv}, func(s *script) {
		s.PostRecv(1, 0, 64)
		s.Recv(xrc(srqNum, request(wire.RCSendOnly, s.it(0), nil)))
	}},
}

// askPeer has a keepalive send so many probes at most, and become due once more.
func (s *script) askPeer(probes int) {
	s.t.Helper()
	must(s.t, s.qp.Modify(s.now, &roce.Attr{Keepalive: 1000}, roce.AttrKeepalive))
	for n := 0; ; n++ {
		at, ok := s.qp.NextDeadline()
		if !ok {
			return // it is in ERR
		}
		s.now = at
		s.qp.HandleDeadline(s.now)
		if n == probes {
			return
		}
		for s.qp.NextPacket(s.now, s.frame) > 0 {
		}
	}
}

// TestResetForgetsEachField: whatever happened to a QP, RESET leaves every field as it
// was in a new one, and a connection after it begins as the first one did.
func TestResetForgetsEachField(t *testing.T) {
	never := map[string]bool{}
	for _, tt := range disturbances {
		t.Run(tt.name, func(t *testing.T) {
			s := newScriptIn(t, tt.o, roce.StateReset)
			made := s.qp.Fields()
			s.connect(qpnB, s.o, roce.StateRTS)
			connected := s.qp.Fields()
			tt.do(s)
			for name, value := range s.qp.Fields() {
				if _, known := never[name]; !known {
					never[name] = true
				}
				if value != made[name] {
					never[name] = false
				}
			}
			s.move(roce.StateReset)
			expectFields(t, "after RESET", s.qp.Fields(), made)
			s.connect(qpnB, s.o, roce.StateRTS)
			expectFields(t, "connected again", s.qp.Fields(), connected)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(never)) {
		if never[name] && !slices.Contains(givenFields, name) {
			t.Errorf("%s is never disturbed: nobody would see that RESET forgets it", name)
		}
	}
}

// expectFields compares the fields of a QP, without those that it keeps.
func expectFields(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] && !slices.Contains(givenFields, name) {
			t.Errorf("%s: %s is %s, not %s", when, strings.TrimPrefix(name, "qp."), got[name],
				want[name])
		}
	}
}
