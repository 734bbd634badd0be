package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// expectLossTimer wants what Overdue says of now, since as a time from now back, -1 for
// never.
func (s *script) expectLossTimer(want bool, ago roce.Time) {
	s.t.Helper()
	since, expired := s.qp.LossTimer(s.now)
	if ago >= 0 {
		ago = s.now - ago
	} else {
		ago = 0
	}
	if expired != want || since != ago {
		s.t.Fatalf("overdue %t since %d, want %t since %d", expired, since, want, ago)
	}
}

const wait10 = 4096 * roce.Nanosecond << 10

// TestLossTimer follows a local ACK timer: from when it runs, and when the peer is not
// to blame.
func TestLossTimer(t *testing.T) {
	s := newScript(t, options{Timeout: 10})
	s.now = roce.Second
	s.expectLossTimer(false, -1)
	s.Send(1, 4)
	s.Send(2, 4)
	s.Expect()
	s.now += 5
	s.Expect()
	s.now += wait10 - 6
	s.expectLossTimer(false, -1)
	s.now++
	s.expectLossTimer(true, wait10) // since the first left
	s.now += wait10 - 1
	s.expectLossTimer(true, 2*wait10-1)
	s.now++
	s.expectLossTimer(true, 0) // another timeout has passed
	if !s.qp.PostponeAckTimer(s.now, s.now) {
		t.Fatal("no excuse")
	}
	s.expectLossTimer(false, -1)
	s.now += 3 * wait10
	s.expectLossTimer(true, 3*wait10) // that counts once

	s.qp.HandleDeadline(s.now)
	s.ExpectCount(counter.LocalAckTimeout, 1)
	s.now += wait10
	s.expectLossTimer(true, 0) // nothing was sent again so far
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectDeadline(wait10) // now it was
	s.expectLossTimer(false, -1)
	s.Recv(ack(s.us(1)))
	s.now += 10 * wait10
	s.expectLossTimer(false, -1)
}

// TestWaitsAreNoLoss: what ends by itself has nothing to do with the peer.
func TestWaitsAreNoLoss(t *testing.T) {
	s := newScript(t, options{Timeout: 10})
	s.Send(1, 4)
	s.Expect()
	s.Recv(ackWith(s.us(0), wire.RNRSyndrome(20)))
	s.now += roce.Second
	s.ExpectDeadline(rnr20 - roce.Second)
	s.expectLossTimer(false, -1)
	if s.qp.PostponeAckTimer(s.now, s.now) {
		t.Error("an excuse for an RNR wait")
	}

	s = newScript(t, options{Timeout: 10})
	s.modify(roce.AttrRateLimit, func(a *roce.Attr) { a.RateLimit = 1000 })
	s.Send(1, 3*s.mtu())
	for s.qp.NextPacket(s.now, s.frame) > 0 {
		continue
	}
	at, ok := s.qp.NextDeadline()
	if !ok || at >= s.now+wait10 {
		t.Fatalf("the rate has no deadline: %d, %t", at, ok)
	}
	s.now = at
	s.expectLossTimer(false, -1)
}

const rnr20 = 10240 * roce.Microsecond // the RNR timer of code 20

// TestGapIsALoss: a gap that stays open becomes a loss, too, but has no excuse.
func TestGapIsALoss(t *testing.T) {
	s := newScript(t, options{Ext: roce.ExtReorderWindow})
	s.Read(1, 2*s.mtu())
	s.Expect()
	s.Recv(response(wire.RCReadRespLast, s.us(1), make([]byte, s.mtu())))
	s.now += 100*roce.Microsecond - 1
	s.expectLossTimer(false, -1)
	s.now++
	s.expectLossTimer(true, -1)
	if s.qp.PostponeAckTimer(s.now, s.now) {
		t.Error("an excuse for a gap")
	}
}

// TestPostponeAckTimer: one timeout can be put off three times, and an excuse that does not
// reach beyond now is none.
func TestPostponeAckTimer(t *testing.T) {
	s := newScript(t, options{Timeout: 10, RetryCnt: 1})
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	if s.qp.PostponeAckTimer(s.now, s.now) {
		t.Error("an excuse before it is overdue")
	}
	for range 2 {
		for i := range 3 {
			s.now += wait10
			if s.qp.PostponeAckTimer(s.now, s.now-wait10) {
				t.Fatal("an excuse that changes nothing")
			}
			if !s.qp.PostponeAckTimer(s.now, s.now-roce.Time(i)) {
				t.Fatalf("no excuse after %d", i)
			}
			s.ExpectDeadline(wait10 - roce.Time(i))
		}
		s.now += wait10
		if s.qp.PostponeAckTimer(s.now, s.now) {
			t.Fatal("a fourth excuse")
		}
		s.qp.HandleDeadline(s.now)
		if s.qp.State() == roce.StateRTS {
			s.Expect(roctest.PSN(s.us(0)))
		}
	}
	s.ExpectCount(counter.LocalAckTimeout, 2)
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr))
	if s.qp.PostponeAckTimer(s.now, s.now) {
		t.Error("an excuse in ERR")
	}
}
