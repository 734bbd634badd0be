package roce_test

import (
	"errors"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A mishap ends a QP, or the sends of an unreliable one.
type mishap struct {
	name string
	o    options
	do   func(s *script)
}

var mishaps = []mishap{
	{"NAK", options{}, func(s *script) {
		s.sendMany(1)
		s.Recv(ackWith(s.us(0), wire.NAKInvalidRequest))
	}},
	{"no retries left", options{RetryCnt: 1}, func(s *script) {
		s.sendMany(1)
		s.Advance(68 * roce.Millisecond)
		s.Expect()
		s.Advance(68 * roce.Millisecond)
	}},
	{"no RNR retries left", options{Attr: func(a *roce.Attr) { a.RNRRetry = 0 }}, func(s *script) {
		s.sendMany(1)
		s.Recv(ackWith(s.us(0), wire.RNRSyndrome(1)))
	}},
	{"bad response", options{}, func(s *script) {
		s.sendMany(1)
		s.Recv(atomicAck(s.us(0), 1))
	}},
	{"cannot be sent", options{}, func(s *script) {
		s.Post(roce.SendWR{Opcode: roce.OpSend, SGList: s.foreign()})
		s.ExpectNothing()
	}},
	{"cannot be sent on UC", options{Type: roce.TypeUC}, func(s *script) {
		s.Post(roce.SendWR{Opcode: roce.OpSend, SGList: s.foreign()})
		s.Send(2, 4)
		s.ExpectNothing()
	}},
	{"READ cannot be stored", options{}, func(s *script) {
		s.Read(1, 64)
		s.Expect()
		s.keys.Deregister(s.region)
		s.Recv(response(wire.RCReadRespOnly, s.us(0), make([]byte, 64)))
	}},
	{"SEND too long", options{}, func(s *script) {
		s.PostRecv(1, 0, 4)
		s.Recv(request(wire.RCSendOnly, s.it(0), make([]byte, 5)))
	}},
	{"SEND too long for the receive of an SRQ", options{Type: roce.TypeXRCRecv}, func(s *script) {
		s.PostRecv(1, 0, 4)
		s.Recv(xrc(srqNum, request(wire.RCSendOnly, s.it(0), make([]byte, 5))))
	}},
	{"receive without memory", options{}, func(s *script) { receiveNowhere(s, wire.RCSendOnly) }},
	{"receive without memory on UC", options{Type: roce.TypeUC}, func(s *script) {
		receiveNowhere(s, wire.UCSendOnly)
	}},
	{"datagram without memory", options{Type: roce.TypeUD}, func(s *script) {
		must(s.t, s.postRecv(&roce.RecvWR{SGList: s.foreign()}))
		s.Recv(datagram(wire.UDSendOnly, testQKey, nil))
	}},
	{"frame without memory", options{Type: roce.TypeRawPacket}, func(s *script) {
		must(s.t, s.postRecv(&roce.RecvWR{SGList: s.foreign()}))
		must(s.t, s.qp.HandleFrame(0, make([]byte, 60), nil))
	}},
	{"request in a message", options{}, func(s *script) {
		s.PostRecv(1, 0, 1024)
		s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())))
		s.Recv(request(wire.RCSendOnly, s.it(1), nil))
	}},
	{"request without a message", options{}, func(s *script) {
		s.Recv(request(wire.RCSendLast, s.it(0), make([]byte, 4)))
	}},
	{"WRITE to another's memory", options{}, func(s *script) {
		s.Recv(request(wire.RCWriteOnly, s.it(0), nil),
			request(wire.RCReadRequest, s.it(1), nil)) // of nothing
		s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(2), 1<<20, 4, make([]byte, 4)))
	}},
	{"READ of memory that goes", options{}, func(s *script) {
		s.Recv(s.readRequest(s.it(0), 0, 64))
		s.keys.Deregister(s.region)
		s.Expect(roctest.Opcode(wire.RCAck))
	}},
	{"FLUSH that cannot be made persistent", flushBeside, func(s *script) {
		s.Recv(s.flush(0))
		s.done(0, errors.New("no disk"))
	}},
	{"Modify", options{}, func(s *script) {
		s.Send(1, 64)
		s.PostRecv(2, 0, 64)
		s.move(roce.StateErr)
	}},
	{"Modify overruns the CQ", options{CQDepth: 1}, func(s *script) {
		s.Send(1, 64)
		s.Send(2, 64)
		s.move(roce.StateErr)
		s.ExpectEvents(roce.EventQPFatal)
	}},
	{"work of a QP in ERR overruns the CQ", options{CQDepth: 1}, func(s *script) {
		s.move(roce.StateErr)
		s.Send(1, 64)
		s.Send(2, 64)
		s.ExpectNothing()
		s.ExpectEvents(roce.EventQPFatal)
	}},
	{
		"work of a QP in SQE overruns the CQ",
		options{Type: roce.TypeUC, CQDepth: 1},
		func(s *script) {
			s.Post(roce.SendWR{Opcode: roce.OpSend, SGList: s.foreign()})
			s.ExpectNothing()
			s.Send(1, 64)
			s.ExpectNothing()
			s.ExpectEvents(roce.EventQPFatal)
			s.ExpectState(roce.StateErr)
		},
	},
	{"CQ overrun", options{CQDepth: 1}, func(s *script) {
		s.sendMany(2)
		s.Recv(ack(s.us(1)))
		s.ExpectEvents(roce.EventQPFatal)
	}},
}

// foreign names memory that is not the QP's.
func (s *script) foreign() []roce.SGE {
	list := s.sge(0, 64)
	list[0].LKey ^= 1 << 8
	return list
}

// receiveNowhere gives a SEND to a receive whose memory is not the QP's.
func receiveNowhere(s *script, op wire.Opcode) {
	s.t.Helper()
	must(s.t, s.postRecv(&roce.RecvWR{SGList: s.foreign()}))
	s.Recv(request(op, s.it(0), make([]byte, 4)))
}

// TestErrorIsToldInItsState: whoever is told of an error, by a completion or an event,
// finds the QP in the state that the error leads to.
func TestErrorIsToldInItsState(t *testing.T) {
	for _, tt := range mishaps {
		t.Run(tt.name, func(t *testing.T) {
			s, told := newScript(t, tt.o), 0
			s.told = func(what string) {
				told++
				if state := s.qp.State(); state != roce.StateErr && state != roce.StateSQE {
					t.Errorf("%s in %s", what, state)
				}
			}
			s.send.Arm(true) // for failures, as nothing here is solicited
			s.recv.Arm(true)
			if tt.do(s); told == 0 {
				t.Error("nobody was told")
			}
		})
	}
}
