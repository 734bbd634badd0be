package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// readRequest is a READ request of n bytes at off of the endpoint's region.
func (s *script) readRequest(psn wire.PSN, off, n int) roctest.Packet {
	p := request(wire.RCReadRequest, psn, nil)
	p.RETH = wire.RETH{VA: s.region.Addr() + uint64(off), RKey: s.region.RKey(), DMALen: uint32(n)}
	return p
}

// TestMaxDestRdAtomicKeepsReads: changing the number of READ resources must not
// forget what a peer may ask for again.
func TestMaxDestRdAtomicKeepsReads(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8), s.readRequest(s.it(1), 8, 8))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)))
	s.move(roce.StateSQD)
	s.modify(roce.AttrState|roce.AttrMaxDestRdAtomic, func(a *roce.Attr) { a.MaxDestRdAtomic = 2 })
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(1)),
		roctest.Payload(s.buf[8:16]))
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)),
		roctest.Payload(s.buf[:8]))
	s.ExpectNothing()
}

// TestMaxDestRdAtomicRefused: a READ that is being answered cannot be forgotten.
func TestMaxDestRdAtomicRefused(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8), s.readRequest(s.it(1), 8, 8))
	s.move(roce.StateSQD)
	a := s.qp.Attr()
	a.MaxDestRdAtomic = 1
	wantErr(t, s.qp.Modify(0, &a, roce.AttrMaxDestRdAtomic), roce.ErrState, "MAX_DEST_RD_ATOMIC")
	s.Expect(roctest.PSN(s.it(0)))
	s.Expect(roctest.PSN(s.it(1)))
}

// TestReplayKeepsOrder: a READ asked for again is answered before younger READs
// whose answers still wait.
func TestReplayKeepsOrder(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8), s.readRequest(s.it(1), 0, 3*s.mtu()))
	s.Expect(roctest.PSN(s.it(0)))
	s.Expect(roctest.PSN(s.it(1)), roctest.Opcode(wire.RCReadRespFirst))
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.Expect(roctest.PSN(s.it(0)), roctest.Opcode(wire.RCReadRespOnly))
	s.Expect(roctest.PSN(s.it(2)), roctest.Opcode(wire.RCReadRespMiddle))
	s.Expect(roctest.PSN(s.it(3)), roctest.Opcode(wire.RCReadRespLast))
	s.ExpectNothing()
}

// TestReplayWithoutKey: a READ is repeated whose key has gone since its response left. The peer is
// told, which means nothing to it if it has the response; requests behind it are executed.
func TestReplayWithoutKey(t *testing.T) {
	s := newScript(t, options{})
	read := s.readRequest(s.it(0), 0, 2*s.mtu())
	s.Recv(read)
	s.Expect(roctest.PSN(s.it(0)), roctest.Opcode(wire.RCReadRespFirst))
	s.Expect(roctest.PSN(s.it(1)), roctest.Opcode(wire.RCReadRespLast))
	s.Recv(read)
	s.Expect(roctest.PSN(s.it(0)), roctest.Opcode(wire.RCReadRespFirst))
	if err := s.keys.Deregister(s.region); err != nil {
		t.Fatal(err)
	}
	s.Expect(roctest.PSN(s.it(1)), roctest.Opcode(wire.RCAck),
		roctest.Syndrome(wire.NAKRemoteAccessError))
	s.Recv(request(wire.RCSendOnly, s.it(2), []byte("goes on")))
	s.Expect(roctest.PSN(s.it(2)), roctest.Opcode(wire.RCAck))
	s.ExpectNothing()
	if s.qp.State() != roce.StateRTS {
		t.Errorf("the queue pair is in %v", s.qp.State())
	}
}

// TestReplayOfPart: a repeated READ may ask for less than what is left of it.
func TestReplayOfPart(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	s.Recv(s.readRequest(s.it(0), 0, 4*mtu))
	for i := range uint32(4) {
		s.Expect(roctest.PSN(s.it(i)))
	}
	s.Recv(s.readRequest(s.it(1), mtu, 2*mtu))
	s.Expect(roctest.PSN(s.it(1)), roctest.Opcode(wire.RCReadRespFirst),
		roctest.Payload(s.buf[mtu:2*mtu]))
	s.Expect(roctest.PSN(s.it(2)), roctest.Opcode(wire.RCReadRespLast),
		roctest.Payload(s.buf[2*mtu:3*mtu]))
	s.Recv(s.readRequest(s.it(3), 3*mtu, 5))
	s.Expect(roctest.PSN(s.it(3)), roctest.Opcode(wire.RCReadRespOnly),
		roctest.Payload(s.buf[3*mtu:3*mtu+5]))
	s.Recv(s.readRequest(s.it(3), 3*mtu, mtu+1)) // reaches behind the old one
	s.ExpectNothing()
}

// TestReplayChecksRights: rights are checked again when a READ is repeated.
func TestReplayChecksRights(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.Expect(roctest.PSN(s.it(0)))
	s.modify(roce.AttrAccess, func(a *roce.Attr) { a.Access = 0 })
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.ExpectNothing()
}

// TestReplayFromMiddle: a repeated READ begins where the peer says, with FIRST,
// reads the memory again and counts no message.
func TestReplayFromMiddle(t *testing.T) {
	s := newScript(t, options{})
	mtu := s.mtu()
	n := 3*mtu + 5
	s.Recv(s.readRequest(s.it(0), 0, n))
	for i, op := range []wire.Opcode{
		wire.RCReadRespFirst, wire.RCReadRespMiddle,
		wire.RCReadRespMiddle, wire.RCReadRespLast,
	} {
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

// TestReplayOfGoneMemory: the key is checked again, and the queue pair goes on without it.
func TestReplayOfGoneMemory(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.Expect(roctest.PSN(s.it(0)))
	s.keys.Deregister(s.region)
	s.Recv(s.readRequest(s.it(0), 0, 8))
	s.ExpectAck(s.it(0), wire.NAKRemoteAccessError, 1)
	s.ExpectState(roce.StateRTS)
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

// TestGapBehindRead: a READ closes a gap, and the next gap is reported anew.
func TestGapBehindRead(t *testing.T) {
	s := newScript(t, options{})
	w := s.writeRequest(wire.RCWriteOnly, s.it(1), 0, 0, nil)
	s.Recv(w)
	s.ExpectAck(s.it(0), wire.NAKPSNSequenceError, 0)
	s.Recv(s.readRequest(s.it(0), 0, 1))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)))
	w.PSN = s.it(2)
	s.Recv(w)
	s.ExpectAck(s.it(1), wire.NAKPSNSequenceError, 1)
}

// TestReplayWhileResponding: an answer under way begins again, it is not given
// twice.
func TestReplayWhileResponding(t *testing.T) {
	s := newScript(t, options{})
	r := s.readRequest(s.it(0), 0, 2*s.mtu())
	s.Recv(r)
	s.Expect(roctest.PSN(s.it(0)))
	s.Recv(r, r)
	s.Expect(roctest.PSN(s.it(0)), roctest.Opcode(wire.RCReadRespFirst))
	s.Expect(roctest.PSN(s.it(1)), roctest.Opcode(wire.RCReadRespLast))
	s.ExpectNothing()
}

// TestMaxDestRdAtomicMoves: READs stay what they are when their number changes,
// up and down, and the oldest is the first to be forgotten.
func TestMaxDestRdAtomicMoves(t *testing.T) {
	s := newScript(t, options{MaxRd: 3})
	resize := func(n uint8) {
		s.modify(roce.AttrMaxDestRdAtomic, func(a *roce.Attr) { a.MaxDestRdAtomic = n })
	}
	read := func(i int) roctest.Packet { return s.readRequest(s.it(uint32(i)), 8*i, 8) }
	response := func(i int) {
		t.Helper()
		s.Expect(roctest.PSN(s.it(uint32(i))), roctest.Payload(s.buf[8*i:8*i+8]))
	}
	for i := range 2 {
		s.Recv(read(i))
		response(i)
	}
	s.Recv(read(2))
	s.move(roce.StateSQD)
	resize(2)
	response(2)
	resize(4)
	s.Recv(read(3))
	response(3)
	for i := 1; i < 4; i++ {
		s.Recv(read(i))
		response(i)
	}
	s.Recv(read(0))
	s.ExpectNothing()
}

// TestRefusedReadIsTheLastResponse: nothing behind a READ whose memory is gone is
// answered.
func TestRefusedReadIsTheLastResponse(t *testing.T) {
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 8), s.writeRequest(wire.RCWriteOnly, s.it(1), 0, 0, nil))
	s.keys.Deregister(s.region)
	s.ExpectAck(s.it(0), wire.NAKRemoteAccessError, 2)
	s.ExpectNothing()
	s.ExpectState(roce.StateErr)
}

// TestMostResponses: acknowledges before, between and behind all READs.
func TestMostResponses(t *testing.T) {
	s := newScript(t, options{MaxRd: 2})
	for i := range uint32(5) {
		if i%2 == 1 {
			s.Recv(s.readRequest(s.it(i), 0, 1))
		} else {
			s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(i), 0, 0, nil))
		}
	}
	for i := range uint32(5) {
		op := wire.RCAck
		if i%2 == 1 {
			op = wire.RCReadRespOnly
		}
		s.Expect(roctest.Opcode(op), roctest.PSN(s.it(i)), roctest.MSN(i+1))
	}
	s.ExpectNothing()
}

// TestResponsesGoFirst: data and refusals that we owe leave before what we want of
// the peer, and an acknowledge after one request of ours at most.
func TestResponsesGoFirst(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 3*s.mtu())
	s.Recv(s.readRequest(s.it(0), 0, 1))
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)))
	s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(1), 0, 0, nil))
	s.Expect(roctest.Opcode(wire.RCSendFirst), roctest.PSN(s.us(0)))
	s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(2), 0, 0, nil))
	s.ExpectAck(s.it(2), wire.ACKNoCredits, 3)
	s.Expect(roctest.Opcode(wire.RCSendMiddle), roctest.PSN(s.us(1)))
	s.Recv(s.writeRequest(wire.RCWriteOnly, s.it(4), 0, 0, nil))
	s.ExpectAck(s.it(3), wire.NAKPSNSequenceError, 3)
	s.Expect(roctest.Opcode(wire.RCSendLast), roctest.PSN(s.us(2)))
}

// TestNoDataInErr: a queue pair whose own work has failed reads no memory for its peer any more:
// it may be somebody else's by now. What it had acknowledged before still leaves.
func TestNoDataInErr(t *testing.T) {
	for _, sent := range []int{0, 3} { // packets of the peer's requests that are answered before
		s := newScript(t, options{RetryCnt: 1})
		s.Send(1, 8)
		s.Expect(roctest.PSN(s.us(0)))
		s.Advance(68 * roce.Millisecond)
		s.Expect(roctest.PSN(s.us(0)))
		s.PostRecv(9, 0, 64)
		s.Recv(request(wire.RCSendOnly, s.it(0), nil), s.readRequest(s.it(1), 0, 100*s.mtu()))
		for range sent {
			s.Expect()
		}
		s.Advance(68 * roce.Millisecond)
		s.ExpectState(roce.StateErr)
		s.ExpectCQE(failed(1, roce.StatusRetryExcErr))
		if sent == 0 {
			s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
		}
		s.ExpectNothing()
		if n := s.qp.Snapshot().Responses; n != 0 {
			t.Errorf("%d responses wait", n)
		}
	}
	// Data that the peer asked for before what it did wrong is its own.
	s := newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 3*s.mtu()))
	s.Recv(request(wire.RCWriteOnly, s.it(3), make([]byte, 8)))
	for i := range uint32(3) {
		s.Expect(roctest.PSN(s.it(i)))
	}
	s.ExpectAck(s.it(3), wire.NAKInvalidRequest, 1)
	s.ExpectState(roce.StateErr)

	s = newScript(t, options{})
	s.Recv(s.readRequest(s.it(0), 0, 3*s.mtu()))
	s.Recv(request(wire.RCWriteOnly, s.it(3), make([]byte, 8)))
	s.Expect(roctest.PSN(s.it(0)))
	s.move(roce.StateErr)
	s.ExpectNothing()
}
