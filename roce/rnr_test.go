package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestRNRSent: a message without a receive is refused, nothing of it executed,
// what follows it is dropped in silence, and it succeeds later.
func TestRNRSent(t *testing.T) {
	s := newScript(t, options{MinRNR: 17})
	hello := request(wire.RCSendOnly, s.it(0), []byte("hello"))
	s.Recv(hello)
	s.ExpectAck(s.it(0), wire.RNRSyndrome(17), 0)
	s.Recv(request(wire.RCSendOnly, s.it(1), nil))
	s.ExpectNothing()
	s.Recv(hello)
	s.ExpectAck(s.it(0), wire.RNRSyndrome(17), 0)
	s.PostRecv(1, 0, 8)
	s.Recv(hello)
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 5})
	s.ExpectCount(counter.SendRNR, 2)
}

// TestRNRAtLastOfWrite: the data is placed before a WRITE with immediate is
// refused at its end, and only the end is sent again.
func TestRNRAtLastOfWrite(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	data := make([]byte, mtu+4)
	fill(data, 3)
	s.Recv(s.writeRequest(wire.RCWriteFirst, s.it(0), 0, len(data), data[:mtu]))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 0)
	last := request(wire.RCWriteLastImm, s.it(1), data[mtu:])
	last.Imm = 7
	s.Recv(last)
	s.ExpectAck(s.it(1), wire.RNRSyndrome(12), 0)
	s.PostRecv(1, 4096, 0)
	s.Recv(last)
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 1)
	s.ExpectRecvCQE(roce.Completion{
		WRID: 1, Opcode: roce.WCRecvRDMAWithImm,
		ByteLen: uint32(len(data)), Flags: roce.WCWithImm, Imm: 7,
	})
	if string(s.buf[:len(data)]) != string(data) {
		t.Error("memory differs")
	}
}

// TestRNRWaits for the time of the peer's code, for every code, and resends.
func TestRNRWaits(t *testing.T) {
	for code := range uint8(32) {
		s := newScript(t, options{})
		s.Send(1, 4)
		s.Send(2, 4)
		s.Expect(roctest.PSN(s.us(0)))
		s.Expect(roctest.PSN(s.us(1)))
		s.Recv(ackWith(s.us(0), wire.RNRSyndrome(code)))
		wait := roce.Time(wire.RNRTimerNanos(code))
		s.ExpectDeadline(wait)
		s.Recv(ackWith(s.us(0), wire.NAKPSNSequenceError)) // as rxe does
		s.ExpectNothing()
		s.Advance(wait - 1)
		s.qp.HandleDeadline(s.now)
		s.ExpectNothing()
		s.Advance(1)
		s.Expect(roctest.PSN(s.us(0)))
		s.Expect(roctest.PSN(s.us(1)))
		s.Recv(ack(s.us(1)))
		s.ExpectCQE(done(1, roce.WCSend), done(2, roce.WCSend))
	}
}

// TestRNRExceeded: RNR_RETRY n means n+1 sendings, 7 means for ever.
func TestRNRExceeded(t *testing.T) {
	for retry := range uint8(8) {
		s := newScript(t, options{Attr: func(a *roce.Attr) { a.RNRRetry = retry }})
		s.Send(1, 4)
		s.Send(2, 4)
		sent := 0
		for ; sent < 100 && s.qp.State() == roce.StateRTS; sent++ {
			s.Expect(roctest.PSN(s.us(0)))
			s.Recv(ackWith(s.us(0), wire.RNRSyndrome(1)))
			s.Advance(10 * roce.Microsecond)
		}
		want := int(retry) + 1
		if retry == 7 {
			want = 100
		}
		if sent != want {
			t.Errorf("rnr_retry %d: sent %d times, want %d", retry, sent, want)
		}
		if retry < 7 {
			s.ExpectCQE(failed(1, roce.StatusRNRRetryExc), failed(2, roce.StatusWRFlushErr))
			s.ExpectState(roce.StateErr)
			s.ExpectCount(counter.RNRRetryExceeded, 1)
		}
	}
}

// TestRNRAcknowledgesBefore: an RNR NAK acknowledges all before its PSN, and
// that is progress: the counter starts anew.
func TestRNRAcknowledgesBefore(t *testing.T) {
	s := newScript(t, options{RNRRetry: 1})
	for i := range uint64(3) {
		s.Send(i, 4)
		s.Expect(roctest.PSN(s.us(uint32(i))))
	}
	s.Recv(ackWith(s.us(0), wire.RNRSyndrome(1)))
	s.Advance(10 * roce.Microsecond)
	for i := range uint32(3) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	s.Recv(ackWith(s.us(2), wire.RNRSyndrome(1)))
	s.ExpectCQE(done(0, roce.WCSend), done(1, roce.WCSend))
	s.Advance(10 * roce.Microsecond)
	s.Expect(roctest.PSN(s.us(2)))
	s.ExpectState(roce.StateRTS)
}

// TestWhileRNRWaits: late answers neither prolong the wait nor cost a retry, and
// the local ACK timer stands still.
func TestWhileRNRWaits(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	rnr := ackWith(s.us(0), wire.RNRSyndrome(14))
	wait := 1280 * roce.Microsecond
	s.Recv(rnr)
	s.Advance(100 * roce.Microsecond)
	s.Recv(rnr, ackWith(s.us(0), wire.NAKPSNSequenceError))
	s.ExpectDeadline(wait - 100*roce.Microsecond)
	if snap := s.qp.Snapshot(); snap.RetryLeft != 3 || snap.RNRLeft != 2 {
		t.Errorf("left: %d retries, %d for RNR; want 3, 2", snap.RetryLeft, snap.RNRLeft)
	}
	s.Advance(wait - 100*roce.Microsecond)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectDeadline(4096 * roce.Nanosecond << defaults.Timeout)
}

// TestAckEndsRNRWait: what was refused may arrive all the same, from a copy that
// was overtaken.
func TestAckEndsRNRWait(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.Recv(ackWith(s.us(0), wire.RNRSyndrome(14)), ack(s.us(0)))
	s.ExpectCQE(done(1, roce.WCSend))
	s.ExpectDeadline(0)
	s.Send(2, 4)
	s.Expect(roctest.PSN(s.us(1)))
}
