package roce_test

import (
	"encoding/binary"
	"math"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// atomicRights let the peer do everything that needs no persistence.
const atomicRights = allRights | mem.RemoteAtomic | mem.FlushGlobal | mem.Invalidatable

// word is the address of the n-th eight bytes of the region.
func (s *script) word(n int) uint64 { return s.region.Addr() + uint64(8*n) }

// put stores a number in host order.
func (s *script) put(n int, v uint64) { binary.NativeEndian.PutUint64(s.buf[8*n:], v) }

// atomic is a request of the peer on the n-th word.
func (s *script) atomic(op wire.Opcode, psn wire.PSN, n int, swapAdd, compare uint64,
) roctest.Packet {
	return roctest.Packet{
		Opcode: op, PSN: psn, AckReq: true, Atomic: wire.AtomicETH{
			VA: s.word(n), RKey: s.region.RKey(), SwapAdd: swapAdd, Compare: compare,
		},
	}
}

// TestAtomicResponder: both operations on numbers in host order, modulo 2^64; a
// CMP_SWP that finds another number leaves it.
func TestAtomicResponder(t *testing.T) {
	for _, tt := range []struct {
		op                    wire.Opcode
		memory, swapAdd, comp uint64
		want                  uint64
	}{
		{wire.RCFetchAdd, 40, 2, 0, 42},
		{wire.RCFetchAdd, math.MaxUint64, 1, 0, 0},
		{wire.RCFetchAdd, 5, math.MaxUint64, 0, 4},
		{wire.RCFetchAdd, 0x0102030405060708, 0, 0, 0x0102030405060708},
		{wire.RCCmpSwap, 7, 9, 7, 9},
		{wire.RCCmpSwap, 7, 9, 8, 7},
		{wire.RCCmpSwap, 0x0102030405060708, 1, 0x0102030405060708, 1},
		{wire.RCCmpSwap, 0x0102030405060708, 1, 0x0807060504030201, 0x0102030405060708},
	} {
		s := newScript(t, options{Rights: atomicRights})
		s.put(3, tt.memory)
		s.Recv(s.atomic(tt.op, s.it(0), 3, tt.swapAdd, tt.comp))
		s.Expect(roctest.Opcode(wire.RCAtomicAck), roctest.PSN(s.it(0)), roctest.MSN(1),
			roctest.Syndrome(wire.ACKNoCredits), roctest.OrigData(tt.memory))
		s.ExpectNothing()
		s.ExpectWord(24, tt.want)
	}
}

// TestAtomicRefused: what the peer may not do it is told, and nothing is changed.
func TestAtomicRefused(t *testing.T) {
	noRegion := func(o *options) {
		o.Rights = allRights
		o.Access = func(a mem.Access) mem.Access { return a | mem.RemoteAtomic }
	}
	noQP := func(o *options) {
		o.Access = func(a mem.Access) mem.Access { return a &^ mem.RemoteAtomic }
	}
	for _, tt := range []struct {
		name   string
		config func(*options)
		change func(s *script, p *roctest.Packet)
		nak    wire.Syndrome
		event  roce.Event
	}{
		{
			"misaligned", nil, func(_ *script, p *roctest.Packet) { p.Atomic.VA += 4 },
			wire.NAKInvalidRequest, roce.EventQPReqErr,
		},
		{
			"key", nil, func(_ *script, p *roctest.Packet) { p.Atomic.RKey ^= 1 },
			wire.NAKRemoteAccessError, roce.EventQPAccessErr,
		},
		{
			"range", nil,
			func(s *script, p *roctest.Packet) { p.Atomic.VA = s.word(len(s.buf) / 8) },
			wire.NAKRemoteAccessError, roce.EventQPAccessErr,
		},
		{"region", noRegion, nil, wire.NAKRemoteAccessError, roce.EventQPAccessErr},
		{"QP", noQP, nil, wire.NAKInvalidRequest, roce.EventQPReqErr},
		{"no resources", func(o *options) {
			o.Attr = func(a *roce.Attr) { a.MaxDestRdAtomic = 0 }
		}, nil, wire.NAKInvalidRequest, roce.EventQPReqErr},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, op := range []wire.Opcode{wire.RCFetchAdd, wire.RCCmpSwap} {
				o := options{Rights: atomicRights}
				if tt.config != nil {
					tt.config(&o)
				}
				s := newScript(t, o)
				s.put(0, 7)
				p := s.atomic(op, s.it(0), 0, 9, 7)
				if tt.change != nil {
					tt.change(s, &p)
				}
				s.Recv(p)
				s.ExpectAck(s.it(0), tt.nak, 0)
				s.ExpectState(roce.StateErr)
				s.ExpectEvents(tt.event)
				s.ExpectWord(0, 7)
			}
		})
	}
}

// TestAtomicReplay: a request that comes again is answered with what it found the
// first time, is not executed, and counts once.
func TestAtomicReplay(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights})
	s.put(0, 100)
	add := s.atomic(wire.RCFetchAdd, s.it(0), 0, 1, 0)
	swap := s.atomic(wire.RCCmpSwap, s.it(1), 0, 5, 101)
	s.Recv(add, swap)
	for range 3 { // the request was lost, or its answer: the same to us
		s.Expect(roctest.Opcode(wire.RCAtomicAck), roctest.PSN(s.it(0)), roctest.OrigData(100))
		s.Expect(roctest.Opcode(wire.RCAtomicAck), roctest.PSN(s.it(1)), roctest.OrigData(101))
		s.ExpectNothing()
		s.ExpectWord(0, 5)
		s.Recv(add, swap)
	}
	if snap := s.qp.Snapshot(); snap.MSN != 2 || snap.ExpectedPSN != s.it(2) {
		t.Errorf("%+v", snap)
	}
}

// TestAtomicForgotten: only the last MAX_DEST_RD_ATOMIC are remembered; an older
// one is dropped, and so is one that was another operation.
func TestAtomicForgotten(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights, MaxRd: 2})
	for i := range uint32(3) {
		s.Recv(s.atomic(wire.RCFetchAdd, s.it(i), 0, 1, 0))
		s.Expect(roctest.PSN(s.it(i)))
	}
	s.put(0, 77)
	s.Recv(s.atomic(wire.RCFetchAdd, s.it(0), 0, 1, 0))
	s.ExpectNothing()
	s.ExpectCount(counter.DropUnmatchedDuplicate, 1)
	s.Recv(roctest.Packet{
		Opcode: wire.RCReadRequest, PSN: s.it(2),
		RETH: wire.RETH{VA: s.word(0), RKey: s.region.RKey(), DMALen: 8},
	})
	s.ExpectNothing()
	s.ExpectCount(counter.DropUnmatchedDuplicate, 2)
	s.ExpectWord(0, 77)
}

// TestAtomicRequester: operands go out in their places, the old value comes back
// in host order, to pieces of any size.
func TestAtomicRequester(t *testing.T) {
	s := newScript(t, options{})
	addr := s.region.Addr()
	pieces := []roce.SGE{
		{Addr: addr + 64, Length: 3, LKey: s.region.LKey()},
		{},
		{Addr: addr + 100, Length: 5, LKey: s.region.LKey()},
	}
	s.Post(roce.SendWR{
		WRID: 1, Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8), RemoteAddr: 0x1000, RKey: 7,
		CompareAdd: 0x1122334455667788, Swap: 99,
	})
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpCmpSwap, SGList: pieces, RemoteAddr: 0x1008, RKey: 7,
		CompareAdd: 3, Swap: 4,
	})
	s.Expect(roctest.Opcode(wire.RCFetchAdd), roctest.PSN(s.us(0)), roctest.Atomic(
		wire.AtomicETH{VA: 0x1000, RKey: 7, SwapAdd: 0x1122334455667788}))
	s.Expect(roctest.Opcode(wire.RCCmpSwap), roctest.PSN(s.us(1)), roctest.Atomic(
		wire.AtomicETH{VA: 0x1008, RKey: 7, SwapAdd: 4, Compare: 3}))
	s.Recv(atomicAck(s.us(0), 0xa1b2c3d4e5f60718), atomicAck(s.us(1), 0x0102030405060708))
	s.ExpectWord(0, 0xa1b2c3d4e5f60718)
	var old [8]byte
	copy(old[:3], s.buf[64:])
	copy(old[3:], s.buf[100:])
	if v := binary.NativeEndian.Uint64(old[:]); v != 0x0102030405060708 {
		t.Errorf("the second found %#x", v)
	}
	for i, op := range []roce.WCOpcode{roce.WCFetchAdd, roce.WCCompSwap} {
		s.ExpectCQE(roce.Completion{WRID: uint64(1 + i), Opcode: op, ByteLen: 8})
	}
}

// atomicAck is the peer's answer to an atomic.
func atomicAck(psn wire.PSN, old uint64) roctest.Packet {
	return roctest.Packet{
		Opcode: wire.RCAtomicAck, PSN: psn, OrigData: old,
		AETH: wire.AETH{Syndrome: wire.ACKNoCredits},
	}
}

// TestAtomicRefusedAtPost: what can never work is no work request.
func TestAtomicRefusedAtPost(t *testing.T) {
	s := newScript(t, options{})
	good := roce.SendWR{Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8), RemoteAddr: 8}
	for name, change := range map[string]func(*roce.SendWR){
		"moves 8":       func(wr *roce.SendWR) { wr.SGList = s.sge(0, 7) },
		"multiple of 8": func(wr *roce.SendWR) { wr.RemoteAddr = 12 },
		"inline":        func(wr *roce.SendWR) { wr.Flags = roce.SendInline },
	} {
		for _, op := range []roce.Opcode{roce.OpFetchAdd, roce.OpCmpSwap} {
			wr := good
			wr.Opcode = op
			change(&wr)
			wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, name)
		}
	}
	s = newScript(t, options{Attr: func(a *roce.Attr) { a.MaxRdAtomic = 0 }})
	wantErr(t, s.qp.PostSend(&good), roce.ErrInvalid, "MAX_QP_RD_ATOMIC")
}

// TestAtomicsShareTheLimit: READs, atomics, FLUSH and ATOMIC WRITE together are at
// most MAX_QP_RD_ATOMIC, and what is behind waits.
func TestAtomicsShareTheLimit(t *testing.T) {
	s := newScript(t, options{MaxRd: 3})
	s.Read(1, 4)
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8)})
	s.Post(roce.SendWR{WRID: 3, Opcode: roce.OpAtomicWrite, SGList: s.sge(8, 8)})
	s.Post(roce.SendWR{WRID: 4, Opcode: roce.OpFlush, Flush: wire.FlushGlobal})
	s.Send(5, 4)
	for i, op := range []wire.Opcode{wire.RCReadRequest, wire.RCFetchAdd, wire.RCAtomicWrite} {
		s.Expect(roctest.Opcode(op), roctest.PSN(s.us(uint32(i))))
	}
	s.ExpectNothing()
	s.Recv(response(wire.RCReadRespOnly, s.us(0), make([]byte, 4)))
	s.Expect(roctest.Opcode(wire.RCFlush), roctest.PSN(s.us(3)))
	s.Expect(roctest.Opcode(wire.RCSendOnly), roctest.PSN(s.us(4)))
	s.ExpectNothing()
}

// TestAtomicResponseLost: a later answer tells that the atomic's was lost; it is
// asked for again with the same PSN.
func TestAtomicResponseLost(t *testing.T) {
	s := newScript(t, options{})
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8), CompareAdd: 6})
	s.Send(2, 4)
	s.Expect(roctest.Opcode(wire.RCFetchAdd))
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Recv(ack(s.us(1)))
	s.Expect(roctest.Opcode(wire.RCFetchAdd), roctest.PSN(s.us(0)),
		roctest.Atomic(wire.AtomicETH{SwapAdd: 6}))
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Recv(atomicAck(s.us(0), 1), ack(s.us(1)))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCFetchAdd, ByteLen: 8}, done(2, roce.WCSend))
}

// TestAtomicAckForOther: an atomic's answer to what is not one ends the QP.
func TestAtomicAckForOther(t *testing.T) {
	s := newScript(t, options{})
	s.Read(1, 4)
	s.Expect()
	s.Recv(atomicAck(s.us(0), 1))
	s.ExpectCQE(failed(1, roce.StatusBadRespErr))

	s = newScript(t, options{})
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpFetchAdd, SGList: s.sge(0, 8)})
	s.Expect()
	s.Recv(response(wire.RCReadRespOnly, s.us(0), nil))
	s.ExpectCQE(failed(1, roce.StatusBadRespErr))
}
