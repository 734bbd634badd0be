package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// writeRequest is a WRITE packet to offset off of the region; n is the length of
// the whole message.
func (s *script) writeRequest(
	op wire.Opcode, psn wire.PSN, off, n int, payload []byte,
) roctest.Packet {
	p := request(op, psn, payload)
	p.RETH = wire.RETH{VA: s.region.Addr() + uint64(off), RKey: s.region.RKey(), DMALen: uint32(n)}
	return p
}

// TestDuplicateSend: executed once, acknowledged again with the newest PSN.
func TestDuplicateSend(t *testing.T) {
	s := newScript(t, options{})
	s.PostRecv(1, 0, 16)
	s.PostRecv(2, 16, 16)
	first := request(wire.RCSendOnly, s.it(0), []byte("one"))
	second := request(wire.RCSendOnly, s.it(1), []byte("two"))
	s.Recv(first)
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.Recv(second)
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 2)
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 3},
		roce.Completion{WRID: 2, Opcode: roce.WCRecv, ByteLen: 3})
	first.AckReq = false
	s.Recv(first)
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 2)
	s.ExpectNothing()
	s.ExpectNoCQE()
	s.ExpectCount(counter.DuplicateRequest, 1)
}

// TestDuplicateWrite: memory that changed after the WRITE stays as it is.
func TestDuplicateWrite(t *testing.T) {
	s := newScript(t, options{})
	w := s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 4, []byte("data"))
	s.Recv(w)
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	copy(s.buf, "mine")
	s.Recv(w, w)
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.ExpectNothing()
	if string(s.buf[:4]) != "mine" {
		t.Errorf("memory is %q", s.buf[:4])
	}
}

// TestDuplicateInMessage: a message under way is not disturbed.
func TestDuplicateInMessage(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	data := make([]byte, 2*mtu+1)
	fill(data, 5)
	first := s.writeRequest(wire.RCWriteFirst, s.it(0), 0, len(data), data[:mtu])
	middle := request(wire.RCWriteMiddle, s.it(1), data[mtu:2*mtu])
	s.Recv(first, middle)
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 0)
	s.Recv(first, middle)
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 0)
	s.Recv(request(wire.RCWriteLast, s.it(2), data[2*mtu:]))
	s.ExpectAck(s.it(2), wire.ACKNoCredits, 1)
	if string(s.buf[:len(data)]) != string(data) {
		t.Error("memory differs")
	}
}

// TestDuplicateEdge: the PSN 2^23 before the expected one is the oldest that is
// a duplicate, the one 2^23-1 after it the youngest that is ahead.
func TestDuplicateEdge(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(request(wire.RCWriteOnly, s.it(0).Sub(1<<23), nil))
	s.ExpectAck(s.it(0).Sub(1), wire.ACKNoCredits, 0)
	s.Recv(request(wire.RCWriteOnly, s.it(1<<23-1), nil))
	s.ExpectAck(s.it(0), wire.NAKPSNSequenceError, 0)
}
