package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// huge registers hugeMemory at 2^40.
func (s *script) huge() *mem.Region {
	s.t.Helper()
	if raceDetector {
		s.t.Skip("the race detector would shadow 2 GiB with real memory")
	}
	r, err := s.keys.RegisterAt(s.domain, hugeMemory(), 1<<40, allRights)
	must(s.t, err)
	return r
}

// TestHugeRead: a READ of 2^31 bytes takes 2^23 PSNs, half of all; one byte more
// is refused. The last packets are as exact as the first.
func TestHugeRead(t *testing.T) {
	s := newScript(t, options{MTU: wire.MTU256, SQPSN: 0xfffff0})
	r := s.huge()
	list := []roce.SGE{{Addr: r.Addr(), Length: 1 << 31, LKey: r.LKey()}}
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpRead, SGList: list, RemoteAddr: 1 << 50, RKey: 7})
	s.Send(2, 4)
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(0)), roctest.RETH(
		wire.RETH{VA: 1 << 50, RKey: 7, DMALen: 1 << 31}))
	s.ExpectNothing() // the SEND waits for the window
	data := make([]byte, 256)
	fill(data, 3)
	s.Recv(response(wire.RCReadRespFirst, s.us(0), data))
	// An answer to what lies 2^23 - 1 ahead of the oldest: not a ghost, a loss.
	s.Recv(response(wire.RCReadRespLast, s.us(1<<23-1), data))
	s.Expect(roctest.Opcode(wire.RCReadRequest), roctest.PSN(s.us(1)), roctest.RETH(
		wire.RETH{VA: 1<<50 + 256, RKey: 7, DMALen: 1<<31 - 256}))
	// The PSN behind it was never used.
	s.Recv(ack(s.us(1 << 23)))
	if snap := s.qp.Snapshot(); snap.UnackedPSN != s.us(1) || snap.TopPSN != s.us(1<<23) {
		t.Errorf("%+v", snap)
	}
	list[0].Length++
	wantErr(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpRead, SGList: list}),
		roce.ErrInvalid, "2^31")
}

// TestHugeReadResponder: the peer's READ of 2^31 bytes moves the expected PSN by
// 2^23. A part of it can be asked for again, to its last byte.
func TestHugeReadResponder(t *testing.T) {
	s := newScript(t, options{MTU: wire.MTU256, RQPSN: 0xfffff0})
	r := s.huge()
	copy(r.Bytes()[1<<31-256:], "the end")
	whole := roctest.Packet{
		Opcode: wire.RCReadRequest, PSN: s.it(0),
		RETH: wire.RETH{VA: r.Addr(), RKey: r.RKey(), DMALen: 1 << 31},
	}
	s.Recv(whole)
	s.Expect(roctest.Opcode(wire.RCReadRespFirst), roctest.PSN(s.it(0)))
	if snap := s.qp.Snapshot(); snap.ExpectedPSN != s.it(1<<23) || snap.MSN != 1 {
		t.Errorf("%+v", snap)
	}
	part := whole
	part.PSN = s.it(1<<23 - 1)
	part.RETH.VA, part.RETH.DMALen = r.Addr()+1<<31-256, 256
	s.Recv(part)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(1<<23-1)),
		roctest.Payload(r.Bytes()[1<<31-256:]))
	s.ExpectNothing()
	whole.RETH.DMALen++
	whole.PSN = s.it(1 << 23)
	s.Recv(whole)
	s.ExpectAck(s.it(1<<23), wire.NAKInvalidRequest, 1)
}

// TestHugeWrite: a WRITE of 2^31 bytes begins as it should, and may be posted
// behind others.
func TestHugeWrite(t *testing.T) {
	s := newScript(t, options{MTU: wire.MTU256, Window: 8})
	r := s.huge()
	list := []roce.SGE{{Addr: r.Addr(), Length: 1 << 31, LKey: r.LKey()}}
	for i := range uint64(3) {
		s.Post(roce.SendWR{
			WRID: i, Opcode: roce.OpWrite, SGList: list, RemoteAddr: 1 << 50, RKey: 7,
		})
	}
	s.Expect(roctest.Opcode(wire.RCWriteFirst), roctest.RETH(
		wire.RETH{VA: 1 << 50, RKey: 7, DMALen: 1 << 31}))
	for i := range uint32(100) {
		s.Expect(roctest.Opcode(wire.RCWriteMiddle), roctest.PSN(s.us(1+i)),
			roctest.PayloadLen(256))
		s.Recv(ack(s.us(1 + i)))
	}
	s.Recv(ackWith(s.us(101), wire.NAKPSNSequenceError)) // not sent yet
	s.Expect(roctest.PSN(s.us(101)))
	s.Recv(ackWith(s.us(101), wire.NAKPSNSequenceError))
	s.Expect(roctest.PSN(s.us(101)), roctest.Opcode(wire.RCWriteMiddle))
}

// TestHugeWriteResponder: the whole range is checked with the first packet.
func TestHugeWriteResponder(t *testing.T) {
	for _, extra := range []uint64{0, 1} {
		s := newScript(t, options{MTU: wire.MTU256})
		r := s.huge()
		p := request(wire.RCWriteFirst, s.it(0), make([]byte, 256))
		p.RETH = wire.RETH{VA: r.Addr() + extra, RKey: r.RKey(), DMALen: 1 << 31}
		s.Recv(p)
		if extra == 0 {
			s.ExpectAck(s.it(0), wire.ACKNoCredits, 0)
		} else {
			s.ExpectAck(s.it(0), wire.NAKRemoteAccessError, 0)
		}
	}
}

// TestReplayNewest: after 2^24 packets a PSN comes again while the old request
// is still remembered. The answer is that of the new one.
func TestReplayNewest(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights, MaxRd: 4, MTU: wire.MTU256})
	r := s.huge()
	first := s.atomic(wire.RCFetchAdd, s.it(0), 0, 1, 0)
	s.put(0, 10)
	s.Recv(first)
	s.Expect(roctest.OrigData(10))
	for i := range uint32(2) { // the rest of the PSN space, less one
		p := roctest.Packet{Opcode: wire.RCReadRequest, PSN: s.it(1 + i*(1<<23-1))}
		p.RETH = wire.RETH{VA: r.Addr(), RKey: r.RKey(), DMALen: 1<<31 - 256}
		s.Recv(p)
	}
	s.Recv(request(wire.RCWriteOnly, s.it(1<<24-1), nil), first)
	s.ExpectWord(0, 12)
	before := s.qp.Snapshot()
	s.Recv(first)
	s.ExpectWord(0, 12)
	// The answer to the new one waits already; the old one would make one more.
	if after := s.qp.Snapshot(); after != before {
		t.Errorf("%+v, want %+v", after, before)
	}
}
