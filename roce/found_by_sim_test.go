package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// TestSlowMessageIsNoLoss (I6 status): a rate limit makes a message, and each
// packet of it, take longer than the local ACK timer. Nothing is lost, so nothing
// is sent again, and a queue pair without retries lives.
func TestSlowMessageIsNoLoss(t *testing.T) {
	const n = 20 * 256
	p := newRCPair(t, options{
		Timeout: 1, RetryCnt: 1, Attr: func(a *roce.Attr) { a.RetryCnt = 0 },
	})
	a, b := p.ends[0], p.ends[1]
	// 8 us: a frame takes four times as long.
	must(t, a.qp.Modify(0, &roce.Attr{State: roce.StateRTS, RateLimit: 80_000},
		roce.AttrState|roce.AttrRateLimit))
	must(t, a.qp.PostSend(&roce.SendWR{
		WRID: 1, Opcode: roce.OpWrite, SGList: a.sge(0, n), RemoteAddr: b.region.Addr(),
		RKey: b.region.RKey(),
	}))
	p.run()
	want := roce.Completion{WRID: 1, Opcode: roce.WCWrite, QPN: qpnA}
	got := drain(t, a.send)
	if len(got) != 1 {
		t.Fatalf("completions %+v", got)
	}
	if got[0].Time = 0; got[0] != want {
		t.Errorf("completion %+v, want %+v", got[0], want)
	}
	if p.sent[0] != 20 {
		t.Errorf("%d packets were sent for 20", p.sent[0])
	}
}

// TestRefusedIsNotMissing (I6 status): a request that met no receive was told so.
// What was sent behind it says nothing about a loss, with extensions too: a peer
// that hears of one repeats, and loses a retry for nothing.
func TestRefusedIsNotMissing(t *testing.T) {
	for _, ext := range []roce.Extensions{
		0, roce.ExtSelectiveRepeat, roce.ExtReorderWindow,
		roce.ExtSelectiveRepeat | roce.ExtReorderWindow,
	} {
		s := newScript(t, options{MinRNR: 1, Ext: ext})
		first := request(wire.RCSendOnly, s.it(0), []byte("first"))
		second := request(wire.RCSendOnly, s.it(1), []byte("second"))
		second.AckReq = true
		s.Recv(first)
		s.ExpectAck(s.it(0), wire.RNRSyndrome(1), 0)
		s.Recv(second)
		s.ExpectNothing()
		s.Advance(roce.Millisecond) // longer than a gap stays open
		s.ExpectNothing()
		s.PostRecv(1, 0, 8)
		s.PostRecv(2, 8, 8)
		s.Recv(first, second)
		s.ExpectAck(s.it(1), wire.ACKNoCredits, 2)
		s.ExpectRecvCQE(
			roce.Completion{WRID: 1, Opcode: roce.WCRecv, ByteLen: 5},
			roce.Completion{WRID: 2, Opcode: roce.WCRecv, ByteLen: 6},
		)
	}
}
