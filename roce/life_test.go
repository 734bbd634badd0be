package roce_test

import (
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestSQDrained: the event comes once, when everything that had begun is complete,
// and only when it was asked for; query says so meanwhile.
func TestSQDrained(t *testing.T) {
	for _, notify := range []bool{false, true} {
		for _, begun := range []int{0, 1, 3} {
			s := newScript(t, options{})
			for i := range uint64(begun) {
				s.Send(i, 4)
				s.Expect()
			}
			s.Send(9, 4)
			mask := roce.AttrState
			if notify {
				mask |= roce.AttrEnSQDAsyncNotify
			}
			s.modify(mask, func(a *roce.Attr) { a.State = roce.StateSQD })
			var want []roce.Event
			if notify {
				want = append(want, roce.EventSQDrained)
			}
			if begun > 0 {
				s.ExpectEvents()
				if !s.qp.Attr().SQDraining {
					t.Error("not draining")
				}
				a := s.qp.Attr()
				a.State = roce.StateRTS
				wantErr(t, s.qp.Modify(0, &a, roce.AttrState), roce.ErrState, "draining")
				s.modify(roce.AttrState|roce.AttrMinRNRTimer, func(a *roce.Attr) {
					a.State, a.MinRNRTimer = roce.StateSQD, 3 // the wish stays
				})
				s.Recv(ack(s.us(uint32(begun) - 1)))
			}
			s.ExpectNothing() // what had not begun waits
			s.ExpectEvents(want...)
			if s.qp.Attr().SQDraining {
				t.Error("draining")
			}
			s.Recv(ack(s.us(0)))
			s.move(roce.StateSQD)
			s.ExpectEvents()
			s.move(roce.StateRTS)
			s.Expect(roctest.PSN(s.us(uint32(begun))))
			s.ExpectEvents()
		}
	}
}

// TestSQDOfEachType: the others drain too; a message under way is finished.
func TestSQDOfEachType(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUC, roce.TypeXRCSend} {
		s := newScript(t, options{Type: typ})
		s.Send(1, 600)
		s.Send(2, 4)
		s.Expect()
		s.modify(roce.AttrState|roce.AttrEnSQDAsyncNotify, func(a *roce.Attr) {
			a.State = roce.StateSQD
		})
		s.ExpectEvents()
		s.Expect()
		s.Expect()
		s.ExpectNothing()
		if typ == roce.TypeXRCSend {
			s.ExpectEvents()
			s.Recv(xrc(0, ack(s.us(2))))
		}
		s.ExpectEvents(roce.EventSQDrained)
		s.ExpectCQE(done(1, roce.WCSend))
		s.ExpectNoCQE()
	}
}

// TestCommEst: the first good packet in RTR raises the event, and no other.
func TestCommEst(t *testing.T) {
	s := newScriptIn(t, options{}, roce.StateRTR)
	bad := request(wire.RCWriteOnly, s.it(0), nil)
	bad.BadICRC = true
	s.Recv(bad)
	s.ExpectEvents()
	s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectEvents(roce.EventCommEst)
	s.Recv(request(wire.RCWriteOnly, s.it(1), nil))
	s.ExpectEvents()

	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC} {
		s = newScript(t, options{Type: typ})
		if typ == roce.TypeUC {
			s.Recv(s.uc(wire.RCWriteOnly, 0))
		} else {
			s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
		}
		s.ExpectEvents()
	}
	s = newScript(t, options{})
	s.qp.TellEstablished() // who wants it hears of it in RTS, too
	s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectEvents(roce.EventCommEst)
	s.Recv(request(wire.RCWriteOnly, s.it(1), nil))
	s.ExpectEvents()
	s = newScriptIn(t, options{Type: roce.TypeUD}, roce.StateRTR)
	s.Recv(datagram(wire.UDSendOnly, testQKey, nil))
	s.ExpectEvents()
}

// TestRefusalIsTold: by the completion of the receive that the message had, and
// else by an event.
func TestRefusalIsTold(t *testing.T) {
	w := func(s *script, op wire.Opcode) roctest.Packet {
		p := request(op, s.it(0), []byte{1})
		p.RETH = wire.RETH{VA: 1, RKey: 1, DMALen: 1}
		return p
	}
	for _, tt := range []struct {
		name   string
		packet func(s *script) roctest.Packet
		events []roce.Event
		status roce.Status
	}{
		{
			"WRITE", func(s *script) roctest.Packet { return w(s, wire.RCWriteOnly) },
			[]roce.Event{roce.EventQPAccessErr},
			0,
		},
		{
			"WRITE with imm", func(s *script) roctest.Packet { return w(s, wire.RCWriteOnlyImm) },
			nil, roce.StatusLocAccessErr,
		},
		{"order", func(s *script) roctest.Packet {
			return request(wire.RCSendMiddle, s.it(0), make([]byte, s.mtu()))
		}, []roce.Event{roce.EventQPReqErr}, 0},
		{"too long", func(s *script) roctest.Packet {
			return request(wire.RCSendOnly, s.it(0), make([]byte, 99))
		}, nil, roce.StatusLocLenErr},
		{"short first", func(s *script) roctest.Packet {
			return request(wire.RCSendFirst, s.it(0), make([]byte, 9))
		}, nil, roce.StatusRemInvReqErr},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, options{})
			s.PostRecv(1, 0, 64)
			s.PostRecv(2, 0, 64)
			s.Recv(tt.packet(s))
			s.ExpectEvents(tt.events...)
			s.ExpectState(roce.StateErr)
			if tt.status == 0 {
				tt.status = roce.StatusWRFlushErr
			}
			s.ExpectRecvCQE(failed(1, tt.status), failed(2, roce.StatusWRFlushErr))
		})
	}
}

// TestQPFatal: a completion that finds no room ends the QP, with one event, be it a
// good one or one of a failure.
func TestQPFatal(t *testing.T) {
	s := newScript(t, options{CQDepth: 2, Unsignaled: false})
	for i := range uint64(4) {
		s.Send(i, 1)
		s.Expect()
	}
	s.Recv(ack(s.us(3)))
	s.ExpectState(roce.StateErr)
	s.ExpectEvents(roce.EventQPFatal)
	s.ExpectCount(counter.CQOverrun, 2)
	s.ExpectCQE(done(0, roce.WCSend), done(1, roce.WCSend))

	s = newScript(t, options{CQDepth: 1})
	s.Send(1, 1)
	s.Send(2, 1)
	s.Expect()
	s.Expect()
	s.Recv(ack(s.us(0)), ackWith(s.us(1), wire.NAKInvalidRequest))
	s.ExpectState(roce.StateErr)
	s.ExpectEvents(roce.EventQPFatal)
	s.Send(3, 1)
	s.ExpectNothing()
	s.ExpectEvents()
}

// TestQPFatalOfFlush: when the flush of a QP that has failed overruns the CQ, the events
// come in the step of the failure, since there may be no other: first the end of the
// work, then the overrun.
func TestQPFatalOfFlush(t *testing.T) {
	s := newScript(t, options{CQDepth: 1})
	s.Send(1, 1)
	s.Send(2, 1)
	s.Expect()
	s.Expect()
	s.Recv(ackWith(s.us(0), wire.NAKInvalidRequest))
	s.ExpectState(roce.StateErr)
	s.ExpectCount(counter.CQOverrun, 1)
	s.ExpectEvents(roce.EventQPFatal)
	s.ExpectNothing()
	s.ExpectEvents()

	s = newScript(t, options{CQDepth: 1, SRQ: pairSRQ(t, defaults)})
	s.Send(1, 1)
	s.Send(2, 1)
	s.Expect()
	s.Expect()
	s.Recv(ackWith(s.us(0), wire.NAKInvalidRequest))
	s.ExpectEvents(roce.EventQPLastWQEReached, roce.EventQPFatal)
	s.ExpectNothing()
	s.ExpectEvents()
}

// TestErrFlushesEachType: a QP of any type that ends completes all that it has, in
// order, and what is posted then.
func TestErrFlushesEachType(t *testing.T) {
	for _, typ := range []roce.QPType{
		roce.TypeRC, roce.TypeUC, roce.TypeUD, roce.TypeGSI, roce.TypeRawPacket, roce.TypeXRCSend,
	} {
		t.Run(typ.String(), func(t *testing.T) {
			s := newScript(t, options{Type: typ})
			post := func(id uint64) {
				wr := roce.SendWR{WRID: id, Opcode: roce.OpSend, SGList: s.sge(0, 64)}
				if typ == roce.TypeUD || typ == roce.TypeGSI {
					wr.AH = s.handle()
				}
				s.Post(wr)
				if typ != roce.TypeXRCSend {
					s.PostRecv(id, 0, 64)
				}
			}
			flushed := func(id uint64) {
				s.ExpectCQE(failed(id, roce.StatusWRFlushErr))
				if typ != roce.TypeXRCSend {
					s.ExpectRecvCQE(failed(id, roce.StatusWRFlushErr))
				}
			}
			for id := range uint64(3) {
				post(id)
			}
			s.move(roce.StateErr)
			for id := range uint64(3) {
				flushed(id)
			}
			post(7)
			if n := s.qp.NextPacket(s.now, nil); n != 0 {
				t.Errorf("wrote %d bytes to nothing", n)
			}
			flushed(7)
			s.ExpectNoCQE()
			s.ExpectEvents()
			s.ExpectDeadline(0)
		})
	}
}

// TestNAKWithoutFrame: a QP that has a NAK to send writes nothing to no frame, and
// keeps it.
func TestNAKWithoutFrame(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(request(wire.RCSendMiddle, s.it(0), make([]byte, s.mtu())))
	if n := s.qp.NextPacket(s.now, nil); n != 0 {
		t.Errorf("wrote %d bytes to nothing", n)
	}
	s.ExpectAck(s.it(0), wire.NAKInvalidRequest, 0)
}

// TestResetOfEachType: after work of every kind, RESET leaves a QP as it was made:
// the snapshot is that of a new one, on the way to RTS too.
func TestResetOfEachType(t *testing.T) {
	for _, typ := range []roce.QPType{
		roce.TypeRC, roce.TypeUC, roce.TypeUD, roce.TypeGSI, roce.TypeRawPacket,
		roce.TypeXRCSend, roce.TypeXRCRecv,
	} {
		for _, ext := range []roce.Extensions{0, 3} {
			if ext != 0 && typ != roce.TypeRC {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", typ, ext), func(t *testing.T) {
				o := options{Type: typ, Ext: ext, Pool: 8, Rights: atomicRights, Window: 300}
				s, fresh := newScript(t, o), newScript(t, o)
				s.work()
				s.move(roce.StateReset)
				fresh.move(roce.StateReset)
				if got, want := s.qp.Snapshot(), fresh.qp.Snapshot(); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				if got, want := s.qp.Attr(), fresh.qp.Attr(); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				s.ExpectNoCQE()
				s.ExpectDeadline(0)
				s.ExpectNothing()
				if s.pool.Free() != 8 || s.qp.WantsCredit() {
					t.Error("something is kept")
				}
				s.connect(qpnB, s.o, roce.StateRTS)
				fresh.connect(qpnB, s.o, roce.StateRTS)
				if got, want := s.qp.Snapshot(), fresh.qp.Snapshot(); got != want {
					t.Errorf("connected: %+v, want %+v", got, want)
				}
			})
		}
	}
}

// work gives a QP some of everything that its type knows.
func (s *script) work() {
	s.t.Helper()
	post := func(wr roce.SendWR) { _ = s.qp.PostSend(&wr) }
	post(roce.SendWR{Opcode: roce.OpSend, SGList: s.sge(0, 600), AH: s.handle()})
	post(roce.SendWR{Opcode: roce.OpRead, SGList: s.sge(0, 600)})
	post(roce.SendWR{Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8)})
	_ = s.postRecv(&roce.RecvWR{SGList: s.sge(0, 1024)})
	for range 3 {
		s.qp.NextPacket(s.now, s.frame)
	}
	rc := request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu()))
	s.Recv(rc, xrc(srqNum, rc), s.uc(wire.RCSendFirst, 0), datagram(wire.UDSendOnly, 0, nil),
		datagram(wire.UDSendOnly, testQKey, make([]byte, 1000)))
	late := request(wire.RCSendLast, s.it(9), []byte{1})
	s.Recv(late, xrc(srqNum, late), ack(s.us(0)), xrc(0, ack(s.us(0))))
	rnr := ackWith(s.us(1), wire.RNRSyndrome(1))
	s.Recv(rnr, xrc(0, rnr))
	_ = s.qp.HandleFrame(s.now, make([]byte, 20), nil)
}
