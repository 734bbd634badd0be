package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestGapIsReportedOnce, and again when a new gap opens.
func TestGapIsReportedOnce(t *testing.T) {
	s := newScript(t, options{})
	w := func(n uint32) roctest.Packet {
		return s.writeRequest(wire.RCWriteOnly, s.it(n), int(n), 1, []byte{byte('a' + n)})
	}
	s.Recv(w(0))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.Recv(w(2))
	s.ExpectAck(s.it(1), wire.NAKPSNSequenceError, 1)
	s.Recv(w(3), w(2), w(4))
	s.ExpectNothing()
	s.Recv(w(1)) // late by reordering: the window behind it is a new gap
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 2)
	s.Recv(w(4))
	s.ExpectAck(s.it(2), wire.NAKPSNSequenceError, 2)
	s.Recv(w(2), w(3), w(4))
	s.ExpectAck(s.it(4), wire.ACKNoCredits, 5)
	s.ExpectNothing()
	s.ExpectCount(counter.SentSeqNAK, 2)
	s.ExpectCount(counter.OutOfSequence, 2)
	s.ExpectCount(counter.DropAfterGap, 3)
	if string(s.buf[:5]) != "abcde" {
		t.Errorf("memory is %q", s.buf[:5])
	}
}

// TestDuplicateKeepsNAK: the acknowledge of a duplicate does not take the place
// of a NAK that waits.
func TestDuplicateKeepsNAK(t *testing.T) {
	s := newScript(t, options{})
	w := func(n uint32) roctest.Packet { return request(wire.RCWriteOnly, s.it(n), nil) }
	s.Recv(w(0))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.Recv(w(2), w(0))
	s.ExpectAck(s.it(1), wire.NAKPSNSequenceError, 1)
	s.ExpectNothing()
}

// TestGapInsideMessage: a message goes on where it was.
func TestGapInsideMessage(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	data := make([]byte, 3*mtu)
	fill(data, 4)
	s.PostRecv(1, 0, len(data))
	s.Recv(request(wire.RCSendFirst, s.it(0), data[:mtu]))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 0)
	s.Recv(request(wire.RCSendLast, s.it(2), data[2*mtu:]))
	s.ExpectAck(s.it(1), wire.NAKPSNSequenceError, 0)
	s.Recv(request(wire.RCSendMiddle, s.it(1), data[mtu:2*mtu]),
		request(wire.RCSendLast, s.it(2), data[2*mtu:]))
	s.ExpectAck(s.it(2), wire.ACKNoCredits, 1)
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: uint32(len(data))})
	if string(s.buf[:len(data)]) != string(data) {
		t.Error("memory differs")
	}
}

// TestNAKGoesBack: everything before the PSN of the NAK is acknowledged, the
// rest is sent again at once, and a second NAK for the same loss is ignored.
func TestNAKGoesBack(t *testing.T) {
	s := newScript(t, options{RetryCnt: 1})
	for i := range uint64(4) {
		s.Send(i, 3)
		s.Expect(roctest.PSN(s.us(uint32(i))))
	}
	nak := ackWith(s.us(2), wire.NAKPSNSequenceError)
	s.Recv(nak)
	s.ExpectCQE(done(0, roce.WCSend), done(1, roce.WCSend))
	s.Expect(roctest.PSN(s.us(2)))
	s.Recv(nak)
	s.Expect(roctest.PSN(s.us(3)))
	s.Recv(nak)
	s.ExpectNothing()
	s.ExpectNoCQE()
	s.Recv(ack(s.us(3)))
	s.ExpectCQE(done(2, roce.WCSend), done(3, roce.WCSend))
	s.ExpectCount(counter.Retransmits, 2)
	s.ExpectDeadline(0)
}

// TestNAKInsideMessage: a message goes on with MIDDLE and LAST, no new RETH, and
// the same PSNs carry the same bytes.
func TestNAKInsideMessage(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	s.Post(roce.SendWR{
		WRID: 1, Opcode: roce.OpWrite, SGList: s.sge(0, 3*mtu+1), RKey: 5,
		RemoteAddr: 0x9000,
	})
	second := roctest.All(roctest.Opcode(wire.RCWriteMiddle), roctest.PSN(s.us(1)),
		roctest.Payload(s.buf[mtu:2*mtu]))
	third := roctest.All(roctest.Opcode(wire.RCWriteMiddle), roctest.PSN(s.us(2)))
	last := roctest.All(roctest.Opcode(wire.RCWriteLast), roctest.PSN(s.us(3)),
		roctest.Payload(s.buf[3*mtu:3*mtu+1]), roctest.AckReq(true))
	s.Expect(roctest.Opcode(wire.RCWriteFirst), roctest.AckReq(false),
		roctest.RETH(wire.RETH{VA: 0x9000, RKey: 5, DMALen: uint32(3*mtu + 1)}))
	s.Expect(second)
	s.Expect(third)
	s.Expect(last)
	s.Recv(ackWith(s.us(1), wire.NAKPSNSequenceError))
	s.Expect(second)
	s.Expect(third)
	s.Expect(last)
	s.Recv(ack(s.us(3)))
	s.ExpectCQE(done(1, roce.WCWrite))
}
