package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// newSelective returns a script whose QP repeats selectively.
func newSelective(t *testing.T, o options) *script {
	t.Helper()
	o.Ext |= roce.ExtSelectiveRepeat
	return newScript(t, o)
}

// sack is a selective acknowledge of the peer: it expects psn and keeps those that
// lie so far behind it.
func sack(psn wire.PSN, keeps ...uint32) roctest.Packet {
	bits := make([]byte, wire.SelectiveBits/8)
	for _, d := range keeps {
		bits[(d-1)/8] |= 1 << ((d - 1) % 8)
	}
	return roctest.Packet{
		Opcode: wire.SelectiveAck, PSN: psn, Payload: bits,
		AETH: wire.AETH{Syndrome: wire.NAKPSNSequenceError},
	}
}

// expectPSNs takes packets with these PSNs, counted from the first of ours, and
// then none.
func (s *script) expectPSNs(psns ...uint32) {
	s.t.Helper()
	for _, n := range psns {
		s.Expect(roctest.PSN(s.us(n)))
	}
	s.ExpectNothing()
}

// sendMany posts and takes n SENDs of one packet each.
func (s *script) sendMany(n uint32) {
	s.t.Helper()
	for i := range n {
		s.Send(uint64(i), 4)
		s.Expect(roctest.PSN(s.us(i)))
	}
}

// expectSack takes a selective acknowledge.
func (s *script) expectSack(psn wire.PSN, keeps ...uint32) {
	s.t.Helper()
	want := sack(psn, keeps...)
	s.Expect(roctest.Opcode(wire.SelectiveAck), roctest.PSN(psn), roctest.Payload(want.Payload),
		roctest.Syndrome(wire.NAKPSNSequenceError))
}

// TestSelectiveRepeatsTheGap: what is missing goes again and nothing else, each
// asking for an ACK, and new work follows.
func TestSelectiveRepeatsTheGap(t *testing.T) {
	s := newSelective(t, options{SQPSN: 0xfffffd})
	s.sendMany(10)
	s.Recv(sack(s.us(2), 1, 2, 4, 6))
	s.Send(10, 4)
	for _, n := range []uint32{2, 5, 7} {
		s.Expect(roctest.PSN(s.us(n)), roctest.AckReq(true))
	}
	s.expectPSNs(10)
	s.ExpectCount(counter.Retransmits, 3)
	s.Recv(ack(s.us(10)))
	for id := range uint64(11) {
		s.ExpectCQE(done(id, roce.WCSend))
	}
	s.ExpectDeadline(0)
}

// TestSelectiveKnowsWhatIsKept: progress does not forget what the peer keeps.
func TestSelectiveKnowsWhatIsKept(t *testing.T) {
	s := newSelective(t, options{})
	s.sendMany(10)
	s.Recv(sack(s.us(2), 1, 2, 4, 6))
	s.expectPSNs(2, 5, 7)
	s.Recv(sack(s.us(5), 1, 3, 4)) // 2 came; 9 came: nothing that was sent after the round
	s.ExpectNothing()
	s.Send(10, 4)
	s.expectPSNs(10)
	s.Recv(sack(s.us(5), 1, 3, 4, 5)) // 10 came, which went after 5 and 7
	s.expectPSNs(5, 7)
}

// TestSelectiveNewsIsNoRetry: a round is extended by news of more losses without
// cost, whether it is all sent or not.
func TestSelectiveNewsIsNoRetry(t *testing.T) {
	for _, sent := range []int{0, 1, 2} {
		s := newSelective(t, options{RetryCnt: 1})
		s.sendMany(20)
		s.Recv(sack(s.us(0), 1, 3)) // 0 and 2 are missing
		for i := range sent {
			s.Expect(roctest.PSN(s.us(uint32(2 * i))))
		}
		s.Recv(sack(s.us(0), 1, 3, 5))    // 4 too
		s.Recv(sack(s.us(0), 1, 3, 5, 8)) // 6 and 7 too
		s.expectPSNs([]uint32{0, 2, 4, 6, 7}[sent:]...)
		if left := s.qp.Snapshot().RetryLeft; left != 0 {
			t.Errorf("%d retries left, want 0", left)
		}
		s.ExpectState(roce.StateRTS)
	}
}

// TestSelectiveLostAgain: what is lost again and again goes again each time that is known,
// and costs a retry an ACK timeout, until there is none left.
func TestSelectiveLostAgain(t *testing.T) {
	const often = 8
	s := newSelective(t, options{RetryCnt: 2})
	s.sendMany(2)
	for i := range uint32(2 * often) {
		s.Recv(sack(s.us(0), 1+i))
		s.Expect(roctest.PSN(s.us(0)))
		s.Send(9, 4)
		s.expectPSNs(2 + i)
		if left := s.qp.Snapshot().RetryLeft; left != uint8(1-i/often) {
			t.Errorf("%d retries left after %d losses", left, i+1)
		}
		s.now += ackTimer / often
	}
	s.Recv(sack(s.us(0), 1, 2*often+1))
	s.ExpectCQE(failed(0, roce.StatusRetryExcErr))
	s.ExpectCount(counter.LocalAckTimeout, 0)
}

// TestSelectiveNothingKept: a peer without room for what came is sent it all again.
func TestSelectiveNothingKept(t *testing.T) {
	s := newSelective(t, options{})
	s.sendMany(5)
	s.Recv(sack(s.us(1)))
	s.expectPSNs(1, 2, 3, 4)
}

// TestSelectiveTimeout: when nothing is heard, the oldest goes again, and when it
// is answered the others, but for what the peer keeps; when it is not, all.
func TestSelectiveTimeout(t *testing.T) {
	s := newSelective(t, options{})
	s.sendMany(6)
	s.Recv(sack(s.us(1), 1, 3))
	s.expectPSNs(1, 3)
	s.Advance(68 * roce.Millisecond)
	s.expectPSNs(1)
	s.Recv(ack(s.us(2)))
	s.expectPSNs(3, 5)

	s = newSelective(t, options{})
	s.sendMany(6)
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(true))
	s.ExpectNothing()
	s.Recv(ack(s.us(3)))
	s.expectPSNs(4, 5)

	s = newSelective(t, options{})
	s.sendMany(3)
	for range 3 {
		s.Advance(68 * roce.Millisecond)
		s.Expect(roctest.PSN(s.us(0)))
	}
	s.expectPSNs(1, 2)
}

// TestSelectiveRNR: after the wait the refused packet goes again, though the peer
// had said that it keeps it; what it keeps does not.
func TestSelectiveRNR(t *testing.T) {
	s := newSelective(t, options{})
	s.sendMany(4)
	s.Recv(sack(s.us(0), 1, 2, 3))
	s.expectPSNs(0)
	s.Recv(ackWith(s.us(1), wire.RNRSyndrome(1)))
	s.Recv(sack(s.us(1), 1, 2))
	s.ExpectNothing()
	s.Advance(10 * roce.Microsecond)
	s.expectPSNs(1)

	// The RNR NAK itself is lost.
	s = newSelective(t, options{})
	s.sendMany(4)
	s.Recv(sack(s.us(0), 1, 2))
	s.expectPSNs(0)
	s.Send(4, 4)
	s.expectPSNs(4)
	s.Recv(sack(s.us(1), 1, 2, 3))
	s.expectPSNs(1)
}

// TestSelectiveRequests: the responder keeps what comes early, tells what it keeps
// once for each gap and whoever asks, executes all in order and gives the memory
// back.
func TestSelectiveRequests(t *testing.T) {
	s := newSelective(t, options{RQPSN: 0xfffffe, Pool: 8})
	for i := range uint64(8) {
		s.PostRecv(i, 64*int(i), 64)
	}
	send := func(n uint32, askAck bool) {
		p := request(wire.RCSendOnly, s.it(n), []byte{byte(n)})
		p.AckReq = askAck
		s.Recv(p)
	}
	send(0, false)
	send(2, false)
	s.expectSack(s.it(1), 1)
	send(4, false)
	s.ExpectNothing()
	send(4, false) // twice
	s.ExpectCount(counter.DuplicateRequest, 1)
	send(5, true)
	s.expectSack(s.it(1), 1, 3, 4)
	if snap := s.qp.Snapshot(); snap.EarlyRequests != 3 || s.pool.Free() != 5 {
		t.Errorf("%d kept, %d free", snap.EarlyRequests, s.pool.Free())
	}
	send(1, false)
	s.expectSack(s.it(3), 1, 2)
	send(3, true)
	s.ExpectAck(s.it(5), wire.ACKNoCredits, 6)
	for i := range uint64(6) {
		s.ExpectRecvCQE(roce.Completion{WRID: i, Opcode: roce.WCRecv, ByteLen: 1})
		if s.buf[64*i] != byte(i) {
			t.Errorf("receive %d holds message %d", i, s.buf[64*i])
		}
	}
	s.ExpectCount(counter.HeldEarly, 3)
	if s.pool.Free() != 8 {
		t.Errorf("%d free at the end", s.pool.Free())
	}
}

// TestSelectiveGapCloses: a report that waits to be sent becomes an ACK when the
// missing packet comes.
func TestSelectiveGapCloses(t *testing.T) {
	s := newSelective(t, options{})
	w := func(n uint32) roctest.Packet { return request(wire.RCWriteOnly, s.it(n), nil) }
	s.Recv(w(1), w(0))
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 2)
	s.ExpectNothing()
}

// TestSelectiveNoRoom: without room in the pool, or beyond the span, a packet is
// dropped like one behind a gap, and nothing else is lost.
func TestSelectiveNoRoom(t *testing.T) {
	s := newSelective(t, options{Pool: 1})
	w := func(n uint32) roctest.Packet { return request(wire.RCWriteOnly, s.it(n), nil) }
	s.Recv(w(256))
	s.expectSack(s.it(0))
	s.ExpectCount(counter.OutOfSequence, 1)
	s.Recv(w(255), w(1))
	s.ExpectCount(counter.DropAfterGap, 1)
	s.expectSack(s.it(0), 255)
	for i := range uint32(255) {
		s.Recv(w(i))
	}
	s.ExpectAck(s.it(255), wire.ACKNoCredits, 256)
	if s.pool.Free() != 1 {
		t.Error("a packet is still kept")
	}
}

// TestSelectiveRNRAtResponder: a kept packet that finds no receive is refused and
// must come again; those behind it stay.
func TestSelectiveRNRAtResponder(t *testing.T) {
	s := newSelective(t, options{})
	send := func(n uint32) roctest.Packet { return request(wire.RCSendOnly, s.it(n), nil) }
	s.Recv(send(1), send(2), request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectAck(s.it(1), wire.RNRSyndrome(s.o.MinRNR), 1)
	s.PostRecv(1, 0, 4)
	s.PostRecv(2, 0, 4)
	s.Recv(send(3)) // asks, but nothing is missing: what it hears are the credits
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.ExpectNothing()
	s.Recv(send(1))
	s.ExpectAck(s.it(3), wire.RNRSyndrome(s.o.MinRNR), 3)
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv},
		roce.Completion{WRID: 2, Opcode: roce.WCRecv})

	// While an RNR NAK waits to leave, a packet behind does not replace it.
	s = newSelective(t, options{})
	s.Recv(send(0), send(1))
	s.ExpectAck(s.it(0), wire.RNRSyndrome(s.o.MinRNR), 0)
}

// TestSelectiveEnds: an error, and a reset, give everything back.
func TestSelectiveEnds(t *testing.T) {
	for _, to := range []roce.State{roce.StateErr, roce.StateReset} {
		s := newSelective(t, options{Pool: 4})
		s.Read(1, 3*s.mtu())
		s.Expect()
		s.Recv(request(wire.RCWriteOnly, s.it(2), nil))
		s.Recv(response(wire.RCReadRespLast, s.us(2), make([]byte, s.mtu())))
		if s.pool.Free() != 2 {
			t.Fatalf("%d free, want 2", s.pool.Free())
		}
		s.move(to)
		if s.pool.Free() != 4 {
			t.Errorf("%s: %d free, want 4", to, s.pool.Free())
		}
		s.ExpectDeadline(0)
	}
}

// TestExtensionsNeedAPool, and both are for RC alone.
func TestExtensionsNeedAPool(t *testing.T) {
	o := options{}.filled()
	e := newEndpoint(t, qpnA, o)
	c := e.config(o)
	c.Common.EarlyPool = nil
	var err error
	e.qp, err = roce.NewQP(1, c)
	must(t, err)
	e.connect(qpnB, o, roce.StateInit)
	a := o.attr(qpnB)
	a.State, a.Extensions = roce.StateRTR, roce.ExtSelectiveRepeat
	wantErr(t, e.qp.Modify(0, &a, maskRTR|roce.AttrExtensions), roce.ErrInvalid, "early pool")
	a.Extensions = 8
	wantErr(t, e.qp.Modify(0, &a, maskRTR|roce.AttrExtensions), roce.ErrInvalid, "EXTENSIONS")
	a.Extensions = 0
	must(t, e.qp.Modify(0, &a, maskRTR|roce.AttrExtensions))

	// Without the extension its packets are of another service.
	s := newScript(t, options{})
	s.sendMany(2)
	s.Recv(sack(s.us(0), 1))
	s.ExpectCount(counter.DropWrongService, 1)
}

// TestSelectiveReadBehindItsSpan: with extensions a READ begins when all its
// answers can be kept, or alone.
func TestSelectiveReadBehindItsSpan(t *testing.T) {
	s := newSelective(t, options{})
	s.Read(1, 200*s.mtu())
	s.Read(2, 57*s.mtu())
	s.expectPSNs(0)
	s.Recv(s.share(0, 199))
	s.expectPSNs(200)
	s.Read(3, 250*s.mtu())
	s.ExpectNothing()
}

// TestSelectiveKeptAndExecuted: a READ that the peer kept is executed by now when
// its data is missing: it is asked for again all the same.
func TestSelectiveKeptAndExecuted(t *testing.T) {
	s := newSelective(t, options{})
	s.Send(1, 4)
	s.Read(2, 4)
	s.Read(3, 4)
	for i := range uint32(3) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	s.Recv(sack(s.us(0), 1, 2))
	s.expectPSNs(0)
	s.Recv(response(wire.RCReadRespOnly, s.us(2), make([]byte, 4)))
	s.expectPSNs(1)
}
