package roce_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

const persistentRights = atomicRights | mem.FlushPersistent

// flushRequest is a FLUSH of the peer for n bytes at off.
func (s *script) flushRequest(psn wire.PSN, plt, sel uint8, off, n int) roctest.Packet {
	return roctest.Packet{
		Opcode: wire.RCFlush, PSN: psn, AckReq: true, FETH: wire.FETH{PLT: plt, SEL: sel},
		RETH: wire.RETH{
			VA: s.region.Addr() + uint64(off), RKey: s.region.RKey(), DMALen: uint32(n),
		},
	}
}

// syncCall is one call of the hook that makes memory persistent.
type syncCall struct{ off, n int }

// TestFlushResponder: the hook is called with the range, or with the whole region,
// when persistence is asked for; the answer is a READ response of nothing.
func TestFlushResponder(t *testing.T) {
	const both = wire.FlushGlobal | wire.FlushPersistent
	for _, tt := range []struct {
		plt, sel uint8
		off, n   int
		want     []syncCall
	}{
		{wire.FlushGlobal, wire.FlushRange, 8, 100, nil},
		{wire.FlushGlobal, wire.FlushRange, 8, 0, nil},
		{wire.FlushPersistent, wire.FlushRange, 8, 100, []syncCall{{8, 100}}},
		{wire.FlushPersistent, wire.FlushRange, 8, 0, nil},
		{wire.FlushPersistent, wire.FlushRegion, 1 << 40, 1 << 30, []syncCall{{0, 1 << 16}}},
		{wire.FlushPersistent, wire.FlushRegion, 0, 3 << 30, []syncCall{{0, 1 << 16}}},
		{both, wire.FlushRange, 0, 1, []syncCall{{0, 1}}},
	} {
		var calls []syncCall
		s := newScript(t, options{Rights: persistentRights, Sync: func(off, n int) error {
			calls = append(calls, syncCall{off, n})
			return nil
		}})
		p := s.flushRequest(s.it(0), tt.plt, tt.sel, tt.off, tt.n)
		for range 2 { // the second time it is a duplicate: answered, not done again
			s.Recv(p)
			s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PSN(s.it(0)), roctest.MSN(1),
				roctest.PayloadLen(0))
			s.ExpectNothing()
			if len(calls) != len(tt.want) || len(calls) == 1 && calls[0] != tt.want[0] {
				t.Errorf("%+v: synced %v", tt, calls)
			}
		}
	}
}

// TestFlushRefused: each way in which a FLUSH is wrong.
func TestFlushRefused(t *testing.T) {
	noRight := func(right mem.Access) func(*options) {
		return func(o *options) {
			o.Access = func(a mem.Access) mem.Access { return a &^ right }
		}
	}
	for _, tt := range []struct {
		name     string
		config   func(*options)
		plt, sel uint8
		n        int
		nak      wire.Syndrome
	}{
		{"nothing", nil, 0, 0, 8, wire.NAKInvalidRequest},
		{"type", nil, 4, 0, 8, wire.NAKInvalidRequest},
		{"selector", nil, wire.FlushGlobal, 2, 8, wire.NAKInvalidRequest},
		{"range", nil, wire.FlushGlobal, 0, 1<<16 + 1, wire.NAKRemoteAccessError},
		{"length", nil, wire.FlushGlobal, 0, 1<<31 + 1, wire.NAKInvalidRequest},
		{"global", noRight(mem.FlushGlobal), wire.FlushGlobal, 0, 8, wire.NAKInvalidRequest},
		{
			"persistent", noRight(mem.FlushPersistent), wire.FlushPersistent, 0, 8,
			wire.NAKInvalidRequest,
		},
		{"both", noRight(mem.FlushGlobal), 3, 0, 8, wire.NAKInvalidRequest},
		{"region", func(o *options) {
			o.Rights = allRights
			o.Access = func(a mem.Access) mem.Access { return a | mem.FlushGlobal }
		}, wire.FlushGlobal, 0, 8, wire.NAKRemoteAccessError},
		{"sync", func(o *options) {
			o.Sync = func(int, int) error { return errors.New("no disk") }
		}, wire.FlushPersistent, 0, 8, wire.NAKRemoteOperationalError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options{Rights: persistentRights, Sync: func(int, int) error { return nil }}
			if tt.config != nil {
				tt.config(&o)
			}
			s := newScript(t, o)
			s.Recv(s.flushRequest(s.it(0), tt.plt, tt.sel, 0, tt.n))
			s.ExpectAck(s.it(0), tt.nak, 0)
			s.ExpectState(roce.StateErr)
		})
	}
}

// TestFlushRequester: what is asked for goes out as FETH and RETH; the answer is a
// READ response without data, which completes what was before it too.
func TestFlushRequester(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 4)
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpFlush, Flush: wire.FlushGlobal | wire.FlushPersistent,
		FlushLength: 77, RemoteAddr: 0x5001, RKey: 9,
	})
	s.Post(roce.SendWR{
		WRID: 3, Opcode: roce.OpFlush, Flush: wire.FlushGlobal, FlushRegion: true, RKey: 9,
	})
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Expect(roctest.Opcode(wire.RCFlush), roctest.PSN(s.us(1)), roctest.FETH(wire.FETH{PLT: 3}),
		roctest.RETH(wire.RETH{VA: 0x5001, RKey: 9, DMALen: 77}))
	s.Expect(roctest.Opcode(wire.RCFlush), roctest.FETH(wire.FETH{PLT: 1, SEL: 1}))
	s.Recv(response(wire.RCReadRespOnly, s.us(1), nil))
	s.ExpectCQE(done(1, roce.WCSend), done(2, roce.WCFlush))
	s.Recv(response(wire.RCReadRespOnly, s.us(2), make([]byte, 4))) // with data: wrong
	s.ExpectCQE(failed(3, roce.StatusBadRespErr))

	for words, wr := range map[string]roce.SendWR{
		"type": {Opcode: roce.OpFlush},
		"SGEs": {Opcode: roce.OpFlush, Flush: 1, SGList: s.sge(0, 8)},

		"at most": {Opcode: roce.OpFlush, Flush: 1, FlushLength: 1<<31 + 1},
	} {
		wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, words)
	}
}

// TestAtomicWrite: eight bytes land as they came, once.
func TestAtomicWrite(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights})
	p := roctest.Packet{
		Opcode: wire.RCAtomicWrite, PSN: s.it(0), Payload: []byte("as it is"),
		RETH: wire.RETH{VA: s.word(2), RKey: s.region.RKey(), DMALen: 8},
	}
	s.Recv(p)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.MSN(1), roctest.PayloadLen(0))
	s.ExpectWord(16, binary.NativeEndian.Uint64([]byte("as it is")))
	s.put(2, 5)
	s.Recv(p)
	s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.MSN(1))
	s.ExpectWord(16, 5)

	for _, tt := range []struct {
		change func(p *roctest.Packet)
		nak    wire.Syndrome
	}{
		{func(p *roctest.Packet) { p.RETH.DMALen = 7 }, wire.NAKInvalidRequest},
		{func(p *roctest.Packet) { p.RETH.VA++ }, wire.NAKInvalidRequest},
		{func(p *roctest.Packet) { p.RETH.RKey ^= 1 }, wire.NAKRemoteAccessError},
	} {
		s := newScript(t, options{Rights: atomicRights})
		bad := p
		bad.RETH.RKey = s.region.RKey()
		tt.change(&bad)
		s.Recv(bad)
		s.ExpectAck(s.it(0), tt.nak, 0)
	}
}

// TestAtomicWriteRequester: from memory and inline; it carries data and RETH.
func TestAtomicWriteRequester(t *testing.T) {
	s := newScript(t, options{Inline: 8})
	s.Post(roce.SendWR{
		WRID: 1, Opcode: roce.OpAtomicWrite, SGList: s.sge(3, 8), RemoteAddr: 64, RKey: 2,
	})
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpAtomicWrite, Flags: roce.SendInline, Inline: []byte("eight by"),
		RemoteAddr: 72, RKey: 2,
	})
	s.Expect(roctest.Opcode(wire.RCAtomicWrite), roctest.Payload(s.buf[3:11]),
		roctest.RETH(wire.RETH{VA: 64, RKey: 2, DMALen: 8}))
	s.Expect(roctest.Opcode(wire.RCAtomicWrite), roctest.Payload([]byte("eight by")),
		roctest.RETH(wire.RETH{VA: 72, RKey: 2, DMALen: 8}))
	s.Recv(response(wire.RCReadRespOnly, s.us(0), nil), response(wire.RCReadRespOnly, s.us(1), nil))
	s.ExpectCQE(roce.Completion{WRID: 1, Opcode: roce.WCAtomicWrite, ByteLen: 8},
		roce.Completion{WRID: 2, Opcode: roce.WCAtomicWrite, ByteLen: 8})
	wantErr(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpAtomicWrite, SGList: s.sge(0, 4)}),
		roce.ErrInvalid, "moves 8")
}
