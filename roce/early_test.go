package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// share is the n-th response of a READ of several whole packets, whose data is its
// number.
func (s *script) share(n uint32, last uint32) roctest.Packet {
	op := wire.RCReadRespMiddle
	switch n {
	case 0:
		op = wire.RCReadRespFirst
	case last:
		op = wire.RCReadRespLast
	}
	data := make([]byte, s.mtu())
	for i := range data {
		data[i] = byte(n + 1)
	}
	return response(op, s.us(n), data)
}

// expectRead takes a READ request for some packets of a READ at 0x1000.
func (s *script) expectRead(first, packets uint32) {
	s.t.Helper()
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(first)), roctest.RETH(wire.RETH{
		VA: 0x1000 + uint64(first)*uint64(s.mtu()), RKey: 0x77, DMALen: packets * uint32(s.mtu()),
	}))
}

// TestEarlyResponses: each hole in the data of a READ is asked for alone, one at a
// time; what came early is put in its place in its turn.
func TestEarlyResponses(t *testing.T) {
	s := newSelective(t, options{})
	s.Read(1, 8*s.mtu())
	s.expectRead(0, 8)
	s.Recv(s.share(0, 7), s.share(3, 7))
	s.expectRead(1, 2)
	s.Recv(s.share(4, 7), s.share(6, 7), s.share(7, 7), s.share(7, 7))
	s.ExpectNothing()
	s.Recv(s.share(1, 7), s.share(2, 7))
	s.expectRead(5, 1)
	s.ExpectNothing()
	p := s.share(5, 7)
	p.Opcode = wire.RCReadRespOnly
	s.Recv(p)
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCRead, ByteLen: 8 * uint32(s.mtu())})
	for n := range 8 {
		if s.buf[n*s.mtu()] != byte(n+1) {
			t.Errorf("packet %d holds %d", n, s.buf[n*s.mtu()])
		}
	}
	s.ExpectCount(counter.Retransmits, 2)
	s.ExpectCount(counter.HeldEarly, 4)
	s.ExpectDeadline(0)
	if s.pool.Free() != s.o.Pool {
		t.Error("not all is given back")
	}
}

// TestEarlyTimeout: after a timeout the hole is asked for, and not what is here.
func TestEarlyTimeout(t *testing.T) {
	s := newSelective(t, options{})
	s.Read(1, 4*s.mtu())
	s.Send(2, 4)
	s.expectRead(0, 4)
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Recv(s.share(0, 3), s.share(2, 3))
	s.expectRead(1, 1)
	s.ExpectNothing()
	s.Advance(68 * roce.Millisecond)
	s.expectRead(1, 1)
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.ExpectNothing()
}

// TestEarlyResponsesOfAll: answers of atomics and of later READs wait for the data
// before them; a SEND between, which the peer has executed, is not sent again.
func TestEarlyResponsesOfAll(t *testing.T) {
	s := newSelective(t, options{MaxRd: 8})
	s.Read(1, s.mtu())
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpFetchAdd, SGList: s.sge(1024, 8)})
	s.Send(3, 4)
	s.Post(roce.SendWR{WRID: 4, Opcode: roce.OpFetchAdd, SGList: s.sge(1032, 8)})
	s.Post(roce.SendWR{WRID: 5, Opcode: roce.OpFlush, Flush: wire.FlushGlobal})
	s.Send(6, 4)
	for i := range uint32(6) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	s.Recv(atomicAck(s.us(3), 44)) // the answers to 0 and 1 are missing
	s.expectRead(0, 1)
	s.Expect(roctest.Opcode(wire.RCFetchAdd), roctest.PSN(s.us(1)))
	s.ExpectNothing()
	s.Recv(ack(s.us(5))) // the answer to 4 is, too; it will be asked for in its turn
	s.ExpectNothing()
	s.Recv(atomicAck(s.us(1), 22))
	s.ExpectNoCQE()
	s.Recv(response(wire.RCReadRespOnly, s.us(0), make([]byte, s.mtu())))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCRead, ByteLen: uint32(s.mtu())},
		roce.Completion{WRID: 2, Opcode: roce.WCFetchAdd, ByteLen: 8}, done(3, roce.WCSend),
		roce.Completion{WRID: 4, Opcode: roce.WCFetchAdd, ByteLen: 8})
	s.ExpectWord(1024, 22)
	s.ExpectWord(1032, 44)
	s.Expect(roctest.Opcode(wire.RCFlush), roctest.PSN(s.us(4)))
	s.ExpectNothing()
	s.Recv(response(wire.RCReadRespOnly, s.us(4), nil))
	s.ExpectCQE(done(5, roce.WCFlush), done(6, roce.WCSend)) // told before
	s.ExpectDeadline(0)
}

// TestEarlyLostAgain: what was asked for is lost again when an answer to what was
// sent later comes, and costs a retry; the rest of one long answer is no proof.
func TestEarlyLostAgain(t *testing.T) {
	s := newSelective(t, options{RetryCnt: 2})
	s.Read(1, 200*s.mtu())
	s.expectRead(0, 200)
	for n := uint32(1); n < 200; n++ {
		s.Recv(s.share(n, 199))
	}
	s.expectRead(0, 1)
	s.ExpectNothing()
	s.Send(2, 4)
	s.Send(3, 4)
	s.expectPSNs(200, 201)
	s.Recv(ack(s.us(201)))
	s.expectRead(0, 1)
	s.ExpectNothing()
	s.Recv(s.share(0, 199))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCRead, ByteLen: 200 * uint32(s.mtu())},
		done(2, roce.WCSend), done(3, roce.WCSend))
}

// TestEarlyNAKs: a NAK that comes while data before it is missing is acted on when
// the data is here.
func TestEarlyNAKs(t *testing.T) {
	for name, nak := range map[string]roctest.Packet{
		"selective": sack(options{}.filled().SQPSN.Add(2), 1),
		"sequence":  ackWith(options{}.filled().SQPSN.Add(2), wire.NAKPSNSequenceError),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSelective(t, options{})
			s.Send(0, 4)
			s.Read(1, s.mtu())
			for i := range uint64(2) {
				s.Send(2+i, 4)
			}
			for i := range uint32(4) {
				s.Expect(roctest.PSN(s.us(i)))
			}
			s.Recv(nak)
			s.ExpectCQE(done(0, roce.WCSend))
			want := []uint32{1, 2}
			if name == "sequence" {
				want = append(want, 3)
			}
			s.expectPSNs(want...)
			s.Recv(response(wire.RCReadRespOnly, s.us(1), make([]byte, s.mtu())))
			s.ExpectNothing() // that was sent again already
		})
	}
}

// TestReorderResponses: with the reorder window answers may overtake each other,
// and an ACK may overtake data, for a while.
func TestReorderResponses(t *testing.T) {
	s := newScript(t, options{Ext: roce.ExtReorderWindow})
	s.Read(1, 3*s.mtu())
	s.Send(2, 4)
	s.expectRead(0, 3)
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Recv(ack(s.us(3)), s.share(2, 2), s.share(1, 2))
	s.ExpectNothing()
	s.ExpectDeadline(100 * roce.Microsecond)
	s.Recv(s.share(0, 2))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCRead, ByteLen: 3 * uint32(s.mtu())},
		done(2, roce.WCSend))
	s.ExpectDeadline(0)
	s.ExpectCount(counter.Retransmits, 0)

	s.Read(3, 2*s.mtu())
	s.Expect(roctest.PSN(s.us(4)))
	s.Recv(response(wire.RCReadRespLast, s.us(5), make([]byte, s.mtu())))
	s.Advance(100*roce.Microsecond - 1)
	s.ExpectNothing()
	s.Advance(1)
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(4)))
	s.ExpectNothing()
	s.ExpectDeadline(4096 << 14)
}

// TestReorderRequests: a gap is a loss when it is 100 us old, or 64 packets have
// overtaken it. Until then nothing is said.
func TestReorderRequests(t *testing.T) {
	w := func(s *script, n uint32) roctest.Packet {
		p := request(wire.RCWriteOnly, s.it(n), nil)
		p.AckReq = false
		return p
	}
	s := newScript(t, options{Ext: roce.ExtReorderWindow})
	s.Recv(w(s, 1))
	s.ExpectNothing()
	s.ExpectDeadline(100 * roce.Microsecond)
	s.Advance(50 * roce.Microsecond)
	s.Recv(w(s, 2))
	s.ExpectDeadline(50 * roce.Microsecond)
	s.Recv(w(s, 0))
	s.ExpectDeadline(0)
	s.Recv(w(s, 4))
	s.ExpectDeadline(100 * roce.Microsecond)
	s.Advance(100 * roce.Microsecond)
	s.Expect(roctest.Opcode(wire.RCAck), roctest.Syndrome(wire.NAKPSNSequenceError),
		roctest.PSN(s.it(3)))
	s.ExpectDeadline(0)
	s.Recv(w(s, 3))
	s.ExpectNothing()

	s = newScript(t, options{Ext: roce.ExtReorderWindow | roce.ExtSelectiveRepeat})
	for n := range uint32(63) {
		s.Recv(w(s, n+1))
		s.Recv(w(s, n+1)) // a double is no more proof than one
		s.ExpectNothing()
	}
	s.Recv(w(s, 64))
	s.Expect(roctest.Opcode(wire.SelectiveAck), roctest.PSN(s.it(0)))
	s.ExpectDeadline(0)
}

// TestEarlyResponseOfMany: data that was asked for again in one question is awaited, not
// asked for packet by packet; of what is lost in the answer, the next packet tells.
func TestEarlyResponseOfMany(t *testing.T) {
	s := newSelective(t, options{RetryCnt: 7})
	s.Read(1, 8*s.mtu())
	s.expectRead(0, 8)
	s.Recv(s.share(0, 7), s.share(6, 7))
	s.expectRead(1, 5)
	s.Recv(s.share(1, 7), s.share(2, 7))
	s.ExpectNothing()
	s.Recv(s.share(4, 7)) // without 3
	s.expectRead(3, 1)
	s.Recv(s.share(5, 7), s.share(7, 7))
	s.ExpectNothing()
	s.Recv(s.share(3, 7))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCRead, ByteLen: uint32(8 * s.mtu())})
	s.ExpectDeadline(0)
}

// TestBothGapsExpire: when requests and data are missing for too long in the same call,
// the peer hears of the requests although the data was the last try.
func TestBothGapsExpire(t *testing.T) {
	s := newScript(t, options{
		Ext: roce.ExtReorderWindow, Attr: func(a *roce.Attr) { a.RetryCnt = 0 },
	})
	s.Read(1, 4*s.mtu())
	s.Expect()
	s.Recv(request(wire.RCWriteOnly, s.it(1), nil),
		response(wire.RCReadRespMiddle, s.us(1), make([]byte, s.mtu())))
	s.Advance(100 * roce.Microsecond)
	s.ExpectState(roce.StateErr)
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr))
	s.ExpectAck(s.it(0), wire.NAKPSNSequenceError, 0)
	s.ExpectNothing()
}

// TestToleratesReorder: a peer without extensions whose requests overtake each other hears of
// nothing missing, unless so many have overtaken, or after 100 us: then it hears what any
// responder says. Without the window it does at once.
func TestToleratesReorder(t *testing.T) {
	write := func(s *script, n uint32) {
		s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(n), int(n), 1, []byte{byte(n)}))
	}
	s := newScript(t, options{Tolerance: 3, Pool: 16})
	write(s, 1)
	write(s, 2)
	s.ExpectNothing()
	s.ExpectDeadline(100 * roce.Microsecond)
	write(s, 0)
	s.ExpectAck(s.it(2), wire.ACKNoCredits, 3)
	s.ExpectNothing()
	s.ExpectDeadline(0)
	s.ExpectCount(counter.HeldEarly, 2)
	s.ExpectCount(counter.OutOfSequence, 0)

	for n := uint32(4); n < 7; n++ { // the third is one too many
		write(s, n)
	}
	s.ExpectAck(s.it(3), wire.NAKPSNSequenceError, 3)
	write(s, 7) // and it has heard it
	s.ExpectNothing()
	write(s, 3)
	s.ExpectAck(s.it(7), wire.ACKNoCredits, 8)

	write(s, 9)
	s.ExpectNothing()
	s.Advance(100 * roce.Microsecond)
	s.ExpectAck(s.it(8), wire.NAKPSNSequenceError, 8)
	for n := uint32(8); n < 11; n++ { // it goes back, as it must
		write(s, n)
	}
	s.ExpectAck(s.it(10), wire.ACKNoCredits, 11)
	if got := s.buf[:11]; string(got) != "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a" {
		t.Errorf("memory is % x", got)
	}

	s = newScript(t, options{})
	write(s, 1)
	s.ExpectAck(s.it(0), wire.NAKPSNSequenceError, 0)
	c := s.config(options{Tolerance: 1, Type: roce.TypeUC}.filled())
	if _, err := roce.NewQP(1, c); err == nil {
		t.Error("UC with a reorder window")
	}
}
