package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// readScript has a READ of four packets under way; data is what the peer has.
func readScript(t *testing.T, o options) (s *script, data []byte) {
	t.Helper()
	s = newScript(t, o)
	data = make([]byte, 3*s.mtu()+10)
	fill(data, 42)
	s.Read(1, len(data))
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(0)), roctest.AckReq(true),
		roctest.RETH(wire.RETH{VA: 0x1000, RKey: 0x77, DMALen: uint32(len(data))}))
	return s, data
}

// part is response i of the READ in readScript, as FIRST, MIDDLE or LAST.
func (s *script) part(data []byte, i int) roctest.Packet {
	op := []wire.Opcode{
		wire.RCReadRespFirst, wire.RCReadRespMiddle, wire.RCReadRespMiddle,
		wire.RCReadRespLast,
	}[i]
	return s.partAs(op, data, i)
}

func (s *script) partAs(op wire.Opcode, data []byte, i int) roctest.Packet {
	end := min(len(data), (i+1)*s.mtu())
	return response(op, s.us(uint32(i)), data[i*s.mtu():end])
}

// readDone wants the READ complete with its data.
func (s *script) readDone(data []byte) {
	s.t.Helper()
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCRead, ByteLen: uint32(len(data))})
	if string(s.buf[:len(data)]) != string(data) {
		s.t.Fatal("the READ brought other data")
	}
	s.ExpectDeadline(0)
}

// again wants the READ repeated from response i on.
func (s *script) again(data []byte, i int) {
	s.t.Helper()
	off := i * s.mtu()
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(uint32(i))),
		roctest.RETH(wire.RETH{
			VA: 0x1000 + uint64(off), RKey: 0x77, DMALen: uint32(len(data) - off),
		}))
	s.ExpectNothing()
}

// TestReadResponseLost: each response in turn; what follows the lost one asks for
// the rest at once, the last one is missed by the timer. The peer begins its
// answer anew, or continues with MIDDLE and LAST as rxe does.
func TestReadResponseLost(t *testing.T) {
	for lost := range 4 {
		for _, continues := range []bool{false, true} {
			s, data := readScript(t, options{})
			for i := range 4 {
				if i != lost {
					s.Recv(s.part(data, i))
				}
			}
			if lost == 3 {
				s.ExpectNothing()
				s.Advance(68 * roce.Millisecond)
			} else {
				s.ExpectCount(counter.ImpliedNAK, 1)
			}
			s.again(data, lost)
			for i := lost; i < 4; i++ {
				p := s.part(data, i)
				switch {
				case continues && lost > 0:
				case i == 3 && lost == 3:
					p = s.partAs(wire.RCReadRespOnly, data, i)
				case i == lost:
					p = s.partAs(wire.RCReadRespFirst, data, i)
				}
				s.Recv(p)
			}
			s.readDone(data)
			s.ExpectState(roce.StateRTS)
		}
	}
}

// TestReadRetryExceeded: a READ whose answers never come.
func TestReadRetryExceeded(t *testing.T) {
	s, data := readScript(t, options{RetryCnt: 2})
	s.Recv(s.part(data, 0))
	for range 2 {
		s.Advance(68 * roce.Millisecond)
		s.again(data, 1)
	}
	s.Advance(68 * roce.Millisecond)
	s.ExpectNothing()
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr))
}

// TestImpliedNAK: an acknowledge behind a READ without its data completes what
// is before the READ and repeats it; the acknowledge itself counts for nothing.
func TestImpliedNAK(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Read(2, 8)
	s.Send(3, 4)
	for i := range uint32(3) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	s.Recv(ack(s.us(2)))
	s.ExpectCQE(done(1, roce.WCSend))
	s.ExpectNoCQE()
	s.Expect(roctest.PSN(s.us(1)), roctest.Opcode(wire.RCReadRequest))
	s.Expect(roctest.PSN(s.us(2)), roctest.Opcode(wire.RCSendOnly))
	s.Recv(response(wire.RCReadRespOnly, s.us(1), make([]byte, 8)), ack(s.us(2)))
	s.ExpectCQE(roce.Completion{WRID: 2, Opcode: roce.WCRead, ByteLen: 8}, done(3, roce.WCSend))
	s.ExpectCount(counter.ImpliedNAK, 1)
}

// TestReadResponseAcknowledges all SENDs and WRITEs before it.
func TestReadResponseAcknowledges(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpWrite, SGList: s.sge(0, 4)})
	s.Read(3, 0)
	for i := range uint32(3) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	s.Recv(response(wire.RCReadRespOnly, s.us(2), nil))
	s.ExpectCQE(done(1, roce.WCSend), done(2, roce.WCWrite), done(3, roce.WCRead))
}

// TestBadResponses: what the peer may not answer ends the QP.
func TestBadResponses(t *testing.T) {
	mtu := defaults.MTU.Bytes()
	for name, bad := range map[string]func(s *script, data []byte) roctest.Packet{
		"short first": func(s *script, data []byte) roctest.Packet {
			return response(wire.RCReadRespFirst, s.us(0), data[:mtu-4])
		},
		"long last": func(s *script, data []byte) roctest.Packet {
			return response(wire.RCReadRespFirst, s.us(0), make([]byte, mtu+4))
		},
		"only for many": func(s *script, data []byte) roctest.Packet {
			return response(wire.RCReadRespOnly, s.us(0), data[:mtu])
		},
		"middle for first": func(s *script, data []byte) roctest.Packet {
			return response(wire.RCReadRespMiddle, s.us(0), data[:mtu])
		},
		"NAK syndrome": func(s *script, data []byte) roctest.Packet {
			p := response(wire.RCReadRespFirst, s.us(0), data[:mtu])
			p.AETH.Syndrome = wire.NAKInvalidRequest
			return p
		},
		"atomic acknowledge": func(s *script, _ []byte) roctest.Packet {
			return roctest.Packet{Opcode: wire.RCAtomicAck, PSN: s.us(0)}
		},
		"reserved syndrome": func(s *script, _ []byte) roctest.Packet {
			return ackWith(s.us(0), 0x40)
		},
	} {
		s, data := readScript(t, options{})
		s.Send(2, 4)
		s.Expect(roctest.Opcode(wire.RCSendOnly))
		before := string(s.buf)
		s.Recv(bad(s, data))
		s.ExpectCQE(failed(1, roce.StatusBadRespErr), failed(2, roce.StatusWRFlushErr))
		s.ExpectState(roce.StateErr)
		if string(s.buf) != before {
			t.Errorf("%s: data was stored", name)
		}
	}
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Expect()
	s.Recv(response(wire.RCReadRespOnly, s.us(0), []byte("data")))
	s.ExpectCQE(failed(1, roce.StatusBadRespErr))
}

// TestReadIntoBadMemory: a key that is gone when the data comes.
func TestReadIntoBadMemory(t *testing.T) {
	s, data := readScript(t, options{})
	s.Recv(s.part(data, 0))
	s.keys.Deregister(s.region)
	s.Recv(s.part(data, 1))
	s.ExpectCQE(failed(1, roce.StatusLocProtErr))
	s.ExpectState(roce.StateErr)
}

// TestNAKInsideRead: a READ that is refused after part of its data.
func TestNAKInsideRead(t *testing.T) {
	s, data := readScript(t, options{})
	s.Recv(s.part(data, 0), ackWith(s.us(1), wire.NAKRemoteAccessError))
	s.ExpectCQE(failed(1, roce.StatusRemAccessErr))
}

// TestMaxRdAtomic: not more READs than allowed are outstanding, and everything
// behind the one that waits waits too.
func TestMaxRdAtomic(t *testing.T) {
	s := newScript(t, options{MaxRd: 2})
	for i := range uint64(3) {
		s.Read(i, 1)
	}
	s.Send(3, 1)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectNothing()
	s.Recv(response(wire.RCReadRespOnly, s.us(0), []byte("x")))
	s.Expect(roctest.PSN(s.us(2)), roctest.Opcode(wire.RCReadRequest))
	s.Expect(roctest.PSN(s.us(3)), roctest.Opcode(wire.RCSendOnly))

	s = newScript(t, options{Attr: func(a *roce.Attr) { a.MaxRdAtomic = 0 }})
	wantErr(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpRead}), roce.ErrInvalid,
		"MAX_QP_RD_ATOMIC")
}

// TestFence holds a request back until earlier READs are complete; without it
// SENDs pass.
func TestFence(t *testing.T) {
	s := newScript(t, options{})
	s.Read(1, 2*s.mtu())
	s.Send(2, 1)
	s.Post(roce.SendWR{WRID: 3, Opcode: roce.OpSend, Flags: roce.SendFence, SGList: s.sge(0, 1)})
	s.Expect(roctest.Opcode(wire.RCReadRequest))
	s.Expect(roctest.PSN(s.us(2)))
	s.ExpectNothing()
	s.Recv(response(wire.RCReadRespFirst, s.us(0), make([]byte, s.mtu())))
	s.ExpectNothing()
	s.Recv(response(wire.RCReadRespLast, s.us(1), make([]byte, s.mtu())))
	s.Expect(roctest.PSN(s.us(3)))
}

// TestLongRead takes half of the PSN space, so nothing else may be outstanding
// before it; a byte more is no message.
func TestLongRead(t *testing.T) {
	s := newScript(t, options{SQPSN: 0x800000, SGE: roce.MaxSGE})
	piece := make([]byte, roce.MaxMessage/roce.MaxSGE) // never touched
	big, err := s.keys.RegisterAt(s.domain, piece, 0, allRights)
	must(t, err)
	wr := roce.SendWR{WRID: 2, Opcode: roce.OpRead}
	for range roce.MaxSGE {
		wr.SGList = append(wr.SGList, roce.SGE{Length: uint32(len(piece)), LKey: big.LKey()})
	}
	s.Send(1, 1)
	s.Post(wr)
	s.Send(3, 1)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectNothing()
	s.Recv(ack(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)), roctest.RETH(wire.RETH{DMALen: roce.MaxMessage}))
	s.ExpectNothing()
	first := response(wire.RCReadRespFirst, s.us(1), s.buf[:s.mtu()])
	s.Recv(first)
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(2)), roctest.Opcode(wire.RCReadRequest))
	s.Recv(first)
	s.ExpectCount(counter.DropGhostResponse, 1)

	wr.SGList[0].Length++
	wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, "2147483649 bytes")
}

// TestReadsForbiddenWhileQueued: MAX_QP_RD_ATOMIC 0 fails READs that wait.
func TestReadsForbiddenWhileQueued(t *testing.T) {
	s := newScript(t, options{})
	s.move(roce.StateSQD)
	s.Read(1, 8)
	s.modify(roce.AttrMaxRdAtomic, func(a *roce.Attr) { a.MaxRdAtomic = 0 })
	s.move(roce.StateRTS)
	s.ExpectNothing()
	s.ExpectCQE(failed(1, roce.StatusLocQPOpErr))
	s.ExpectState(roce.StateErr)
}

// TestReplayGivesWay: a READ that is repeated for nothing, because its answer was
// only late, does not count against those that the peer may have outstanding.
func TestReplayGivesWay(t *testing.T) {
	s := newScript(t, options{MaxRd: 1})
	s.Recv(s.readRequest(s.it(0), 0, 4))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)))
	write := s.writeRequest(wire.RCWriteOnly, s.it(1), 0, 0, nil)
	write.AckReq = true
	s.Recv(write, s.readRequest(s.it(0), 0, 4), s.readRequest(s.it(2), 0, 4))
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 2)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(2)), roctest.MSN(3))
	s.ExpectNothing()
	s.ExpectState(roce.StateRTS)
}
