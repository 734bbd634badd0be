package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestGatherFailureOvertaken: memory of a sent request goes away, the request
// has to be sent again, and then its first sending turns out to have arrived.
func TestGatherFailureOvertaken(t *testing.T) {
	s := newScript(t, options{})
	other, err := s.keys.RegisterAt(s.domain, make([]byte, 64), 1, 0)
	must(t, err)
	s.Send(1, 8)
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpSend,
		SGList: []roce.SGE{{Addr: 1, Length: 64, LKey: other.LKey()}}})
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

// TestReceiveInHandReportsTheError: the receive that a refused message had taken
// says why; the others are flushed.
func TestReceiveInHandReportsTheError(t *testing.T) {
	s := newScript(t, options{})
	s.PostRecv(1, 0, 4096)
	s.PostRecv(2, 0, 4096)
	s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())))
	s.Recv(request(wire.RCSendOnly, s.it(1), nil))
	s.ExpectRecvCQE(failed(1, roce.StatusRemInvReqErr), failed(2, roce.StatusWRFlushErr))

	s = newScript(t, options{})
	s.PostRecv(1, 0, 4096)
	s.PostRecv(2, 0, 4096)
	p := request(wire.RCWriteOnlyImm, s.it(0), []byte("data"))
	p.RETH = wire.RETH{VA: s.region.Addr(), RKey: s.region.RKey() ^ 1, DMALen: 4}
	s.Recv(p)
	s.ExpectRecvCQE(failed(1, roce.StatusLocAccessErr), failed(2, roce.StatusWRFlushErr))
}

// TestOtherFramingIsAnotherSource: RoCE v1 with the addresses of a v2
// connection does not belong to it.
func TestOtherFramingIsAnotherSource(t *testing.T) {
	s := newScript(t, options{Framing: wire.FramingV2IPv6})
	path := pathTo(qpnA, wire.FramingV2IPv6)
	path.Framing = wire.FramingV1
	must(t, s.path.Init(path))
	s.Recv(request(wire.RCWriteOnly, s.it(0), nil))
	s.ExpectNothing()
	if got := s.qp.Snapshot().LastDrop.String(); got != "source" {
		t.Errorf("dropped at %s", got)
	}
}

// TestReadsForbiddenWhileQueued: MAX_QP_RD_ATOMIC 0 fails READs that wait.
func TestReadsForbiddenWhileQueued(t *testing.T) {
	s := newScript(t, options{})
	s.move(roce.StateSQD)
	s.Read(1, 8)
	s.modify(roce.AttrMaxRdAtomic, func(a *roce.Attr) { a.MaxRdAtomic = 0 })
	s.move(roce.StateRTS)
	s.ExpectNothing()
	s.ExpectCQE(failed(1, roce.StatusLocQPOpErr))
	s.ExpectState(roce.StateErr)
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
