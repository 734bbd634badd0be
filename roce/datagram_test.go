package roce_test

import (
	"bytes"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

func newUD(t *testing.T, o options) *script {
	t.Helper()
	o.Type = or(o.Type, roce.TypeUD)
	return newScript(t, o)
}

// handle is an address handle to the peer.
func (s *script) handle() *roce.AH {
	s.t.Helper()
	path := pathTo(qpnB, s.o.Framing)
	path.FlowLabel = 0x12345
	ah, err := roce.NewAH(s.domain, path)
	must(s.t, err)
	return ah
}

// gram is a work request for a datagram of n bytes to the peer.
func (s *script) gram(id uint64, n int, qkey uint32) roce.SendWR {
	return roce.SendWR{
		WRID: id, Opcode: roce.OpSend, SGList: s.sge(0, n), AH: s.handle(), RemoteQPN: qpnB,
		RemoteQKey: qkey,
	}
}

// datagram is one of the peer.
func datagram(op wire.Opcode, qkey uint32, payload []byte) roctest.Packet {
	return roctest.Packet{
		Opcode: op, PSN: 0x777, Payload: payload, Imm: 0xa1b2c3d4,
		DETH: wire.DETH{QKey: qkey, SrcQP: qpnB},
	}
}

// TestDatagramSend: headers, padding, immediate, solicited; complete when written,
// and one PSN each.
func TestDatagramSend(t *testing.T) {
	s := newUD(t, options{SQPSN: 0xffffff})
	wr := s.gram(1, 5, 0x55)
	wr.Flags = roce.SendSolicited
	s.Post(wr)
	wr = s.gram(2, 4096, 0x56)
	wr.Opcode, wr.Imm = roce.OpSendImm, 0xcafe
	s.Post(wr)
	s.Expect(roctest.Opcode(wire.UDSendOnly), roctest.PSN(s.us(0)), roctest.Payload(s.buf[:5]),
		roctest.DETH(wire.DETH{QKey: 0x55, SrcQP: qpnA}), roctest.Solicited(true),
		roctest.AckReq(false))
	s.ExpectCQE(done(1, roce.WCSend))
	s.Expect(roctest.Opcode(wire.UDSendOnlyImm), roctest.PSN(s.us(1)), roctest.PayloadLen(4096),
		roctest.Imm(0xcafe), roctest.Solicited(false))
	s.ExpectCQE(done(2, roce.WCSend))
	s.ExpectNothing()
	s.ExpectDeadline(0)
}

// TestDatagramQKey: a Q_Key with its top bit set stands for the QP's own; a GSI QP
// has one only, whatever is asked for.
func TestDatagramQKey(t *testing.T) {
	for _, tt := range []struct {
		typ         roce.QPType
		asked, sent uint32
	}{
		{roce.TypeUD, 0x7fffffff, 0x7fffffff},
		{roce.TypeUD, 0, 0},
		{roce.TypeUD, 0x80000000, testQKey},
		{roce.TypeUD, 0xffffffff, testQKey},
		{roce.TypeGSI, 5, roce.GSIQKey},
	} {
		s := newUD(t, options{Type: tt.typ})
		s.Post(s.gram(1, 1, tt.asked))
		s.Expect(roctest.DETH(wire.DETH{QKey: tt.sent, SrcQP: qpnA}))
		s.ExpectCQE(done(1, roce.WCSend))

		own := uint32(testQKey)
		if tt.typ == roce.TypeGSI {
			own = roce.GSIQKey
		}
		s.PostRecv(1, 0, 64)
		s.Recv(datagram(wire.UDSendOnly, own^1, nil))
		s.ExpectNoCQE()
		s.ExpectCount(counter.DropBadQKey, 1)
		s.Recv(datagram(wire.UDSendOnly, own, nil))
		s.ExpectRecvCQE(gramDoneOn(tt.typ, 1, 40))
	}
}

// gramDoneOn is gramDone on a QP of a type: QP 1 is told which station sent the frame.
func gramDoneOn(typ roce.QPType, id uint64, n uint32) roce.Completion {
	wc := gramDone(id, n)
	if typ == roce.TypeGSI {
		wc.SrcMAC = pathTo(qpnA, wire.FramingV2IPv4).SrcMAC
	}
	return wc
}

// gramDone is the completion of a received datagram.
func gramDone(id uint64, n uint32) roce.Completion {
	return roce.Completion{
		WRID: id, Opcode: roce.WCRecv, ByteLen: n, Flags: roce.WCGRH, SrcQP: qpnB,
	}
}

// TestDatagramReceive: 40 bytes of addresses, from which the way back is built,
// and the payload; any PSN.
func TestDatagramReceive(t *testing.T) {
	for _, framing := range []wire.Framing{wire.FramingV2IPv4, wire.FramingV2IPv6, wire.FramingV1} {
		t.Run(framing.String(), func(t *testing.T) {
			s := newUD(t, options{Framing: framing})
			list := []roce.SGE{s.sge(64, 33)[0], {}, s.sge(256, 20)[0]}
			must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: list}))
			s.PostRecv(2, 512, 1024)
			s.Recv(datagram(wire.UDSendOnlyImm, testQKey, []byte("payload 13 by")))
			p := datagram(wire.UDSendOnly, testQKey, make([]byte, 900)) // above the path MTU
			p.PSN = 0
			s.Recv(p)
			wc := gramDone(1, 53)
			wc.Flags |= roce.WCWithImm
			wc.Imm = 0xa1b2c3d4
			s.ExpectRecvCQE(wc, gramDone(2, 940))
			got := append(bytes.Clone(s.buf[64:][:33]), s.buf[256:][:20]...)
			if string(got[40:]) != "payload 13 by" {
				t.Errorf("payload %q", got[40:])
			}
			back, err := wire.ParseReplyGRH(got[:40])
			want := pathTo(qpnA, framing)
			if err != nil || back.Framing != framing || back.Src != want.Src ||
				back.Dst != want.Dst {
				t.Errorf("%+v, %v", back, err)
			}
		})
	}
}

// TestDatagramDropped: without a receive, or with one too small, it is dropped
// and counted; the receive waits for another.
func TestDatagramDropped(t *testing.T) {
	s := newUD(t, options{})
	s.Recv(datagram(wire.UDSendOnly, testQKey, nil))
	s.ExpectCount(counter.OutOfBuffer, 1)
	s.PostRecv(1, 0, 50)
	for _, n := range []int{11, 51, 4096} {
		s.Recv(datagram(wire.UDSendOnly, testQKey, make([]byte, n)))
		s.ExpectNoCQE()
	}
	s.ExpectCount(counter.DropTooLong, 3)
	s.Recv(datagram(wire.UDSendOnly, testQKey, make([]byte, 10)))
	s.ExpectRecvCQE(gramDone(1, 50))
	s.PostRecv(2, 0, 39) // too small for the addresses alone
	s.Recv(datagram(wire.UDSendOnly, testQKey, nil))
	s.ExpectCount(counter.DropTooLong, 4)
	s.ExpectState(roce.StateRTS)
	s.ExpectEvents()

	list := s.sge(0, 64)
	list[0].LKey ^= 1
	s = newUD(t, options{})
	must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: list}))
	s.Recv(datagram(wire.UDSendOnly, testQKey, nil))
	s.ExpectRecvCQE(failed(1, roce.StatusLocProtErr))
	s.ExpectState(roce.StateErr)
}

// TestLocalWorkInTurns: of work that needs no packet a part is done in a turn, so that a queue full
// of it keeps nobody else waiting, and the rest in the next ones.
func TestLocalWorkInTurns(t *testing.T) {
	const many, most = 1000, 100
	s := newUD(t, options{Depth: many, Link: wire.MTU1024})
	for i := range uint64(many) {
		s.Post(s.gram(i, 1025, 0))
	}
	finished := 0
	for turns := 0; finished < many; turns++ {
		s.ExpectNothing()
		n := len(drain(t, s.send))
		if finished += n; n == 0 || n > most || turns > many {
			t.Fatalf("%d done in turn %d", n, turns)
		}
		if at, ok := s.qp.NextDeadline(); ok {
			s.Advance(at - s.now)
		}
	}
}

// TestDatagramTooLong: nothing is sent, and yet it is complete; what is behind it
// goes at once, in the next packet.
func TestDatagramTooLong(t *testing.T) {
	s := newUD(t, options{Link: wire.MTU1024})
	s.Post(s.gram(1, 1024, 5))
	s.Post(s.gram(2, 1025, 5))
	s.Post(s.gram(3, 1<<16, 5))
	s.Post(s.gram(4, 1, 5))
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)), roctest.PayloadLen(1))
	s.ExpectNothing()
	for id := range uint64(4) {
		s.ExpectCQE(done(1+id, roce.WCSend))
	}
	s.ExpectCount(counter.DatagramTooLong, 2)
}

// TestDatagramRefusedAtPost: what names no destination.
func TestDatagramRefusedAtPost(t *testing.T) {
	s := newUD(t, options{})
	other, err := roce.NewAH(new(mem.Domain), pathTo(qpnB, s.o.Framing))
	must(t, err)
	for words, change := range map[string]func(*roce.SendWR){
		"address handle": func(wr *roce.SendWR) { wr.AH = nil },
		"domain":         func(wr *roce.SendWR) { wr.AH = other },
		"24 bits":        func(wr *roce.SendWR) { wr.RemoteQPN = 1 << 24 },
		"RDMA_WRITE":     func(wr *roce.SendWR) { wr.Opcode = roce.OpWrite },
		"RDMA_READ":      func(wr *roce.SendWR) { wr.Opcode = roce.OpRead },
	} {
		wr := s.gram(1, 1, 1)
		change(&wr)
		wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, words)
	}
	for _, path := range []wire.Path{{}, {Framing: 99}} {
		_, err := roce.NewAH(s.domain, path)
		wantErr(t, err, roce.ErrInvalid, "")
	}
	_, err = roce.NewAH(nil, pathTo(qpnB, s.o.Framing))
	wantErr(t, err, roce.ErrInvalid, "domain")
}

// TestDatagramSQE: a local error stops the send queue; the others flush, receives
// go on, and RTS starts with the next PSN.
func TestDatagramSQE(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUD, roce.TypeGSI} {
		s := newUD(t, options{Type: typ})
		bad := s.gram(2, 8, 0)
		bad.SGList[0].LKey ^= 1
		s.Post(s.gram(1, 1, 0))
		s.Post(bad)
		s.Post(s.gram(3, 1, 0))
		s.PostRecv(9, 0, 64)
		s.Expect()
		s.ExpectNothing()
		s.ExpectState(roce.StateSQE)
		s.ExpectCQE(done(1, roce.WCSend), failed(2, roce.StatusLocProtErr),
			failed(3, roce.StatusWRFlushErr))
		qkey := uint32(testQKey)
		if typ == roce.TypeGSI {
			qkey = roce.GSIQKey
		}
		s.Recv(datagram(wire.UDSendOnly, qkey, nil))
		s.ExpectRecvCQE(gramDoneOn(typ, 9, 40))
		s.move(roce.StateRTS)
		for i := range uint64(3) {
			s.Post(s.gram(4+i, 2, 0))
			s.Expect(roctest.PSN(s.us(1+uint32(i))), roctest.PayloadLen(2))
			s.ExpectCQE(done(4+i, roce.WCSend))
		}
		s.ExpectNothing()
		s.ExpectEvents()
	}
}

// TestDatagramRights: memory that goes between post and the packet's
// writing is an error of the datagram, which used its PSN for nothing.
func TestDatagramRights(t *testing.T) {
	s := newUD(t, options{})
	region, err := s.keys.RegisterAt(s.domain, make([]byte, 64), 1<<40, 0)
	must(t, err)
	wr := s.gram(1, 8, 0)
	wr.SGList = []roce.SGE{{Addr: region.Addr(), Length: 8, LKey: region.LKey()}}
	s.Post(wr)
	s.Post(wr)
	s.Expect()
	s.keys.Deregister(region)
	s.ExpectNothing()
	s.ExpectCQE(done(1, roce.WCSend), failed(1, roce.StatusLocProtErr))
	s.move(roce.StateRTS)
	s.Post(s.gram(2, 1, 0))
	s.Expect(roctest.PSN(s.us(1)))
	s.ExpectNothing()
	s.ExpectCQE(done(2, roce.WCSend))
}

// changing is memory that is always there, and somebody who does something while it is
// written to.
type changing struct {
	allPresent
	meanwhile func()
}

func (c *changing) Store(addr uint64, src []byte) mem.Fault {
	c.meanwhile()
	return c.allPresent.Store(addr, src)
}

// TestReregDatagramNeverMixes: a datagram, or a raw frame, is more than one access. When
// the key of its receive is changed under it, it does not go on in the other memory.
func TestReregDatagramNeverMixes(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUD, roce.TypeRawPacket} {
		s := newScript(t, options{Type: typ})
		before, after := make([]byte, 64), make([]byte, 64)
		r, err := s.keys.RegisterAt(s.domain, before, 1<<40, allRights)
		must(t, err)
		c := &changing{allPresent: allPresent{b: make([]byte, 64)}, meanwhile: func() {
			m := mem.Memory{Bytes: after, Addr: 1 << 40}
			must(t, s.keys.Reregister(r, mem.ChangeTranslation, m, nil, 0))
		}}
		paged, err := s.keys.RegisterMemory(s.domain, mem.Memory{Pager: c, Length: 64},
			mem.OnDemand|mem.LocalWrite)
		must(t, err)
		must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 1, SGList: []roce.SGE{
			{Addr: 1 << 40, Length: 44, LKey: r.LKey()},
			{Length: 1, LKey: paged.LKey()},
			{Addr: 1<<40 + 44, Length: 20, LKey: r.LKey()},
		}}))
		payload := bytes.Repeat([]byte{7}, 10)
		if typ == roce.TypeUD {
			s.Recv(datagram(wire.UDSendOnly, testQKey, payload))
		} else {
			must(t, s.qp.HandleFrame(0, bytes.Repeat([]byte{7}, 40), payload))
		}
		s.ExpectRecvCQE(failed(1, roce.StatusLocProtErr))
		if before[43] != 7 {
			t.Errorf("%s: nothing came before the change", typ)
		}
		if !bytes.Equal(after, make([]byte, 64)) {
			t.Errorf("%s: the rest came after the change: % x", typ, after)
		}
	}
}
