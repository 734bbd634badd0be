package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// newTarget returns a script with an XRC_RECV; its SRQ is number srqNum.
func newTarget(t *testing.T, o options) *script {
	t.Helper()
	o.Type = roce.TypeXRCRecv
	return newScript(t, o)
}

// xrc makes a request one of XRC, for an SRQ.
func xrc(srqn uint32, p roctest.Packet) roctest.Packet {
	p.Opcode = p.Opcode&0x1f | wire.XRCSendFirst
	p.SRQN = srqn
	return p
}

// addSRQ puts another SRQ into the XRC domain, with a PD and a CQ of its own.
func (s *script) addSRQ(num uint32) (*roce.SRQ, *roce.CQ) {
	s.t.Helper()
	cq, err := roce.NewCQ(16, nil)
	must(s.t, err)
	srq, err := roce.NewSRQ(num, roce.SRQConfig{Domain: new(mem.Domain), MaxWR: 16, MaxSGE: 8})
	must(s.t, err)
	must(s.t, s.xrcd.Add(srq, cq))
	return srq, cq
}

// TestXRCTarget: each message names its SRQ, whose CQ gets the completion with the
// number of the QP that took it, and whose PD decides about keys.
func TestXRCTarget(t *testing.T) {
	s := newTarget(t, options{})
	srq, cq := s.addSRQ(9)
	other, err := s.keys.RegisterAt(srq.Domain(), make([]byte, 4096), 1<<44, allRights)
	must(t, err)
	must(t, srq.PostRecv(&roce.RecvWR{WRID: 5, SGList: []roce.SGE{
		{}, {Addr: other.Addr(), Length: 64, LKey: other.LKey()}, {}, {}, {},
	}}))
	s.PostRecv(1, 0, 64)
	s.Recv(xrc(9, request(wire.RCSendOnly, s.it(0), []byte("other"))))
	s.Recv(xrc(srqNum, request(wire.RCSendOnly, s.it(1), []byte("first"))))
	s.Expect(roctest.Opcode(wire.XRCAck), roctest.PSN(s.it(1)), roctest.MSN(2),
		roctest.Credits(wire.CreditInvalid))
	s.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 5})
	s.expectCQE(cq, []roce.Completion{{WRID: 5, Opcode: roce.WCRecv, ByteLen: 5}})
	if string(other.Bytes()[:5]) != "other" || string(s.buf[:5]) != "first" {
		t.Error("data went to the wrong SRQ")
	}
	w := xrc(9, request(wire.RCWriteOnly, s.it(2), []byte("w")))
	w.RETH = wire.RETH{VA: other.Addr() + 100, RKey: other.RKey(), DMALen: 1}
	s.Recv(w)
	s.Expect(roctest.Opcode(wire.XRCAck), roctest.PSN(s.it(2)))
	// The same key with another SRQ is one of another PD.
	w.SRQN, w.PSN = srqNum, s.it(3)
	s.Recv(w)
	s.Expect(roctest.Opcode(wire.XRCAck), roctest.Syndrome(wire.NAKRemoteAccessError))
	s.ExpectEvents(roce.EventQPAccessErr, roce.EventQPLastWQEReached)
}

// TestXRCRefused: an SRQ that the domain has not, and one message for two.
func TestXRCRefused(t *testing.T) {
	refused := func(s *script, psn wire.PSN) {
		t.Helper()
		s.Expect(roctest.Opcode(wire.XRCAck), roctest.PSN(psn),
			roctest.Syndrome(wire.NAKInvalidRequest))
		s.ExpectState(roce.StateErr)
	}
	s := newTarget(t, options{})
	s.Recv(xrc(srqNum+1, request(wire.RCSendOnly, s.it(0), nil)))
	refused(s, s.it(0))
	s.ExpectEvents(roce.EventQPReqErr, roce.EventQPLastWQEReached)

	s = newTarget(t, options{})
	s.addSRQ(9)
	s.PostRecv(1, 0, 1024)
	s.Recv(xrc(srqNum, request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu()))))
	s.Expect()
	s.Recv(xrc(9, request(wire.RCSendLast, s.it(1), []byte{1})))
	refused(s, s.it(1))
	s.ExpectRecvCQE(failed(1, roce.StatusRemInvReqErr))

	s = newTarget(t, options{})
	s.PostRecv(1, 0, 1024)
	s.Recv(xrc(srqNum, request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu()))))
	s.Expect()
	s.xrcd.Remove(s.srq)
	s.Recv(xrc(srqNum, request(wire.RCSendLast, s.it(1), []byte{1})))
	refused(s, s.it(1))
	s.ExpectRecvCQE(failed(1, roce.StatusRemInvReqErr))
}

// TestXRCNoReceive: an empty SRQ is answered with an RNR NAK, another serves.
func TestXRCNoReceive(t *testing.T) {
	s := newTarget(t, options{})
	s.Recv(xrc(srqNum, request(wire.RCSendOnly, s.it(0), nil)))
	s.Expect(roctest.Opcode(wire.XRCAck), roctest.Syndrome(wire.RNRSyndrome(s.o.MinRNR)))
	s.PostRecv(1, 0, 8)
	s.Recv(xrc(srqNum, request(wire.RCSendOnly, s.it(0), nil)))
	s.Expect(roctest.Opcode(wire.XRCAck), roctest.Syndrome(wire.ACKNoCredits))
}

// TestXRCTargetReads: READ and atomics work over XRC, in the PD of the SRQ, and so
// does their replay.
func TestXRCTargetReads(t *testing.T) {
	s := newTarget(t, options{Rights: atomicRights})
	s.put(0, 3)
	read := xrc(srqNum, roctest.Packet{Opcode: wire.RCReadRequest, PSN: s.it(0)})
	read.RETH = wire.RETH{VA: s.region.Addr() + 64, RKey: s.region.RKey(), DMALen: 300}
	add := xrc(srqNum, s.atomic(wire.RCFetchAdd, s.it(2), 0, 4, 0))
	for range 2 {
		s.Recv(read, add)
		s.Expect(roctest.Opcode(wire.XRCReadRespFirst), roctest.Payload(s.buf[64:][:256]))
		s.Expect(roctest.Opcode(wire.XRCReadRespLast), roctest.Payload(s.buf[320:][:44]))
		s.Expect(roctest.Opcode(wire.XRCAtomicAck), roctest.OrigData(3))
		s.ExpectNothing()
		s.ExpectWord(0, 7)
	}
}

// TestXRCInitiator: every request packet names the SRQ of its work request; answers
// come as on RC, and requests are not for it.
func TestXRCInitiator(t *testing.T) {
	s := newScript(t, options{Type: roce.TypeXRCSend, Rights: atomicRights})
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: s.sge(0, 513), RemoteSRQN: 0xabcdef})
	s.Post(roce.SendWR{
		WRID: 2, Opcode: roce.OpRead, SGList: s.sge(0, 4), RemoteSRQN: 7, RemoteAddr: 9, RKey: 3,
	})
	s.Post(roce.SendWR{WRID: 3, Opcode: roce.OpFetchAdd, SGList: s.sge(8, 8), RemoteSRQN: 8})
	s.Post(roce.SendWR{
		WRID: 4, Opcode: roce.OpWriteImm, SGList: s.sge(0, 1), RemoteSRQN: 9, RemoteAddr: 5,
		RKey: 6, Imm: 0x1234,
	})
	s.Post(roce.SendWR{WRID: 5, Opcode: roce.OpSendInv, RemoteSRQN: 10, InvalidateKey: 0x99})
	for i, op := range []wire.Opcode{wire.XRCSendFirst, wire.XRCSendMiddle, wire.XRCSendLast} {
		s.Expect(roctest.Opcode(op), roctest.PSN(s.us(uint32(i))), roctest.SRQN(0xabcdef))
	}
	s.Expect(roctest.Opcode(wire.XRCReadRequest), roctest.SRQN(7),
		roctest.RETH(wire.RETH{VA: 9, RKey: 3, DMALen: 4}))
	s.Expect(roctest.Opcode(wire.XRCFetchAdd), roctest.SRQN(8))
	s.Expect(roctest.Opcode(wire.XRCWriteOnlyImm), roctest.SRQN(9), roctest.Imm(0x1234),
		roctest.RETH(wire.RETH{VA: 5, RKey: 6, DMALen: 1}))
	s.Expect(roctest.Opcode(wire.XRCSendOnlyInv), roctest.SRQN(10), roctest.IETH(0x99))
	toXRC := func(p roctest.Packet) roctest.Packet { return xrc(0, p) }
	s.Recv(toXRC(response(wire.RCReadRespOnly, s.us(3), make([]byte, 4))),
		toXRC(atomicAck(s.us(4), 6)), toXRC(ack(s.us(6))))
	s.ExpectCQE(done(1, roce.WCSend), roce.Completion{WRID: 2, Opcode: roce.WCRead, ByteLen: 4},
		roce.Completion{WRID: 3, Opcode: roce.WCFetchAdd, ByteLen: 8}, done(4, roce.WCWrite),
		done(5, roce.WCSend))
	s.ExpectWord(8, 6)
	s.Recv(xrc(srqNum, request(wire.RCSendOnly, s.it(0), nil)))
	s.ExpectNothing()
	s.ExpectCount(counter.DropWrongService, 1)
	wantErr(t, s.qp.PostRecv(&roce.RecvWR{}), roce.ErrInvalid, "receive queue")
	for words, wr := range map[string]roce.SendWR{
		"FLUSH": {Opcode: roce.OpFlush, Flush: 1}, "ATOMIC_WRITE": {Opcode: roce.OpAtomicWrite},
		"24 bits": {Opcode: roce.OpSend, RemoteSRQN: 1 << 24},
	} {
		wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, words)
	}
}

// TestXRCTargetSendsNothing: a target has no send queue and takes no answers.
func TestXRCTargetSendsNothing(t *testing.T) {
	s := newTarget(t, options{})
	wantErr(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend}), roce.ErrInvalid, "XRC_RECV")
	s.Recv(xrc(0, ack(s.us(0))))
	s.ExpectCount(counter.DropQPState, 1)
}

// TestXRCReset: the completions of a target vanish from all CQs of the domain, and
// the message under way is forgotten.
func TestXRCReset(t *testing.T) {
	s := newTarget(t, options{})
	srq, cq := s.addSRQ(9)
	must(t, srq.PostRecv(&roce.RecvWR{WRID: 5}))
	s.PostRecv(1, 0, 1024)
	s.Recv(xrc(9, request(wire.RCSendOnly, s.it(0), nil)))
	s.Recv(xrc(srqNum, request(wire.RCSendFirst, s.it(1), make([]byte, s.mtu()))))
	s.move(roce.StateReset)
	s.ExpectNoCQE()
	if left := drain(t, cq); len(left) != 0 {
		t.Errorf("completions %+v", left)
	}
	s.connect(qpnB, s.o, roce.StateRTS)
	must(t, srq.PostRecv(&roce.RecvWR{WRID: 6}))
	s.Recv(xrc(9, request(wire.RCSendOnly, s.it(0), nil)))
	s.expectCQE(cq, []roce.Completion{{WRID: 6, Opcode: roce.WCRecv}})
}

// TestXRCD: what may be in a domain, and once.
func TestXRCD(t *testing.T) {
	s := newTarget(t, options{})
	srq, cq := s.addSRQ(9)
	wantErr(t, s.xrcd.Add(srq, cq), roce.ErrInvalid, "is in an XRC domain")
	wantErr(t, roce.NewXRCD().Add(srq, cq), roce.ErrInvalid, "is in an XRC domain")
	twin, err := roce.NewSRQ(9, roce.SRQConfig{Domain: new(mem.Domain), MaxWR: 1, MaxSGE: 1})
	must(t, err)
	wantErr(t, s.xrcd.Add(twin, cq), roce.ErrInvalid, "is in an XRC domain")
	wantErr(t, roce.NewXRCD().Add(twin, nil), roce.ErrInvalid, "needs a CQ")
}

// TestXRCTargetOfFailedSRQ: a message for an SRQ that has failed ends the QP, for a reason
// that is not the peer's, though there are receives; what needs no receive is served.
func TestXRCTargetOfFailedSRQ(t *testing.T) {
	for _, op := range []wire.Opcode{wire.RCSendFirst, wire.RCSendOnly, wire.RCWriteOnlyImm} {
		s := newTarget(t, options{})
		s.PostRecv(1, 0, 4096)
		s.srq.Fail()
		s.srq.Fail()
		s.Recv(xrc(srqNum, s.writeRequest(wire.RCWriteOnly, s.it(0), 0, 1, []byte("x"))))
		s.Expect(roctest.Opcode(wire.XRCAck), roctest.PSN(s.it(0)), roctest.MSN(1))
		p := request(op, s.it(1), nil)
		if op == wire.RCSendFirst {
			p.Payload = make([]byte, s.mtu())
		}
		s.Recv(xrc(srqNum, p))
		s.Expect(roctest.Opcode(wire.XRCAck), roctest.PSN(s.it(1)),
			roctest.Syndrome(wire.NAKRemoteOperationalError))
		s.ExpectState(roce.StateErr)
		s.ExpectEvents(roce.EventQPFatal, roce.EventQPLastWQEReached)
		s.ExpectNoCQE()
		wantErr(t, s.postRecv(&roce.RecvWR{}), roce.ErrState, "SRQ has failed")
	}
}
