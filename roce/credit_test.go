package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// credited is an acknowledge with a credit code.
func credited(psn wire.PSN, msn uint32, code uint8) roctest.Packet {
	return roctest.Packet{
		Opcode: wire.RCAck, PSN: psn, AETH: wire.AETH{Syndrome: wire.ACKSyndrome(code), MSN: msn},
	}
}

// TestCreditsAreHonoured: after an acknowledge with n credits n messages go, and
// then none but one, as a question, when nothing is outstanding.
func TestCreditsAreHonoured(t *testing.T) {
	const posted = 40
	for code := range uint8(wire.CreditInvalid) {
		s := newScript(t, options{})
		for i := range uint64(posted) {
			s.Send(i, 1)
		}
		s.Expect(roctest.PSN(s.us(0)))
		s.Recv(credited(s.us(0), 1, code))
		n, _ := wire.Credits(code)
		for i := range min(n, posted-1) {
			last := i == min(n, posted-1)-1
			s.Expect(roctest.PSN(s.us(uint32(1+i))), roctest.AckReq(last))
		}
		if n >= posted-1 {
			continue
		}
		if n > 0 {
			s.ExpectNothing()
			s.Recv(credited(s.us(uint32(n)), uint32(1+n), 0))
		}
		s.Expect(roctest.PSN(s.us(uint32(1+n))), roctest.AckReq(true))
		s.ExpectNothing()
	}
}

// TestNoCreditGoesPacketByPacket: a long message beyond the credits asks with each
// packet until the peer has a receive for it; WRITE needs none.
func TestNoCreditGoesPacketByPacket(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 1)
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.Recv(credited(s.us(0), 1, 0))
	s.Send(2, 3*s.mtu())
	s.Expect(roctest.Opcode(wire.RCSendFirst), roctest.AckReq(true))
	s.ExpectNothing()
	s.Recv(credited(s.us(1), 1, 0))
	s.Expect(roctest.Opcode(wire.RCSendMiddle), roctest.AckReq(true))
	s.ExpectNothing()
	s.Recv(credited(s.us(2), 1, 1))
	s.Expect(roctest.Opcode(wire.RCSendLast))
	s.Recv(credited(s.us(3), 2, 0))
	for i := range uint64(3) {
		s.Post(roce.SendWR{WRID: 3 + i, Opcode: roce.OpWrite, SGList: s.sge(0, 1)})
		s.Expect(roctest.Opcode(wire.RCWriteOnly))
	}
	s.ExpectCQE(done(1, roce.WCSend), done(2, roce.WCSend))
}

// TestGrantByGhost: an acknowledge that repeats the last one gives credits, one
// that is older does not.
func TestGrantByGhost(t *testing.T) {
	s := newScript(t, options{})
	s.Send(1, 1)
	s.Send(2, 1)
	s.Expect(roctest.PSN(s.us(0)))
	s.Expect(roctest.PSN(s.us(1)))
	s.Recv(credited(s.us(1), 2, 0))
	s.Send(3, 1)
	s.Send(4, 1)
	s.Expect(roctest.PSN(s.us(2)), roctest.AckReq(true))
	s.ExpectNothing()
	s.Recv(credited(s.us(0), 1, 31))
	s.ExpectNothing()
	s.Recv(credited(s.us(1), 2, 16))
	s.Expect(roctest.PSN(s.us(3)))
}

// TestCreditsAreTrue: an acknowledge tells how many receives are posted, the one
// in hand included, and one that told of none is followed by one that tells of
// the next.
func TestCreditsAreTrue(t *testing.T) {
	s := newScript(t, options{})
	for i := range uint64(5) {
		s.PostRecv(i, 0, 4*s.mtu())
	}
	last := request(wire.RCSendLast, s.it(1), make([]byte, 1))
	s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())), last)
	s.Expect(roctest.PSN(s.it(1)), roctest.MSN(1), roctest.Credits(wire.CreditCode(4)))
	for i := range uint32(4) {
		s.Recv(s.sequencePacket(wire.RCSendOnly, s.it(2+i)))
		s.Expect(roctest.PSN(s.it(2+i)), roctest.Credits(wire.CreditCode(int(3-i))))
	}
	if !s.qp.WantsCredit() {
		t.Error("nothing was granted and no credit is wanted")
	}
	s.ExpectNothing()
	s.PostRecv(9, 0, 1)
	s.Expect(roctest.Opcode(wire.RCAck), roctest.PSN(s.it(5)), roctest.MSN(5),
		roctest.Credits(wire.CreditCode(1)))
	s.ExpectNothing()
	if s.qp.WantsCredit() {
		t.Error("a credit is wanted that was granted")
	}
}
