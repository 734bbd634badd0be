package roce_test

import (
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// newPiggyback returns a script whose QP and peer let acknowledges ride.
func newPiggyback(t *testing.T, o options) *script {
	t.Helper()
	o.Ext |= roce.ExtPiggybackAck
	return newScript(t, o)
}

// riding is a SEND of the peer on which an acknowledge of ours rides.
func riding(psn, acked wire.PSN, s wire.Syndrome) roctest.Packet {
	p := request(wire.SendOnlyAck, psn, []byte("data"))
	p.Acked, p.AETH = acked, wire.AETH{Syndrome: s}
	return p
}

// rides checks the acknowledge on a packet.
func rides(op wire.Opcode, psn wire.PSN, msn uint32) roctest.Check {
	return func(p *wire.Packet) error {
		if p.BTH.Opcode != op || p.APSN().PSN != psn || p.AETH().MSN != msn {
			return fmt.Errorf("%s acknowledges %d, MSN %d; want %s, %d, %d", p.BTH.Opcode,
				p.APSN().PSN, p.AETH().MSN, op, psn, msn)
		}
		return nil
	}
}

// TestAckRides: the acknowledge of what came leaves on the reply and not beside it, and what comes
// back with the next message ends the reply.
func TestAckRides(t *testing.T) {
	s := newPiggyback(t, options{SQPSN: 0xfffffe, RQPSN: 0xfffffd})
	for i := range uint32(5) {
		s.PostRecv(uint64(i), 0, 64)
		p := request(wire.RCSendOnly, s.it(i), []byte("data"))
		if i > 0 {
			p = riding(s.it(i), s.us(i-1), wire.ACKNoCredits)
		}
		s.Recv(p)
		if i > 0 {
			s.ExpectCQE(done(uint64(i-1), roce.WCSend))
		}
		s.ExpectRecvCQE(roce.Completion{WRID: uint64(i), Opcode: roce.WCRecv, ByteLen: 4})
		s.Send(uint64(i), 4)
		s.Expect(roctest.PSN(s.us(i)), roctest.AckReq(true), rides(wire.SendOnlyAck, s.it(i), i+1))
		s.ExpectNothing()
	}
}

// TestAckRidesOnWhat: on a SEND and a WRITE of one packet that has room beside its payload; where
// it cannot, the acknowledge goes behind the request as it does without the extension.
func TestAckRidesOnWhat(t *testing.T) {
	mtu := wire.MTU1024.Bytes()
	for _, tt := range []struct {
		op   roce.Opcode
		n    int
		want wire.Opcode // 0: it does not ride
	}{
		{roce.OpSend, 0, wire.SendOnlyAck},
		{roce.OpSendImm, 4, wire.SendOnlyImmAck},
		{roce.OpWrite, 4, wire.WriteOnlyAck},
		{roce.OpWriteImm, 4, wire.WriteOnlyImmAck},
		{roce.OpSend, mtu - 8, wire.SendOnlyAck},
		{roce.OpSend, mtu - 7, 0},
		{roce.OpSend, mtu + 1, 0},
		{roce.OpRead, 4, 0},
	} {
		s := newPiggyback(t, options{MTU: wire.MTU1024})
		s.PostRecv(1, 0, 64)
		s.Recv(request(wire.RCSendOnly, s.it(0), []byte("data")))
		s.Post(roce.SendWR{
			Opcode: tt.op, RemoteAddr: 8, SGList: s.sge(0, tt.n), Flags: roce.SendSignaled,
		})
		if tt.want != 0 {
			s.Expect(rides(tt.want, s.it(0), 1))
			s.ExpectNothing()
			continue
		}
		s.Expect(roctest.PSN(s.us(0)))
		s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	}
}

// TestRiderIsNoRequest: a rider counts once and whatever comes of what it rides on: of a packet
// that is early, refused or a duplicate. An old one, one of what was never sent and one that is no
// ACK do nothing.
func TestRiderIsNoRequest(t *testing.T) {
	s := newPiggyback(t, options{})
	s.sendMany(4)
	s.Recv(riding(s.it(1), s.us(0), wire.ACKNoCredits)) // behind a gap
	s.ExpectCQE(done(0, roce.WCSend))
	s.ExpectAck(s.it(0), wire.NAKPSNSequenceError, 0)
	s.Recv(riding(s.it(0), s.us(1), wire.ACKNoCredits)) // there is no receive
	s.ExpectCQE(done(1, roce.WCSend))
	s.ExpectAck(s.it(0), wire.RNRSyndrome(s.o.MinRNR), 0)
	s.PostRecv(7, 0, 64)
	s.Recv(riding(s.it(0), s.us(1), wire.ACKNoCredits))
	s.ExpectRecvCQE(roce.Completion{WRID: 7, Opcode: roce.WCRecv, ByteLen: 4})
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	for _, acked := range []wire.PSN{s.us(0), s.us(1), s.us(4), s.us(1000), s.us(0).Sub(1)} {
		s.Recv(riding(s.it(0), acked, wire.ACKNoCredits)) // a duplicate
		s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
		s.ExpectNoCQE()
	}
	for _, bad := range []wire.Syndrome{
		wire.NAKPSNSequenceError, wire.NAKRemoteAccessError,
		wire.RNRSyndrome(1), 0x60 | 0x1f, 0x40,
	} {
		s.Recv(riding(s.it(0), s.us(2), bad))
		s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
		s.ExpectNoCQE()
		s.ExpectState(roce.StateRTS)
	}
	s.Recv(riding(s.it(0), s.us(3), wire.ACKNoCredits))
	s.ExpectCQE(done(2, roce.WCSend), done(3, roce.WCSend))
}

// TestRiderIsLost: what is sent again carries no acknowledge, or that of what came meanwhile, and
// a request that comes again because its acknowledge was lost is answered anew.
func TestRiderIsLost(t *testing.T) {
	s := newPiggyback(t, options{})
	s.PostRecv(1, 0, 64)
	s.PostRecv(2, 0, 64)
	first := request(wire.RCSendOnly, s.it(0), []byte("data"))
	s.Recv(first)
	s.Send(1, 4)
	s.Expect(rides(wire.SendOnlyAck, s.it(0), 1)) // and is lost
	s.Advance(68 * roce.Millisecond)
	s.Expect(roctest.Opcode(wire.RCSendOnly), roctest.PSN(s.us(0)))
	s.Advance(68 * roce.Millisecond)
	s.Recv(first) // its sender has heard of nothing
	s.Expect(rides(wire.SendOnlyAck, s.it(0), 1), roctest.PSN(s.us(0)))
	s.ExpectNothing()
	s.Recv(riding(s.it(1), s.us(0), wire.ACKNoCredits))
	s.ExpectCQE(done(1, roce.WCSend))
}

// TestRiderIsNegotiated: without the extension the packets are of another service, and none is
// sent; with it alone nothing that came early is kept.
func TestRiderIsNegotiated(t *testing.T) {
	s := newScript(t, options{Ext: roce.ExtSelectiveRepeat})
	s.sendMany(1)
	s.PostRecv(1, 0, 64)
	s.Recv(riding(s.it(0), s.us(0), wire.ACKNoCredits))
	s.ExpectNoCQE()
	s.ExpectNothing()
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte("data")))
	s.Send(2, 4)
	s.Expect(roctest.Opcode(wire.RCSendOnly))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)

	s = newPiggyback(t, options{})
	s.sendMany(2)
	s.Recv(sack(s.us(0), 1))
	s.ExpectNoCQE()
	s.Recv(request(wire.RCWriteOnly, s.it(1), nil))
	s.ExpectAck(s.it(0), wire.NAKPSNSequenceError, 0)
}

// TestRiderHasCredits: an acknowledge that rides tells of receives as another does, also when it
// acknowledges nothing new.
func TestRiderHasCredits(t *testing.T) {
	s := newPiggyback(t, options{})
	s.PostRecv(1, 0, 64)
	s.PostRecv(2, 0, 64)
	s.sendMany(1)
	p := riding(s.it(0), s.us(0), wire.ACKSyndrome(0)) // the peer has no receive
	p.AETH.MSN = 1
	s.Recv(p)
	s.ExpectAck(s.it(0), wire.ACKSyndrome(wire.CreditCode(1)), 1)
	s.Send(1, 4)
	s.Send(2, 4)
	s.Expect(roctest.PSN(s.us(1)), roctest.AckReq(true)) // one, and no more
	s.ExpectNothing()
	p = riding(s.it(1), s.us(0), wire.ACKSyndrome(wire.CreditCode(8)))
	p.AETH.MSN = 1
	s.Recv(p)
	s.Expect(roctest.PSN(s.us(2)))
}

// TestRiderNeverAcknowledges: a peer that goes on sending, and acknowledges on what it sends only
// what it acknowledged before, or nothing, holds up no timeout: what it owes goes again RETRY_CNT
// times and then fails the queue pair, and its own requests were each answered until then.
func TestRiderNeverAcknowledges(t *testing.T) {
	const retries = 3
	for _, rides := range []bool{true, false} {
		s := newPiggyback(t, options{RetryCnt: retries, Timeout: 14})
		s.Send(1, 4)
		s.Expect(roctest.PSN(s.us(0)))
		s.Recv(ack(s.us(0)))
		s.ExpectCQE(done(1, roce.WCSend))
		s.Send(2, 4)
		s.Expect(roctest.PSN(s.us(1)))
		var n, again uint32
		for ; s.qp.State() == roce.StateRTS; n++ {
			if n > 1000 {
				t.Fatal("it waits for ever")
			}
			s.PostRecv(100, 0, 64)
			p := request(wire.RCSendOnly, s.it(n), []byte("data"))
			if rides {
				p = riding(s.it(n), s.us(0), wire.ACKNoCredits)
			}
			s.Recv(p)
			s.ExpectAck(s.it(n), wire.ACKNoCredits, n+1)
			s.Advance(10 * roce.Millisecond)
			if s.qp.State() != roce.StateRTS {
				break
			}
			if size := s.qp.NextPacket(s.now, s.frame); size > 0 {
				must(t, roctest.Frame(s.frame[:size], roctest.PSN(s.us(1)), roctest.AckReq(true)))
				again++
			}
		}
		if again != retries {
			t.Errorf("riding %t: sent again %d times, want %d", rides, again, retries)
		}
		s.ExpectCQE(failed(2, roce.StatusRetryExcErr))
	}
}
