package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestSelectiveStaleNews: while what was sent before a repetition is on its way, in any
// order, news of it says nothing of the repetition. It used to exhaust the retries before
// that can have arrived.
func TestSelectiveStaleNews(t *testing.T) {
	s := newProbed(t, options{RetryCnt: 2})
	const trip = 40 * roce.Microsecond
	s.trip(0, trip)
	for n := range uint32(20) {
		s.Send(uint64(n), 4)
		s.expectPSNs(1 + n)
	}
	s.Recv(sack(s.us(1), 4))
	s.expectPSNs(1, 2, 3, 4)
	kept := []uint32{4}
	for _, late := range []uint32{3, 1, 2} { // each went again behind 1
		kept = append(kept, late)
		s.Recv(sack(s.us(1), kept...))
		s.ExpectNothing()
	}
	s.now += trip
	s.Recv(sack(s.us(1), append(kept, 9)...)) // what was still on its way, then
	s.expectPSNs(1, 6, 7, 8, 9)
	if left := s.qp.Snapshot().RetryLeft; left != 1 {
		t.Errorf("%d retries left, want 1", left)
	}
	s.ExpectState(roce.StateRTS)
}

// TestSelectiveReadStragglers: the response to a READ comes in another order. Its first gap
// is asked for again, and what then still comes of that response says nothing of the next
// one. It used to exhaust the retries before that can have begun.
func TestSelectiveReadStragglers(t *testing.T) {
	for _, measured := range []bool{false, true} {
		s, from := newProbed(t, options{RetryCnt: 2}), uint32(0)
		if measured {
			s.trip(0, 40*roce.Microsecond)
			s.ExpectCQE(done(0, roce.WCSend))
			from = 1
		}
		part := func(op wire.Opcode, n uint32) {
			t.Helper()
			s.Recv(response(op, s.us(from+n), make([]byte, s.mtu())))
		}
		s.Read(1, 8*s.mtu())
		s.expectPSNs(from)
		part(wire.RCReadRespFirst, 0)
		part(wire.RCReadRespMiddle, 6)
		s.expectPSNs(from + 1)
		for _, n := range []uint32{5, 3, 4, 2} {
			part(wire.RCReadRespMiddle, n)
			s.ExpectNothing()
		}
		part(wire.RCReadRespLast, 7)
		if left := s.qp.Snapshot().RetryLeft; left != 1 {
			t.Errorf("%d retries left, want 1", left)
		}
		part(wire.RCReadRespMiddle, 1)
		s.ExpectCQE(roce.Completion{
			WRID: 1, Opcode: roce.WCRead, ByteLen: uint32(8 * s.mtu()),
		})
	}
}

// TestSelectiveReadLostAgain: half a round trip later it is of the new response, and tells
// what that one lost, at the same price.
func TestSelectiveReadLostAgain(t *testing.T) {
	const trip = 40 * roce.Microsecond
	s := newProbed(t, options{RetryCnt: 1})
	s.trip(0, trip)
	part := func(op wire.Opcode, n uint32) {
		s.Recv(response(op, s.us(n), make([]byte, s.mtu())))
	}
	s.Read(1, 8*s.mtu())
	s.expectPSNs(1)
	part(wire.RCReadRespFirst, 1)
	part(wire.RCReadRespMiddle, 7)
	s.expectPSNs(2)
	for n := uint32(6); n > 2; n-- {
		s.now += trip
		part(wire.RCReadRespMiddle, n)
		s.expectPSNs(2)
	}
	s.ExpectState(roce.StateRTS)
}

// TestSelectiveNAKAndGap: a request is lost, which a NAK tells, and then its response,
// within an ACK timeout. The two used to cost two retries.
func TestSelectiveNAKAndGap(t *testing.T) {
	const trip = 40 * roce.Microsecond
	s := newScript(t, options{Ext: roce.ExtReorderWindow, RetryCnt: 1})
	s.now = roce.Second
	s.trip(0, trip)
	s.ExpectCQE(done(0, roce.WCSend))
	s.Read(1, 2*s.mtu())
	s.Send(2, 4)
	s.expectPSNs(1, 3)
	s.Recv(ackWith(s.us(1), wire.NAKPSNSequenceError))
	s.expectPSNs(1)
	s.now += trip
	s.Recv(response(wire.RCReadRespLast, s.us(2), make([]byte, s.mtu())))
	s.ExpectNothing()
	s.Advance(100 * roce.Microsecond)
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectState(roce.StateRTS)
	s.Advance(ackTimer)
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr), failed(2, roce.StatusWRFlushErr))
}
