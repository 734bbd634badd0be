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

// TestReplayFromMiddle: a repeated READ begins where the peer says, with FIRST,
// reads the memory again and counts no message.
func TestReplayFromMiddle(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	n := 3*mtu + 5
	s.Recv(s.readRequest(s.it(0), 0, n))
	for i, op := range []wire.Opcode{wire.RCReadRespFirst, wire.RCReadRespMiddle,
		wire.RCReadRespMiddle, wire.RCReadRespLast} {
		end := min(n, (i+1)*mtu)
		s.Expect(roctest.Opcode(op), roctest.PSN(s.it(uint32(i))),
			roctest.Payload(s.buf[i*mtu:end]))
	}
	s.ExpectNothing()
	fill(s.buf, 9)
	s.Recv(s.readRequest(s.it(2), 2*mtu, n-2*mtu))
	s.Expect(roctest.Opcode(wire.RCReadRespFirst), roctest.PSN(s.it(2)), roctest.MSN(1),
		roctest.Payload(s.buf[2*mtu:3*mtu]))
	s.Expect(roctest.Opcode(wire.RCReadRespLast), roctest.PSN(s.it(3)), roctest.MSN(1))
	s.Recv(s.readRequest(s.it(3), 3*mtu, 5))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(3)),
		roctest.Payload(s.buf[3*mtu:n]))
	s.ExpectNothing()
	if snap := s.qp.Snapshot(); snap.ExpectedPSN != s.it(4) || snap.MSN != 1 {
		t.Errorf("a replay moved %s", snap)
	}
}

// TestReplayForgotten: no more READs than MAX_DEST_RD_ATOMIC are remembered.
func TestReplayForgotten(t *testing.T) {
	s := newScript(t, options{MaxRd: 2})
	for i := range uint32(3) {
		s.Recv(s.readRequest(s.it(i), 8*int(i), 8))
		s.Expect(roctest.PSN(s.it(i)))
	}
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.ExpectNothing()
	s.ExpectCount(counter.DropUnmatchedDuplicate, 1)
	s.Recv(s.readRequest(s.it(1), 8, 8))
	s.Expect(roctest.PSN(s.it(1)), roctest.Payload(s.buf[8:16]))
}

// TestReplayOfOtherRead: a repeated READ that differs is not answered.
func TestReplayOfOtherRead(t *testing.T) {
	for name, change := range map[string]func(h *wire.RETH){
		"key":     func(h *wire.RETH) { h.RKey ^= 1 },
		"address": func(h *wire.RETH) { h.VA++ },
		"length":  func(h *wire.RETH) { h.DMALen++ },
	} {
		s := newScript(t, options{})
		r := s.readRequest(s.it(0), 0, 8)
		s.Recv(r)
		s.Expect(roctest.PSN(s.it(0)))
		change(&r.RETH)
		s.Recv(r)
		s.ExpectNothing()
		if got := s.count[counter.DropUnmatchedDuplicate]; got != 1 {
			t.Errorf("%s: %d dropped", name, got)
		}
	}
}

// TestReplayOfGoneMemory: the key is checked again.
func TestReplayOfGoneMemory(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.Expect(roctest.PSN(s.it(0)))
	s.keys.Deregister(s.region)
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.ExpectAck(s.it(0), wire.NAKRemoteAccessError, 1)
	s.ExpectState(roce.StateErr)
}

// TestAckBehindRead: the acknowledge of a WRITE does not overtake the data of
// the READ before it, and covers what comes while it waits.
func TestAckBehindRead(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 2*s.mtu()),
		s.writeRequest(wire.RCWriteOnly, s.it(2), 0, 1, []byte("x")),
		s.writeRequest(wire.RCWriteOnly, s.it(3), 0, 1, []byte("y")),
		s.readRequest(s.it(4), 0, 1))
	s.Expect(roctest.PSN(s.it(0)), roctest.MSN(1))
	s.Expect(roctest.PSN(s.it(1)), roctest.MSN(1))
	s.ExpectAck(s.it(3), wire.ACKNoCredits, 3)
	s.Expect(roctest.PSN(s.it(4)), roctest.MSN(4), roctest.Payload([]byte("y")))
	s.ExpectNothing()
	s.ExpectCount(counter.AckDeferred, 1)
}
