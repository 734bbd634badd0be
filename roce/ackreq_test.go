package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
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
