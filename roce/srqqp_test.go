package roce_test

import (
	"slices"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A shared is an SRQ with scripts of several types of QP on it. All have one
// domain, but keys and memory of their own.
type shared struct {
	srq    *roce.SRQ
	qps    map[roce.QPType]*script
	events []roce.Event // of the SRQ
}

func newShared(t *testing.T, types ...roce.QPType) *shared {
	t.Helper()
	sh := &shared{qps: map[roce.QPType]*script{}}
	var err error
	sh.srq, err = roce.NewSRQ(5, roce.SRQConfig{
		Domain: new(mem.Domain), MaxWR: 16, MaxSGE: 2,
		OnEvent: func(e roce.Event) { sh.events = append(sh.events, e) },
	})
	must(t, err)
	for _, typ := range types {
		sh.qps[typ] = newScript(t, options{Type: typ, SRQ: sh.srq})
	}
	return sh
}

// TestSRQTakenInOrder: QPs take the oldest receive when a message begins, each
// keeps its own over the packets of the message, and completes it on its own CQ.
func TestSRQTakenInOrder(t *testing.T) {
	sh := newShared(t, roce.TypeRC)
	rc := sh.qps[roce.TypeRC]
	for i := range uint64(3) {
		rc.PostRecv(i, int(i)*1024, 1024)
	}
	mtu := make([]byte, rc.mtu())
	rc.Recv(request(wire.RCSendFirst, rc.it(0), mtu))
	rc.Recv(request(wire.RCSendMiddle, rc.it(1), mtu))
	if _, posted := sh.srq.Query(); posted != 2 {
		t.Errorf("%d receives left, want 2", posted)
	}
	rc2 := newScript(t, options{SRQ: sh.srq})
	rc2.PostRecv(3, 0, 64)
	if _, posted := sh.srq.Query(); posted != 3 {
		t.Errorf("%d receives left, want 3", posted)
	}
	rc.Recv(request(wire.RCSendLast, rc.it(2), []byte{1}))
	rc.ExpectRecvCQE(roce.Completion{WRID: 0, Opcode: roce.WCRecv, ByteLen: 513})
	rc.ExpectAck(rc.it(2), wire.ACKNoCredits, 1)
	w := request(wire.RCWriteOnlyImm, rc.it(3), nil)
	rc.Recv(w)
	rc.ExpectRecvCQE(roce.Completion{
		WRID: 1, Opcode: roce.WCRecvRDMAWithImm, Flags: roce.WCWithImm,
	})
}

// TestSRQAcks: a QP on an SRQ counts no credits, and asks the peer to wait when
// the SRQ is empty.
func TestSRQAcks(t *testing.T) {
	sh := newShared(t, roce.TypeRC)
	s := sh.qps[roce.TypeRC]
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte{1}))
	s.ExpectAck(s.it(0), wire.RNRSyndrome(s.o.MinRNR), 0)
	s.PostRecv(1, 0, 64)
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte{1}))
	s.Expect(roctest.Credits(wire.CreditInvalid))
	if s.qp.WantsCredit() {
		t.Error("wants to give credits")
	}
	s.ExpectNothing()
	wantErr(t, s.qp.PostRecv(&roce.RecvWR{}), roce.ErrInvalid, "receive queue of its own")
}

// TestSRQUnreliable: UC and UD drop without a receive. A receive in hand serves the
// next message.
func TestSRQUnreliable(t *testing.T) {
	sh := newShared(t, roce.TypeUC, roce.TypeUD)
	uc, ud := sh.qps[roce.TypeUC], sh.qps[roce.TypeUD]
	uc.Recv(uc.uc(wire.RCSendOnly, 0))
	ud.Recv(datagram(wire.UDSendOnly, testQKey, nil))
	uc.ExpectCount(counter.OutOfBuffer, 1)
	ud.ExpectCount(counter.OutOfBuffer, 1)
	uc.PostRecv(1, 0, 1024)
	uc.Recv(uc.uc(wire.RCSendFirst, 1), uc.uc(wire.RCSendOnly, 4))
	uc.ExpectRecvCQE(roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 4})
	ud.PostRecv(2, 0, 41)
	ud.Recv(datagram(wire.UDSendOnly, testQKey, make([]byte, 2)))
	ud.Recv(datagram(wire.UDSendOnly, testQKey, make([]byte, 1)))
	ud.ExpectRecvCQE(gramDone(2, 41))
	if !slices.Equal(sh.events, nil) {
		t.Errorf("events %v", sh.events)
	}
}

// TestSRQError: a QP that ends flushes the receive in hand alone, and says that it
// takes no more; those in the SRQ stay for others.
func TestSRQError(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeUD} {
		for _, inHand := range []bool{false, true} {
			sh := newShared(t, typ)
			s := sh.qps[typ]
			s.PostRecv(1, 0, 512)
			s.PostRecv(2, 0, 512)
			switch {
			case !inHand:
			case typ == roce.TypeRC:
				s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())))
			case typ == roce.TypeUC:
				s.Recv(s.uc(wire.RCSendFirst, 0))
			case typ == roce.TypeUD:
				s.Recv(datagram(wire.UDSendOnly, testQKey, make([]byte, 600)))
			}
			left := 2 - bit(inHand)
			s.move(roce.StateErr)
			if inHand {
				s.ExpectRecvCQE(failed(1, roce.StatusWRFlushErr))
			}
			s.ExpectNoCQE()
			s.ExpectEvents(roce.EventQPLastWQEReached)
			if _, posted := sh.srq.Query(); posted != left {
				t.Errorf("%s: %d receives left, want %d", typ, posted, left)
			}
			s.move(roce.StateErr)
			s.ExpectEvents()
		}
	}
}

// TestSRQLimit: the event comes once, when a QP takes the receive that leaves
// fewer than the limit.
func TestSRQLimit(t *testing.T) {
	sh := newShared(t, roce.TypeRC)
	s := sh.qps[roce.TypeRC]
	for i := range uint64(4) {
		s.PostRecv(i, 0, 64)
	}
	must(t, sh.srq.Modify(roce.SRQAttr{Limit: 2}, roce.SRQAttrLimit))
	for i := range uint32(4) {
		s.Recv(request(wire.RCSendOnly, s.it(i), nil))
		if want := bit(i >= 2); len(sh.events) != want {
			t.Errorf("after %d messages %d events, want %d", i+1, len(sh.events), want)
		}
	}
	if sh.events[0] != roce.EventSRQLimitReached {
		t.Errorf("event %s", sh.events[0])
	}
}

// TestSRQReset: a QP that is reset in the middle of a message forgets the receive
// in hand, and is as new.
func TestSRQReset(t *testing.T) {
	sh := newShared(t, roce.TypeRC)
	s := sh.qps[roce.TypeRC]
	s.PostRecv(1, 0, 512)
	s.PostRecv(2, 0, 512)
	s.Recv(request(wire.RCSendFirst, s.it(0), make([]byte, s.mtu())))
	s.move(roce.StateReset)
	s.ExpectNoCQE()
	s.connect(qpnB, s.o, roce.StateRTS)
	s.Recv(request(wire.RCSendOnly, s.it(0), nil))
	s.ExpectRecvCQE(roce.Completion{WRID: 2, Opcode: roce.WCRecv})
}
