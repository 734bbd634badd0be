package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestSendInvResponder: the key is out of use when the completion shows.
func TestSendInvResponder(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights})
	other, err := s.keys.RegisterAt(s.domain, make([]byte, 64), 1<<40, atomicRights)
	must(t, err)
	key := other.RKey()
	s.PostRecv(1, 0, 2*s.mtu())
	first := request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu()))
	last := request(wire.RCSendLastInv, s.it(1), make([]byte, 5))
	last.IETH = key
	s.Recv(first)
	if !other.Valid() {
		t.Error("invalidated by the first packet")
	}
	s.Recv(last)
	if other.Valid() {
		t.Error("still valid")
	}
	s.ExpectRecvCQE(roce.Completion{
		WRID: 1, Opcode: roce.WCRecv, ByteLen: uint32(s.mtu()) + 5, Flags: roce.WCWithInv,
		InvalidatedKey: key,
	})
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 1)
	s.Recv(last) // a duplicate: nothing is done again, and nothing is wrong
	s.ExpectAck(s.it(1), wire.ACKNoCredits, 1)
	s.ExpectState(roce.StateRTS)
}

// TestSendInvRefused: a key that cannot be invalidated ends the QP, the receive
// says so, and a request for a receive comes first.
func TestSendInvRefused(t *testing.T) {
	s := newScript(t, options{}) // the region is not INVALIDATABLE
	p := request(wire.RCSendOnlyInv, s.it(0), []byte{1})
	p.IETH = s.region.RKey()
	s.Recv(p)
	s.ExpectAck(s.it(0), wire.RNRSyndrome(s.o.MinRNR), 0)
	s.PostRecv(1, 0, 8)
	s.Recv(p)
	s.ExpectAck(s.it(0), wire.NAKRemoteAccessError, 0)
	s.ExpectRecvCQE(failed(1, roce.StatusLocAccessErr))
	s.ExpectEvents()
	if !s.region.Valid() {
		t.Error("invalidated")
	}
}

// TestSendInvRequester: the key goes out with the last packet.
func TestSendInvRequester(t *testing.T) {
	s := newScript(t, options{})
	s.Post(roce.SendWR{Opcode: roce.OpSendInv, SGList: s.sge(0, s.mtu()+1), InvalidateKey: 0xabc})
	s.Post(roce.SendWR{Opcode: roce.OpSendInv, SGList: s.sge(0, 1), InvalidateKey: 0xdef})
	s.Expect(roctest.Opcode(wire.RCSendFirst))
	s.Expect(roctest.Opcode(wire.RCSendLastInv), roctest.IETH(0xabc))
	s.Expect(roctest.Opcode(wire.RCSendOnlyInv), roctest.IETH(0xdef))
}

// TestLocalInv: it waits for everything before it, is done at its turn, and what
// is behind waits for it.
func TestLocalInv(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights})
	s.Send(1, 4)
	s.Read(2, 4)
	s.Post(roce.SendWR{WRID: 3, Opcode: roce.OpLocalInv, InvalidateKey: s.region.RKey()})
	s.Post(roce.SendWR{WRID: 4, Opcode: roce.OpLocalInv, InvalidateKey: s.region.RKey()})
	s.Post(roce.SendWR{WRID: 5, Opcode: roce.OpSend})
	s.Expect(roctest.Opcode(wire.RCSendOnly), roctest.AckReq(false))
	s.Expect(roctest.Opcode(wire.RCReadRequest))
	s.ExpectNothing()
	s.Recv(ack(s.us(0)))
	s.ExpectNothing()
	if !s.region.Valid() {
		t.Error("done before the READ")
	}
	s.Recv(response(wire.RCReadRespOnly, s.us(1), make([]byte, 4)))
	s.ExpectNothing()
	s.ExpectCQE(done(1, roce.WCSend), roce.Completion{WRID: 2, Opcode: roce.WCRead, ByteLen: 4},
		done(3, roce.WCLocalInv), failed(4, roce.StatusLocQPOpErr),
		failed(5, roce.StatusWRFlushErr))
	if s.region.Valid() {
		t.Error("not done")
	}
	s.ExpectState(roce.StateErr)
}

// TestLocalInvAlone: without anything before it, it needs no packet, and what
// follows goes in the same call.
func TestLocalInvAlone(t *testing.T) {
	s := newScript(t, options{Rights: atomicRights})
	s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpLocalInv, InvalidateKey: s.region.RKey()})
	s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpSend})
	s.Expect(roctest.Opcode(wire.RCSendOnly), roctest.PSN(s.us(0)))
	s.ExpectCQE(done(1, roce.WCLocalInv))
	s.ExpectDeadline(4096 << 14)
}
