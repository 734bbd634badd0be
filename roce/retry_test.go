package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestRetryExceeded: RETRY_CNT n means n+1 sendings, 4.096 us * 2^code apart.
func TestRetryExceeded(t *testing.T) {
	for retry := range uint8(8) {
		for _, code := range []uint8{1, 8, 14, 31} {
			s := newScript(t, options{
				Timeout: code,
				Attr:    func(a *roce.Attr) { a.RetryCnt = retry },
			})
			s.Send(1, 2*s.mtu())
			s.Send(2, 4)
			wait := 4096 * roce.Nanosecond << code
			for range int(retry) + 1 {
				for i := range uint32(3) {
					s.Expect(roctest.PSN(s.us(i)))
				}
				s.ExpectNothing()
				s.ExpectDeadline(wait)
				s.Advance(wait - 1)
				s.qp.HandleDeadline(s.now)
				s.ExpectNothing()
				s.Advance(1)
			}
			s.ExpectNothing()
			s.ExpectCQE(failed(1, roce.StatusRetryExcErr), failed(2, roce.StatusWRFlushErr))
			s.ExpectState(roce.StateErr)
			s.ExpectDeadline(0)
			s.ExpectCount(counter.LocalAckTimeout, uint64(retry)+1)
			s.ExpectCount(counter.RetryExceeded, 1)
		}
	}
}

// TestNoTimer: timeout 0 never sends again.
func TestNoTimer(t *testing.T) {
	s := newScript(t, options{Attr: func(a *roce.Attr) { a.Timeout = 0 }})
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectDeadline(0)
	s.Advance(1000 * roce.Second)
	s.qp.HandleDeadline(s.now)
	s.ExpectNothing()
}

// TestNAKsExceedRetries: NAKs with progress between cost nothing, without they
// use up RETRY_CNT together with timeouts.
func TestNAKsExceedRetries(t *testing.T) {
	s := newScript(t, options{RetryCnt: 1})
	for i := range uint64(3) {
		s.Send(i, 4)
	}
	for i := range uint32(3) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	for i := range uint32(3) {
		s.Recv(ackWith(s.us(i), wire.NAKPSNSequenceError))
		for j := i; j < 3; j++ {
			s.Expect(roctest.PSN(s.us(j)))
		}
	}
	s.ExpectCQE(done(0, roce.WCSend), done(1, roce.WCSend))
	s.Advance(68 * roce.Millisecond)
	s.ExpectCQE(failed(2, roce.StatusRetryExcErr))
}

// TestProgressRestartsTimer: the timer runs from the last acknowledge.
func TestProgressRestartsTimer(t *testing.T) {
	s := newScript(t, options{Timeout: 10})
	wait := 4096 * roce.Nanosecond << 10
	s.Send(1, 4)
	s.Send(2, 4)
	s.Expect()
	s.Expect()
	s.Advance(wait - 1)
	s.Recv(ack(s.us(0)))
	s.ExpectDeadline(wait)
	s.Recv(ack(s.us(1)))
	s.ExpectDeadline(0)
}

// TestResendIsSkippedByAck: what is acknowledged while it waits to be sent again
// is not sent again.
func TestResendIsSkippedByAck(t *testing.T) {
	s := newScript(t, options{})
	for i := range uint64(4) {
		s.Send(i, 4)
		s.Expect(roctest.PSN(s.us(uint32(i))))
	}
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(0)))
	s.Recv(ack(s.us(2)))
	s.Expect(roctest.PSN(s.us(3)))
	s.ExpectNothing()
	s.Recv(ack(s.us(3)))
	s.Send(9, 4)
	s.Expect(roctest.PSN(s.us(4)))
}

// TestAckInsideMessage moves the point to go back to.
func TestAckInsideMessage(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4*s.mtu())
	for i := range uint32(4) {
		s.Expect(roctest.PSN(s.us(i)))
	}
	s.Recv(ack(s.us(1)))
	s.ExpectNoCQE()
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(2)), roctest.Opcode(wire.RCSendMiddle))
	s.Expect(roctest.PSN(s.us(3)), roctest.Opcode(wire.RCSendLast))
}

// TestWindow: not more PSNs than the window are unanswered, and the packet that
// closes it asks for an acknowledge.
func TestWindow(t *testing.T) {
	s := newScript(t, options{Window: 5})
	s.Send(1, 10*s.mtu())
	asked := []bool{false, true, false, true, true}
	for i := range uint32(5) {
		s.Expect(roctest.PSN(s.us(i)), roctest.AckReq(asked[i]))
	}
	s.ExpectNothing()
	s.Recv(ack(s.us(1)))
	s.Expect(roctest.PSN(s.us(5)), roctest.AckReq(false))
	s.Expect(roctest.PSN(s.us(6)), roctest.AckReq(true))
	s.ExpectNothing()
}

// TestGhostsAndFutures: answers to what is done or was never sent change nothing.
func TestGhostsAndFutures(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Send(2, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.Recv(ack(s.us(0)))
	s.ExpectCQE(done(1, roce.WCSend))
	for _, p := range []roctest.Packet{
		ack(s.us(0)), ack(s.us(0).Sub(1)), ack(s.us(1).Add(1 << 23)),
		ackWith(s.us(0), wire.NAKRemoteAccessError),
		response(wire.RCReadRespOnly, s.us(0), []byte("ghost")),
		{Opcode: wire.RCAtomicAck, PSN: s.us(0)},
	} {
		s.Recv(p)
	}
	s.ExpectCount(counter.DropGhostResponse, 6)
	for _, p := range []roctest.Packet{
		ack(s.us(1)), ack(s.us(1).Add(1<<23 - 1)), // request 2 is posted, not sent
		ackWith(s.us(1), wire.NAKInvalidRequest),
		ackWith(s.us(1), wire.RNRSyndrome(1)),
		response(wire.RCReadRespOnly, s.us(1), []byte("future")),
	} {
		s.Recv(p)
	}
	s.ExpectCount(counter.DropFutureResponse, 5)
	s.ExpectNoCQE()
	s.ExpectState(roce.StateRTS)
	s.Expect(roctest.PSN(s.us(1)))
}

// TestGatherFailureOvertaken: memory of a sent request goes away, the request
// has to be sent again, and then its first sending turns out to have arrived.
func TestGatherFailureOvertaken(t *testing.T) {
	s := newScript(t, options{})
	other, err := s.keys.RegisterAt(s.domain, make([]byte, 64), 1, 0)
	must(t, err)
	s.Send(1, 8)
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpSend,
		SGList: []roce.SGE{{Addr: 1, Length: 64, LKey: other.LKey()}},
	})
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.keys.Deregister(other)
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectNothing()
	s.Recv(ack(s.us(1)))
	s.ExpectCQE(done(1, roce.WCSend), done(2, roce.WCSend))
	s.Send(3, 8)
	s.Expect(roctest.PSN(s.us(2)))
	s.Recv(ack(s.us(2)))
	s.ExpectCQE(done(3, roce.WCSend))
	s.ExpectState(roce.StateRTS)
}

// TestRetryCntTakesEffect: a new RETRY_CNT counts for what is already sent.
func TestRetryCntTakesEffect(t *testing.T) {
	s := newScript(t, options{RetryCnt: 1})
	s.Read(1, 8)
	s.Expect(roctest.PSN(s.us(0)))
	s.move(roce.StateSQD)
	s.modify(roce.AttrRetryCnt, func(a *roce.Attr) { a.RetryCnt = 5 })
	for range 5 {
		s.Advance(68 * roce.Millisecond)
		s.Expect(roctest.PSN(s.us(0)))
	}
	s.ExpectState(roce.StateSQD)
	s.Advance(68 * roce.Millisecond)
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr))
}

// TestTimerRunsFromTheOldest packet without an answer, not from the newest.
func TestTimerRunsFromTheOldest(t *testing.T) {
	s := newScript(t, options{Timeout: 10})
	wait := 4096 * roce.Nanosecond << 10
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.Advance(roce.Millisecond)
	s.Send(2, 4)
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectDeadline(wait - roce.Millisecond)
}

// TestNAKAfterTimeout: a timeout ends the time in which a NAK is an old one.
func TestNAKAfterTimeout(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Send(2, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	nak := ackWith(s.us(0), wire.NAKPSNSequenceError)
	s.Recv(nak)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.Recv(nak)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectNothing()
}
