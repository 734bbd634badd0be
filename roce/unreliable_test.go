package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

func newUC(t *testing.T, o options) *script {
	t.Helper()
	o.Type = roce.TypeUC
	return newScript(t, o)
}

// uc is a request of the peer on UC: a packet of a path MTU, or of 4 bytes when it
// ends a message.
func (s *script) uc(op wire.Opcode, n uint32) roctest.Packet {
	op = op&0x1f | wire.UCSendFirst
	p := roctest.Packet{Opcode: op, PSN: s.it(n), Payload: make([]byte, s.mtu())}
	if op.Spec().Is(wire.ClassLast) {
		p.Payload = p.Payload[:4]
	}
	if op.Spec().Has(wire.HasRETH) {
		p.RETH = wire.RETH{VA: s.region.Addr(), RKey: s.region.RKey(), DMALen: uint32(s.mtu()) + 4}
		if op.Spec().Is(wire.ClassLast) {
			p.RETH.DMALen = 4
		}
	}
	return p
}

// ucPacket is an opcode and its place in the sequence of PSNs.
type ucPacket struct {
	op wire.Opcode
	n  uint32
}

// TestUCDrops: which messages arrive after each kind of loss and nonsense, with one
// receive for each that should, and two to spare.
func TestUCDrops(t *testing.T) {
	const (
		first, middle = wire.RCSendFirst, wire.RCSendMiddle
		last, only    = wire.RCSendLast, wire.RCSendOnly
		wFirst, wLast = wire.RCWriteFirst, wire.RCWriteLast
		wLastImm      = wire.RCWriteLastImm
		wOnlyImm      = wire.RCWriteOnlyImm
	)
	whole := uint32(defaults.MTU.Bytes())
	for name, tt := range map[string]struct {
		packets     []ucPacket
		want        []uint32 // bytes of the messages that arrive
		gaps, after uint64
	}{
		"all": {
			[]ucPacket{{first, 0}, {middle, 1}, {last, 2}, {only, 3}},
			[]uint32{2*whole + 4, 4},
			0, 0,
		},
		"first lost": {[]ucPacket{{middle, 1}, {last, 2}, {only, 3}}, []uint32{4}, 1, 1},
		"middle lost": {
			[]ucPacket{{first, 0}, {middle, 2}, {last, 3}, {only, 4}},
			[]uint32{4},
			1, 1,
		},
		"last lost": {
			[]ucPacket{{first, 0}, {middle, 1}, {only, 3}, {only, 4}},
			[]uint32{4, 4},
			1, 0,
		},
		"only lost": {[]ucPacket{{only, 0}, {only, 2}}, []uint32{4, 4}, 1, 0},
		"middle doubled": {
			[]ucPacket{{first, 0}, {middle, 1}, {middle, 1}, {last, 2}, {only, 3}},
			[]uint32{4},
			1, 1,
		},
		"first after cut": {
			[]ucPacket{{first, 0}, {first, 1}, {last, 2}},
			[]uint32{whole + 4},
			0, 0,
		},
		"only inside": {
			[]ucPacket{{first, 0}, {only, 1}, {last, 2}, {only, 3}},
			[]uint32{4, 4},
			0, 1,
		},
		"no first": {[]ucPacket{{last, 0}, {only, 1}}, []uint32{4}, 0, 1},
		"other kind": {
			[]ucPacket{{first, 0}, {wLast, 1}, {last, 2}, {only, 3}},
			[]uint32{4},
			0, 1,
		},
		"WRITE, then SEND": {[]ucPacket{{wFirst, 0}, {only, 2}}, []uint32{4}, 1, 0},
		"WRITE with imm": {
			[]ucPacket{{wFirst, 0}, {wLastImm, 1}, {wOnlyImm, 2}},
			[]uint32{whole + 4, 4},
			0, 0,
		},
		"WRITE cut": {
			[]ucPacket{{wFirst, 0}, {wLastImm, 2}, {wOnlyImm, 3}},
			[]uint32{4},
			1, 0,
		},
		"jump by 2^23": {[]ucPacket{{only, 1 << 23}, {only, 1<<23 + 1}}, []uint32{4, 4}, 1, 0},
		"old": {
			[]ucPacket{{only, 0}, {first, 1}, {only, 0}, {last, 2}, {only, 3}},
			[]uint32{4, 4, 4},
			2, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUC(t, options{RQPSN: 0xfffffe})
			for i := range len(tt.want) + 2 {
				s.PostRecv(uint64(i), 0, 1<<12)
			}
			for _, p := range tt.packets {
				s.Recv(s.uc(p.op, p.n))
				s.ExpectNothing()
			}
			got := drain(t, s.recv)
			if len(got) != len(tt.want) {
				t.Fatalf("%d messages arrived, want %d", len(got), len(tt.want))
			}
			for i, wc := range got {
				if wc.Status != 0 || wc.ByteLen != tt.want[i] || wc.WRID != uint64(i) {
					t.Errorf("message %d: %+v, want %d bytes", i, wc, tt.want[i])
				}
			}
			s.ExpectCount(counter.OutOfSequence, tt.gaps)
			s.ExpectCount(counter.DropAfterGap, tt.after)
			s.ExpectState(roce.StateRTS)
		})
	}
}

// TestUCRefused: what RC would refuse is dropped with its message, the receive in
// hand stays for the next, and the QP lives.
func TestUCRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(s *script, p *roctest.Packet)
		op      wire.Opcode
		counter counter.ID
	}{
		"key": {
			func(_ *script, p *roctest.Packet) { p.RETH.RKey ^= 1 }, wire.RCWriteOnly,
			counter.DropRefused,
		},
		"length": {
			func(_ *script, p *roctest.Packet) { p.RETH.DMALen++ }, wire.RCWriteOnly,
			counter.DropRefused,
		},
		"range": {
			func(s *script, p *roctest.Packet) { p.RETH.VA-- }, wire.RCWriteFirst,
			counter.DropRefused,
		},
		"too long": {
			func(s *script, p *roctest.Packet) { p.Payload = make([]byte, 33) }, wire.RCSendOnly,
			counter.DropRefused,
		},
		"short first": {
			func(s *script, p *roctest.Packet) { p.Payload = p.Payload[:8] }, wire.RCSendFirst,
			counter.DropRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUC(t, options{})
			s.PostRecv(1, 0, 32)
			p := s.uc(tt.op, 0)
			tt.change(s, &p)
			s.Recv(p)
			s.ExpectCount(tt.counter, 1)
			s.ExpectNothing()
			s.ExpectNoCQE()
			s.Recv(s.uc(wire.RCSendOnly, 1))
			s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 4})
			s.ExpectCount(counter.OutOfSequence, 0)
			s.ExpectEvents()
		})
	}
}

// TestUCNoRight: a QP without REMOTE_WRITE drops WRITEs.
func TestUCNoRight(t *testing.T) {
	s := newUC(t, options{Access: func(a mem.Access) mem.Access { return a &^ mem.RemoteWrite }})
	before := string(s.buf[:8])
	s.Recv(s.uc(wire.RCWriteOnly, 0))
	s.ExpectCount(counter.DropRefused, 1)
	if string(s.buf[:8]) != before {
		t.Error("written")
	}
}

// TestUCNoReceive: a message without a receive is dropped to its end, nothing is
// answered, and the next finds its receive.
func TestUCNoReceive(t *testing.T) {
	s := newUC(t, options{})
	s.Recv(s.uc(wire.RCSendFirst, 0))
	s.PostRecv(1, 0, 1<<10)
	s.Recv(s.uc(wire.RCSendMiddle, 1), s.uc(wire.RCSendLast, 2))
	s.ExpectNoCQE()
	s.ExpectNothing()
	s.ExpectCount(counter.OutOfBuffer, 1)
	s.Recv(s.uc(wire.RCWriteOnlyImm, 3))
	s.ExpectRecvCQE(roce.Completion{
		WRID: 1, Opcode: roce.WCRecvRDMAWithImm, ByteLen: 4, Flags: roce.WCWithImm,
	})
	s.Recv(s.uc(wire.RCWriteFirst, 4), s.uc(wire.RCWriteLastImm, 5))
	s.ExpectCount(counter.OutOfBuffer, 2)
	s.ExpectNoCQE()
}

// TestUCBadReceive: a receive that names memory that is not the QP's ends it.
func TestUCBadReceive(t *testing.T) {
	s := newUC(t, options{})
	list := s.sge(0, 64)
	list[0].LKey ^= 1
	must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: list}))
	s.PostRecv(2, 0, 64)
	s.Recv(s.uc(wire.RCSendOnly, 0))
	s.ExpectRecvCQE(failed(1, roce.StatusLocProtErr), failed(2, roce.StatusWRFlushErr))
	s.ExpectState(roce.StateErr)
	s.ExpectNothing()
}

// TestUCSends: a message is complete when its last packet is written; nothing asks
// for an ACK, nothing has a timer, and no ACK is taken.
func TestUCSends(t *testing.T) {
	s := newUC(t, options{SQPSN: 0xffffff})
	for i, op := range []roce.Opcode{roce.OpSend, roce.OpWrite, roce.OpSendImm, roce.OpWriteImm} {
		s.Post(roce.SendWR{
			WRID: uint64(i), Opcode: op, SGList: s.sge(0, s.mtu()+1), RemoteAddr: 5, RKey: 6,
			Imm:   7,
			Flags: roce.SendSolicited,
		})
		notify := op != roce.OpWrite
		s.Expect(roctest.PSN(s.us(uint32(2*i))), roctest.AckReq(false), roctest.Solicited(false))
		s.ExpectNoCQE()
		s.Expect(roctest.PSN(s.us(uint32(2*i+1))), roctest.AckReq(false), roctest.Solicited(notify))
		s.ExpectCQE(done(uint64(i), wcOpcode[op]))
		s.ExpectNothing()
		s.ExpectDeadline(0)
	}
	s.Recv(ack(s.us(7)))
	s.ExpectCount(counter.DropWrongService, 1)
	for _, op := range []roce.Opcode{roce.OpRead, roce.OpFetchAdd, roce.OpSendInv, roce.OpFlush} {
		wr := roce.SendWR{Opcode: op, SGList: s.sge(0, 8), Flush: 1}
		wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, "UC")
	}
}

// badLKey is a SEND from memory that is not the QP's.
func (s *script) badLKey(id uint64, n int) roce.SendWR {
	list := s.sge(0, n)
	list[0].LKey ^= 1
	return roce.SendWR{WRID: id, Opcode: roce.OpSend, SGList: list}
}

// TestUCSQE: a local error stops the send queue alone. What is posted then is
// flushed, what comes is received, and RTS begins with a message of its own.
func TestUCSQE(t *testing.T) {
	s := newUC(t, options{})
	s.Send(1, 1)
	s.Post(s.badLKey(2, 8))
	s.Send(3, 1)
	s.PostRecv(9, 0, 64)
	s.Expect(roctest.PSN(s.us(0)))
	s.ExpectNothing()
	s.ExpectState(roce.StateSQE)
	s.ExpectCQE(done(1, roce.WCSend), failed(2, roce.StatusLocProtErr),
		failed(3, roce.StatusWRFlushErr))
	s.Send(4, 1)
	s.ExpectNothing()
	s.ExpectCQE(failed(4, roce.StatusWRFlushErr))
	s.Recv(s.uc(wire.RCSendOnly, 0))
	s.ExpectRecvCQE(roce.Completion{WRID: 9, Opcode: roce.WCRecv, ByteLen: 4})
	s.ExpectEvents()
	s.move(roce.StateRTS)
	s.Send(5, 1)
	s.Expect(roctest.Opcode(wire.UCSendOnly), roctest.PSN(s.us(1)))
	s.ExpectCQE(done(5, roce.WCSend))
}

// TestUCSQEInMessage: memory that goes in the middle of a message. After RTS the
// next message is whole, and its PSNs follow those that were used.
func TestUCSQEInMessage(t *testing.T) {
	s := newUC(t, options{})
	region, err := s.keys.RegisterAt(s.domain, make([]byte, 4096), 1<<40, allRights)
	must(t, err)
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: []roce.SGE{
		{Addr: region.Addr(), Length: 1000, LKey: region.LKey()},
	}})
	s.Expect(roctest.Opcode(wire.UCSendFirst), roctest.PSN(s.us(0)))
	s.keys.Deregister(region)
	s.ExpectNothing()
	s.ExpectState(roce.StateSQE)
	s.ExpectCQE(failed(1, roce.StatusLocProtErr))
	s.move(roce.StateRTS)
	s.Send(2, 300)
	s.Expect(roctest.Opcode(wire.UCSendFirst), roctest.PSN(s.us(1)), roctest.Payload(s.buf[:256]))
	s.Expect(roctest.Opcode(wire.UCSendLast), roctest.PSN(s.us(2)), roctest.Payload(s.buf[256:300]))
	s.ExpectCQE(done(2, roce.WCSend))
	s.ExpectNothing()
}
