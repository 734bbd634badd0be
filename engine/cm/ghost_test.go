package cm_test

import (
	"testing"

	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// packet sends a packet to a queue pair of the target in the name of a host, and waits until it
// has left.
func (s *stranger) packet(t *testing.T, src *host, p roctest.Packet) {
	t.Helper()
	var template wire.Template
	must(t, template.Init(wire.Path{
		Framing: wire.FramingV2IPv4, SrcMAC: s.from, DstMAC: s.to, Src: wire.GIDFromAddr(src.v4),
		Dst: wire.GIDFromAddr(s.target), HopLimit: 64, SrcPort: 50000,
	}))
	n := copy(s.mr.Bytes(), p.Frame(&template))
	must(t, s.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{s.mr.SGE(0, n)},
	}))
	s.left(t, 1)
}

// TestGhost: a stranger asks in the name of a host that is there, and that says nothing to an
// answer it did not ask for. He finds the queue pair, and still does not get the connection
// confirmed: that does who has seen the answer, in which the PSN of the first request is.
func TestGhost(t *testing.T) {
	s := newSiege(t)
	ctx := within(t, testTimeout)
	must(t, s.peer.manager.Close()) // so nobody refuses
	s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	r, err := s.listener.Accept(ctx)
	must(t, err)
	setup := s.setup()
	qp, err := s.dev.CreateQP(s.pd, setup.Init)
	must(t, err)
	setup.QP = qp
	accepted := make(chan *cm.Conn, 1)
	go func() {
		c, err := r.Accept(ctx, setup)
		must(t, err)
		accepted <- c
	}()
	waits(t, func() bool { return s.counted("cm_tx_msgs_rep") == 1 })
	expected := qp.Query().RQPSN
	for _, p := range []roctest.Packet{
		{Opcode: wire.RCAck, PSN: expected},
		{Opcode: wire.RCAck, PSN: qp.Query().SQPSN},
		{Opcode: wire.RCSendOnly, PSN: expected.Add(64)},
		{Opcode: wire.RCSendOnly, PSN: expected.Sub(64)},
		{Opcode: wire.RCWriteOnly, PSN: expected.Add(1 << 23)},
	} {
		p.DestQP = qp.QPN()
		s.stranger.packet(t, s.peer, p)
	}
	s.flood(t, faraway, 1) // when this has been taken, so have those
	if n := s.manager.Usage().HalfOpen; n != 1 {
		t.Errorf("%d requests are half open, want 1", n)
	}
	s.stranger.packet(t, s.peer, roctest.Packet{
		Opcode: wire.RCSendOnly, PSN: expected, DestQP: qp.QPN(),
	})
	c := <-accepted
	s.peer.manager, err = cm.Open(s.peer.dev, cm.Options{})
	must(t, err)
	c.Close() // which it confirms, as of all that it knows nothing of
	waits(t, func() bool { return s.counted("cm_rx_msgs_drep") == 1 })
}
