package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// rate sets the rate limit of a QP in RTS.
func (s *script) rate(kbps uint32) {
	s.t.Helper()
	s.modify(roce.AttrRateLimit, func(a *roce.Attr) { a.RateLimit = kbps })
}

// TestRateIsExact: what is sent over a second of deadlines is the rate, to 0.1 %,
// for every frame size and rate.
func TestRateIsExact(t *testing.T) {
	for _, kbps := range []uint32{8, 1000, 999_983, 10_000_000, 100_000_000, 400_000_000} {
		for _, n := range []int{0, 64, 1000, 4096} {
			s := newScript(t, options{Type: roce.TypeUC, MTU: wire.MTU4096})
			s.rate(kbps)
			var bits float64
			const frames = 3000
			for range frames {
				s.Send(1, n)
				size := s.qp.NextPacket(s.now, s.frame)
				if size == 0 {
					at, ok := s.qp.NextDeadline()
					if !ok || at <= s.now {
						t.Fatalf("deadline %d at %d", at, s.now)
					}
					s.now = at - 1
					s.qp.HandleDeadline(s.now)
					s.ExpectNothing()
					s.now = at
					s.qp.HandleDeadline(s.now)
					size = s.qp.NextPacket(s.now, s.frame)
				}
				bits += float64(8 * size)
				drain(t, s.send)
			}
			s.Send(1, n)
			s.ExpectNothing()
			at, _ := s.qp.NextDeadline() // when all of it is paid for
			got := bits / float64(at) * 1e6
			if off := got/float64(kbps) - 1; off < -0.001 || off > 0.001 {
				t.Errorf("%d kbit/s, %d bytes: %.6f too much", kbps, n, off)
			}
		}
	}
}

// TestRateBurst: unused time is caught up with for 50 us, and no longer.
func TestRateBurst(t *testing.T) {
	s := newScript(t, options{Type: roce.TypeUC})
	s.rate(80_000) // 10 bytes a microsecond
	s.now = roce.Second
	sent := 0
	for range 60 {
		s.Send(1, 42) // 100 bytes of frame
		sent += s.qp.NextPacket(s.now, s.frame)
	}
	if sent < 500 || sent > 620 {
		t.Errorf("%d bytes at once, want 500 and the frame that ends it", sent)
	}
}

// TestRateWaits: a QP that waits for its rate and then for something else has no
// deadline in the past; answers are not held back; 0 takes the limit away.
func TestRateWaits(t *testing.T) {
	s := newScript(t, options{})
	s.rate(8) // a byte a millisecond
	s.Send(1, 4)
	s.Send(2, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectNothing()
	at, _ := s.qp.NextDeadline()
	s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.now = at - 1
	s.Recv(ackWith(s.us(0), wire.RNRSyndrome(29)))
	s.ExpectNothing()
	s.Advance(1)
	s.ExpectNothing()
	s.ExpectDeadline(245760*roce.Microsecond - 1)
	s.Advance(245760 * roce.Microsecond)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectNothing()
	s.rate(0)
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectDeadline(4096 << 14)
}

// TestRateInErr: a QP that waits and then ends, or is reset, waits for nothing.
func TestRateInErr(t *testing.T) {
	for _, to := range []roce.State{roce.StateErr, roce.StateReset} {
		s := newScript(t, options{})
		s.rate(8)
		s.Send(1, 4)
		s.Send(2, 4)
		s.Expect()
		s.ExpectNothing()
		s.move(to)
		s.ExpectDeadline(0)
	}
}

// TestRateKeepsTimer: who changes the rate again and again hears that the peer is gone as soon as
// without; a rate that is raised does not leave the timer where the low one had put it.
func TestRateKeepsTimer(t *testing.T) {
	s := newScript(t, options{RetryCnt: 1})
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	for i := 0; i < 150 && s.qp.State() == roce.StateRTS; i++ {
		s.rate(uint32(1_000_000 + i%2))
		s.Advance(roce.Millisecond)
		s.qp.NextPacket(s.now, s.frame)
	}
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr))

	s = newScript(t, options{})
	s.rate(8) // a byte a millisecond
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.Advance(roce.Millisecond)
	s.rate(0)
	s.ExpectDeadline(4096 << 14)
}

// TestTimeoutTakesEffect: a TIMEOUT that is changed in SQD is that of what is under way.
func TestTimeoutTakesEffect(t *testing.T) {
	for _, before := range []uint8{0, 31} {
		s := newScript(t, options{Attr: func(a *roce.Attr) { a.Timeout = before }})
		s.Send(1, 4)
		s.Expect(roctest.PSN(s.us(0)))
		s.move(roce.StateSQD)
		s.modify(roce.AttrTimeout, func(a *roce.Attr) { a.Timeout = 14 })
		s.ExpectDeadline(4096 << 14)
		s.Advance(4096 << 14)
		s.Expect(roctest.PSN(s.us(0)))
		s.modify(roce.AttrTimeout, func(a *roce.Attr) { a.Timeout = 0 })
		s.ExpectDeadline(0)
	}
	s := newScript(t, options{RetryCnt: 1}) // the same again and again puts nothing off
	s.Send(1, 4)
	s.Expect(roctest.PSN(s.us(0)))
	s.move(roce.StateSQD)
	for i := 0; i < 150 && s.qp.State() == roce.StateSQD; i++ {
		s.modify(roce.AttrTimeout, func(a *roce.Attr) { a.Timeout = 14 })
		s.Advance(roce.Millisecond)
		s.qp.NextPacket(s.now, s.frame)
	}
	s.ExpectCQE(failed(1, roce.StatusRetryExcErr))

	s = newScript(t, options{}) // nothing is under way
	s.move(roce.StateSQD)
	s.modify(roce.AttrTimeout, func(a *roce.Attr) { a.Timeout = 10 })
	s.ExpectDeadline(0)
}
