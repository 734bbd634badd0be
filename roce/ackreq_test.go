package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestAckReqOncePerRun: of messages that follow each other at once only the last
// asks for an acknowledge, and one of every 64 packets.
func TestAckReqOncePerRun(t *testing.T) {
	s := newScript(t, options{Depth: 128})
	for i := range uint64(100) {
		s.Send(i, 1)
	}
	for i := range uint32(100) {
		s.Expect(roctest.PSN(s.us(i)), roctest.AckReq(i == 63 || i == 99))
	}
	s.Recv(ack(s.us(99)))
	for i := range uint64(100) {
		s.ExpectCQE(done(i, roce.WCSend))
	}
}

// TestAckReqOnRetry: what is sent again asks at the end of each message.
func TestAckReqOnRetry(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 2*s.mtu())
	s.Send(2, 1)
	s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(false))
	s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(false))
	s.Expect(roctest.PSN(s.us(2)), roctest.AckReq(true))
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(false))
	s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(true))
	s.Expect(roctest.PSN(s.us(2)), roctest.AckReq(true))
}

// TestAckReqBeforeWhatCannotGo: a message that is followed by one that waits or
// fails asks, since nothing else will.
func TestAckReqBeforeWhatCannotGo(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 1)
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpSend, SGList: []roce.SGE{{Addr: 1, Length: 1, LKey: 1}},
	})
	s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(true))
	s.ExpectNothing()
	s.Recv(ack(s.us(0)))
	s.ExpectCQE(done(1, roce.WCSend))
	s.ExpectCQE(roce.Completion{WRID: 2, Status: roce.StatusLocProtErr})
}

// TestAckReqWhenPageIsSlow: a message that counted on the next to ask is sent again to
// ask when that one waits for a page. It completes without a timer, without a retry, and
// only once for all the time that the page takes.
func TestAckReqWhenPageIsSlow(t *testing.T) {
	for _, ext := range []roce.Extensions{0, roce.ExtSelectiveRepeat, roce.ExtReorderWindow} {
		s := pagedScript(t, options{Ext: ext, Attr: func(a *roce.Attr) {
			a.Timeout, a.RetryCnt = 0, 0
		}})
		s.sendAt(1, 0, 4)
		s.sendAt(2, fakePage, 4)
		s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(false))
		s.miss(fakePage, 1000)
		s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(true), roctest.Payload(s.buf[:4]))
		for range 50 {
			s.ExpectNothing()
			s.Advance(roce.Millisecond)
		}
		s.Recv(ack(s.us(0)))
		s.ExpectCQE(done(1, roce.WCSend))
		s.ExpectNothing()
		s.ExpectNoCQE()
		s.miss(fakePage, 0)
		s.Advance(roce.Millisecond)
		s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(true))
		s.Recv(ack(s.us(1)))
		s.ExpectCQE(done(2, roce.WCSend))
		s.ExpectDeadline(0)
	}
}

// TestAckReqInMessageAtSlowPage: the same in the middle of a message, whose timer asks
// for no retry while the page is away: it runs from when the peer was asked.
func TestAckReqInMessageAtSlowPage(t *testing.T) {
	s := pagedScript(t, options{Attr: func(a *roce.Attr) { a.RetryCnt = 0 }})
	s.Send(1, 3*256)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(false))
	s.miss(512, 1000)
	s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(true), roctest.Opcode(wire.RCSendMiddle))
	s.Recv(ack(s.us(1)))
	for range 200 {
		s.ExpectNothing()
		s.Advance(roce.Millisecond)
	}
	s.ExpectState(roce.StateRTS)
	s.miss(512, 0)
	s.Advance(roce.Millisecond)
	s.Expect(roctest.PSN(s.us(2)), roctest.AckReq(true))
}

// TestNoRetryForWhatDidNotAsk: when the newest packet cannot be sent again either, its
// page being away too, no timer runs, however long that takes: the peer was asked for
// nothing. Then it asks.
func TestNoRetryForWhatDidNotAsk(t *testing.T) {
	for _, ext := range []roce.Extensions{0, roce.ExtReorderWindow} {
		s := pagedScript(t, options{Ext: ext, Attr: func(a *roce.Attr) { a.RetryCnt = 0 }})
		s.sendAt(1, 0, 4)
		s.sendAt(2, fakePage, 4)
		s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(false))
		s.miss(0, 1000)
		s.miss(fakePage, 1000)
		s.ExpectNothing()
		s.ExpectDeadline(20 * roce.Microsecond)
		for range 200 {
			s.ExpectNothing()
			s.Advance(roce.Millisecond)
		}
		s.ExpectState(roce.StateRTS)
		s.miss(0, 0)
		s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(true))
		s.Recv(ack(s.us(0)))
		s.ExpectCQE(done(1, roce.WCSend))
	}
}

// TestAckReqAtLowRate: a message asks when the rate lets the next one go only long
// after it, and not when it follows soon.
func TestAckReqAtLowRate(t *testing.T) {
	for _, tt := range []struct {
		kbps uint32
		asks bool
	}{{8_000, true}, {30_000, true}, {100_000, false}, {10_000_000, false}} {
		s := newScript(t, options{})
		s.rate(tt.kbps)
		s.Send(1, 200)
		s.Send(2, 200)
		s.Expect(roctest.PSN(s.us(0)), roctest.AckReq(tt.asks))
	}
}

// sendAt posts a SEND of n bytes at an offset of the region.
func (s *script) sendAt(id uint64, off, n int) {
	s.t.Helper()
	s.Post(roce.SendWR{WRID: id, Opcode: roce.OpSend, SGList: s.sge(off, n)})
}
