package roce_test

import (
	"fmt"
	"math"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// refused gives the QP a request and wants a fatal NAK, the QP in ERR, its
// receives flushed, memory untouched and silence afterwards.
func (s *script) refused(p roctest.Packet, syndrome wire.Syndrome, step string) {
	s.t.Helper()
	before, msn := string(s.buf), s.qp.Snapshot().MSN
	s.Recv(p)
	s.ExpectAck(p.PSN, syndrome, msn)
	s.ExpectState(roce.StateErr)
	s.ExpectCount(counter.SentFatalNAK, 1)
	if got := s.qp.Snapshot().LastDrop.String(); got != step {
		s.t.Fatalf("refused at step %s, want %s", got, step)
	}
	if string(s.buf) != before {
		s.t.Fatal("memory was changed")
	}
	p.PSN = p.PSN.Add(1)
	s.Recv(p)
	s.ExpectNothing()
	s.ExpectCount(counter.DropQPState, 1)
}

// sequencePacket is a valid packet of an opcode.
func (s *script) sequencePacket(op wire.Opcode, psn wire.PSN) roctest.Packet {
	n := 1
	switch op.Spec().Payload {
	case wire.PayloadFull:
		n = s.mtu()
	case wire.PayloadNone:
		n = 0
	case wire.Payload8:
		n = 8
	}
	total := n
	if op.Spec().Is(wire.ClassFirst) && !op.Spec().Is(wire.ClassLast) {
		total = 2*n + 1
	}
	p := s.writeRequest(op, psn, 0, total, make([]byte, n))
	if op == wire.RCReadRequest {
		p.RETH.DMALen = 1
	}
	return p
}

// TestOpcodeSequence tries every request opcode after every way to be: between
// messages, inside a SEND, inside a WRITE.
func TestOpcodeSequence(t *testing.T) {
	served := map[string]bool{
		"- RC_SEND_FIRST": true, "- RC_SEND_ONLY": true, "- RC_SEND_ONLY_IMM": true,
		"- RC_WRITE_FIRST": true, "- RC_WRITE_ONLY": true, "- RC_WRITE_ONLY_IMM": true,
		"- RC_READ_REQUEST":                true,
		"RC_SEND_FIRST RC_SEND_MIDDLE":     true,
		"RC_SEND_FIRST RC_SEND_LAST":       true,
		"RC_SEND_FIRST RC_SEND_LAST_IMM":   true,
		"RC_WRITE_FIRST RC_WRITE_MIDDLE":   true,
		"RC_WRITE_FIRST RC_WRITE_LAST":     true,
		"RC_WRITE_FIRST RC_WRITE_LAST_IMM": true,
	}
	const between = wire.Opcode(0xff)
	seen := 0
	for op, spec := range wire.Opcodes() {
		if spec.Service != wire.ServiceRC || !spec.Is(wire.ClassRequest) {
			continue
		}
		for _, before := range []wire.Opcode{between, wire.RCSendFirst, wire.RCWriteFirst} {
			s := newScript(t, options{})
			s.PostRecv(1, 0, 4096)
			s.PostRecv(2, 0, 4096)
			p := s.sequencePacket(op, s.it(0))
			name := "- " + spec.Name
			if before != between {
				p.PSN = s.it(1)
				name = before.Spec().Name + " " + spec.Name
				first := s.sequencePacket(before, s.it(0))
				first.AckReq = false
				rest := len(p.Payload) + b2i(!spec.Is(wire.ClassLast) || len(p.Payload) == 0)
				first.RETH.DMALen = uint32(s.mtu() + rest)
				s.Recv(first)
			}
			if served[name] {
				seen++
				s.Recv(p)
				s.ExpectState(roce.StateRTS)
				continue
			}
			switch {
			case spec.Is(wire.ClassInv) && (spec.Is(wire.ClassFirst) && before == between ||
				before == wire.RCSendFirst && !spec.Is(wire.ClassFirst)):
				// There is no such key; the data was placed before it was looked for.
				s.Recv(p)
				s.ExpectAck(p.PSN, wire.NAKRemoteAccessError, 0)
				s.ExpectState(roce.StateErr)
			case before == between && spec.Is(wire.ClassFlush):
				s.refused(p, wire.NAKInvalidRequest, "length") // of no placement type
			case before == between && op == wire.RCAtomicWrite:
				s.Recv(p) // WRITE is granted, and so is this
				s.Expect(roctest.Opcode(wire.RCReadRespOnly))
			case before == between && spec.Is(wire.ClassFirst):
				s.refused(p, wire.NAKInvalidRequest, "qp_rights") // atomics, FLUSH
			default:
				s.refused(p, wire.NAKInvalidRequest, "opcode_sequence")
			}
		}
	}
	if seen != len(served) {
		t.Errorf("%d sequences served, want %d", seen, len(served))
	}
}

// TestLengths tries payloads around the path MTU with every SEND and WRITE
// opcode: the rule of the opcode, and for WRITEs that of the RETH, decides.
func TestLengths(t *testing.T) {
	mtu := defaults.MTU.Bytes()
	for op, spec := range wire.Opcodes() {
		if spec.Service != wire.ServiceRC || spec.Class&(wire.ClassSend|wire.ClassWrite) == 0 ||
			spec.Is(wire.ClassInv) {
			continue
		}
		for _, n := range []int{0, 1, 4, mtu - 1, mtu, mtu + 1, 2 * mtu} {
			s := newScript(t, options{})
			s.PostRecv(1, 0, 8192)
			first, total := uint32(0), n
			if !spec.Is(wire.ClassFirst) {
				first, total = 1, mtu+n
				open := wire.RCSendFirst
				if spec.Is(wire.ClassWrite) {
					open = wire.RCWriteFirst
				}
				p := s.writeRequest(open, s.it(0), 0, total+b2i(!spec.Is(wire.ClassLast)),
					make([]byte, mtu))
				p.AckReq = false
				s.Recv(p)
			} else if !spec.Is(wire.ClassLast) {
				total = n + 1
			}
			p := s.writeRequest(op, s.it(first), 0, total, make([]byte, n))
			if spec.Payload.Allows(n, mtu) {
				s.Recv(p)
				s.ExpectAck(p.PSN, wire.ACKNoCredits, uint32(b2i(spec.Is(wire.ClassLast))))
				continue
			}
			if s.qp.State() == roce.StateErr {
				continue // a WRITE whose first packet is all of it was refused there
			}
			s.refused(p, wire.NAKInvalidRequest, "length")
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestWriteLengthDisagrees with the length in its RETH.
func TestWriteLengthDisagrees(t *testing.T) {
	mtu := defaults.MTU.Bytes()
	for _, tt := range []struct {
		op       wire.Opcode
		total, n int
	}{
		{wire.RCWriteOnly, 5, 4},
		{wire.RCWriteOnly, 3, 4},
		{wire.RCWriteOnly, 0, 4},
		{wire.RCWriteOnly, 4, 0},
		{wire.RCWriteOnlyImm, 5, 4},
		{wire.RCWriteFirst, mtu, mtu},
		{wire.RCWriteFirst, mtu - 1, mtu},
		{wire.RCWriteFirst, 0, mtu},
	} {
		s := newScript(t, options{})
		s.PostRecv(1, 0, 8)
		s.refused(s.writeRequest(tt.op, s.it(0), 0, tt.total, make([]byte, tt.n)),
			wire.NAKInvalidRequest, "length")
	}
	for _, n := range []int{3, 5} { // 4 are left
		s := newScript(t, options{})
		first := s.writeRequest(wire.RCWriteFirst, s.it(0), 0, mtu+4, make([]byte, mtu))
		first.AckReq = false
		s.Recv(first)
		s.refused(request(wire.RCWriteLast, s.it(1), make([]byte, n)),
			wire.NAKInvalidRequest, "length")
	}
}

// TestTooLong: more than 2^31 bytes are refused, as much exactly is a matter of
// the key.
func TestTooLong(t *testing.T) {
	mtu := defaults.MTU.Bytes()
	for _, n := range []uint32{1<<31 + 1, math.MaxUint32} {
		s := newScript(t, options{})
		p := s.readRequest(s.it(0), 0, 0)
		p.RETH.DMALen = n
		s.refused(p, wire.NAKInvalidRequest, "length")
		s = newScript(t, options{})
		p = s.writeRequest(wire.RCWriteFirst, s.it(0), 0, 0, make([]byte, mtu))
		p.RETH.DMALen = n
		s.refused(p, wire.NAKInvalidRequest, "length")
	}
	s := newScript(t, options{})
	p := s.readRequest(s.it(0), 0, 0)
	p.RETH.DMALen = 1 << 31
	s.refused(p, wire.NAKRemoteAccessError, "rkey")
}

// TestRemoteAccess: wrong key, domain, rights and range, for WRITE and READ; none
// of it matters when there are no bytes.
func TestRemoteAccess(t *testing.T) {
	for name, change := range map[string]func(s *script, h *wire.RETH){
		"variant": func(_ *script, h *wire.RETH) { h.RKey ^= 1 },
		"index":   func(_ *script, h *wire.RETH) { h.RKey ^= 1 << 8 },
		"zero":    func(_ *script, h *wire.RETH) { h.RKey = 0 },
		"before":  func(_ *script, h *wire.RETH) { h.VA-- },
		"behind":  func(s *script, h *wire.RETH) { h.VA += uint64(len(s.buf)) - 3 },
		"wraps":   func(_ *script, h *wire.RETH) { h.VA = math.MaxUint64 - 1 },
		"domain": func(s *script, h *wire.RETH) {
			r, err := s.keys.RegisterAt(new(mem.Domain), s.buf, h.VA, allRights)
			must(t, err)
			h.RKey = r.RKey()
		},
		"rights": func(s *script, h *wire.RETH) {
			r, err := s.keys.RegisterAt(s.domain, s.buf, h.VA, mem.LocalWrite)
			must(t, err)
			h.RKey = r.RKey()
		},
		"gone": func(s *script, _ *wire.RETH) { s.keys.Deregister(s.region) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, options{})
			p := s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 4, []byte("evil"))
			change(s, &p.RETH)
			s.refused(p, wire.NAKRemoteAccessError, "rkey")

			s = newScript(t, options{})
			p = s.readRequest(s.it(0), 0, 4)
			change(s, &p.RETH)
			s.refused(p, wire.NAKRemoteAccessError, "rkey")

			s = newScript(t, options{})
			p = s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 0, nil)
			change(s, &p.RETH)
			s.Recv(p)
			s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
			p = s.readRequest(s.it(1), 0, 0)
			change(s, &p.RETH)
			s.Recv(p)
			s.Expect(roctest.Opcode(wire.RCReadRespOnly), roctest.PayloadLen(0), roctest.MSN(2))
		})
	}
}

// TestWholeWriteIsCheckedFirst: a WRITE that would end outside stores nothing.
func TestWholeWriteIsCheckedFirst(t *testing.T) {
	s := newScript(t, options{})
	off := len(s.buf) - s.mtu()
	s.refused(s.writeRequest(wire.RCWriteFirst, s.it(0), off, s.mtu()+1, make([]byte, s.mtu())),
		wire.NAKRemoteAccessError, "rkey")
}

// TestQPRights: what the QP does not grant is refused, of any length.
func TestQPRights(t *testing.T) {
	none := options{Access: func(mem.Access) mem.Access { return 0 }}
	for _, n := range []int{0, 4} {
		s := newScript(t, none)
		s.refused(s.writeRequest(wire.RCWriteOnly, s.it(0), 0, n, make([]byte, n)),
			wire.NAKInvalidRequest, "qp_rights")
		s = newScript(t, none)
		s.refused(s.readRequest(s.it(0), 0, n), wire.NAKInvalidRequest, "qp_rights")
	}
	s := newScript(t, options{Attr: func(a *roce.Attr) { a.MaxDestRdAtomic = 0 }})
	s.refused(s.readRequest(s.it(0), 0, 4), wire.NAKInvalidRequest, "qp_rights")
}

// TestTooManyReads: one more than MAX_DEST_RD_ATOMIC at once is refused, after
// the answers to the others.
func TestTooManyReads(t *testing.T) {
	s := newScript(t, options{MaxRd: 2})
	s.Recv(s.readRequest(s.it(0), 0, 1), s.readRequest(s.it(1), 0, 1), s.readRequest(s.it(2), 0, 1))
	s.ExpectState(roce.StateErr)
	s.Expect(roctest.PSN(s.it(0)), roctest.Opcode(wire.RCReadRespOnly))
	s.Expect(roctest.PSN(s.it(1)), roctest.Opcode(wire.RCReadRespOnly))
	s.ExpectAck(s.it(2), wire.NAKInvalidRequest, 2)
}

// TestSendTooLong: refused at the packet that does not fit.
func TestSendTooLong(t *testing.T) {
	for packets := 1; packets <= 3; packets++ {
		s := newScript(t, options{})
		s.PostRecv(1, 0, (packets-1)*s.mtu()+3)
		s.PostRecv(2, 0, 100)
		for i := range packets - 1 {
			op := wire.RCSendMiddle
			if i == 0 {
				op = wire.RCSendFirst
			}
			s.Recv(request(op, s.it(uint32(i)), make([]byte, s.mtu())))
			s.ExpectAck(s.it(uint32(i)), wire.ACKNoCredits, 0)
		}
		op := wire.RCSendLast
		if packets == 1 {
			op = wire.RCSendOnly
		}
		s.refused(request(op, s.it(uint32(packets-1)), make([]byte, 4)),
			wire.NAKInvalidRequest, "receive_length")
		s.ExpectRecvCQE(failed(1, roce.StatusLocLenErr), failed(2, roce.StatusWRFlushErr))
	}
}

// TestReceiveMemoryBad: a receive whose key is not valid.
func TestReceiveMemoryBad(t *testing.T) {
	s := newScript(t, options{})
	must(t, s.qp.PostRecv(&roce.RecvWR{
		WRID:   1,
		SGList: []roce.SGE{{Addr: 0, Length: 10, LKey: 99}},
	}))
	s.refused(request(wire.RCSendOnly, s.it(0), []byte("x")), wire.NAKRemoteOperationalError,
		"local_memory")
	s.ExpectRecvCQE(failed(1, roce.StatusLocProtErr))
}

// TestNAKStatus: each fatal NAK gives its status to the request that it names;
// earlier ones complete, later ones are flushed, unsignaled ones too.
func TestNAKStatus(t *testing.T) {
	for syndrome, status := range map[wire.Syndrome]roce.Status{
		0x61: roce.StatusRemInvReqErr, 0x62: roce.StatusRemAccessErr, 0x63: roce.StatusRemOpErr,
		0x64: roce.StatusRemOpErr, 0x65: roce.StatusRemOpErr, 0x7f: roce.StatusRemOpErr,
		0xe2: roce.StatusRemAccessErr, // bit 7 is reserved
	} {
		t.Run(fmt.Sprintf("%#x", uint8(syndrome)), func(t *testing.T) {
			s := newScript(t, options{Unsignaled: true})
			s.PostRecv(9, 0, 1)
			for i := range uint64(4) {
				flags := roce.SendSignaled
				if i >= 2 {
					flags = 0
				}
				s.Post(roce.SendWR{WRID: i, Opcode: roce.OpSend, Flags: flags, SGList: s.sge(0, 1)})
				s.Expect(roctest.PSN(s.us(uint32(i))))
			}
			s.Recv(ackWith(s.us(2), syndrome))
			s.ExpectCQE(done(0, roce.WCSend), done(1, roce.WCSend), failed(2, status),
				failed(3, roce.StatusWRFlushErr))
			s.ExpectRecvCQE(failed(9, roce.StatusWRFlushErr))
			s.ExpectNoCQE()
			s.ExpectState(roce.StateErr)
			s.ExpectDeadline(0)
			s.ExpectNothing()
		})
	}
}

// TestLocalProtection: a request whose own memory is bad fails when its turn
// comes, after those before it.
func TestLocalProtection(t *testing.T) {
	bad := func(s *script) map[string]roce.SGE {
		readOnly, err := s.keys.RegisterAt(s.domain, s.buf, 0, 0)
		must(t, err)
		other, err := s.keys.RegisterAt(new(mem.Domain), s.buf, 0, allRights)
		must(t, err)
		end := s.region.Addr() + uint64(len(s.buf))
		return map[string]roce.SGE{
			"no key":       {Addr: 0, Length: 1, LKey: 12345},
			"domain":       {Addr: 0, Length: 1, LKey: other.LKey()},
			"out of range": {Addr: end - 1, Length: 2, LKey: s.region.LKey()},
			"read-only":    {Addr: 0, Length: 1, LKey: readOnly.LKey()},
		}
	}
	for name := range bad(newScript(t, options{})) {
		for _, op := range allOps {
			s := newScript(t, options{})
			s.Send(1, 1)
			s.Post(roce.SendWR{
				WRID: 2, Opcode: op,
				SGList: append(s.sge(0, 1), bad(s)[name]),
			})
			s.Send(3, 1)
			s.Expect(roctest.PSN(s.us(0)))
			if name == "read-only" && op != roce.OpRead {
				s.Expect(roctest.PSN(s.us(1)), roctest.PayloadLen(2))
				continue
			}
			s.ExpectNothing()
			s.ExpectNoCQE()
			s.Recv(ack(s.us(0)))
			s.ExpectCQE(done(1, roce.WCSend), failed(2, roce.StatusLocProtErr),
				failed(3, roce.StatusWRFlushErr))
			s.ExpectState(roce.StateErr)
		}
	}
}

// TestEmptyPieceNeedsNoKey: a piece of no bytes is nothing, whatever its key.
func TestEmptyPieceNeedsNoKey(t *testing.T) {
	s := newScript(t, options{})
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: []roce.SGE{{Addr: 9, LKey: 1}}})
	s.Expect(roctest.PayloadLen(0), roctest.Opcode(wire.RCSendOnly))
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
