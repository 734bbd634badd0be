package roce_test

import (
	"errors"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestUnsignaled requests make no completion, and retire all the same.
func TestUnsignaled(t *testing.T) {
	s := newScript(t, options{Unsignaled: true, Depth: 2})
	for i := range uint64(20) {
		s.Send(i, 1)
		s.Expect(roctest.PSN(s.us(uint32(i))), roctest.AckReq(true))
		s.Recv(ack(s.us(uint32(i))))
	}
	s.Post(roce.SendWR{WRID: 99, Opcode: roce.OpSend, Flags: roce.SendSignaled})
	s.Expect(roctest.PSN(s.us(20)))
	s.Recv(ack(s.us(20)))
	s.ExpectCQE(done(99, roce.WCSend))
	s.ExpectNoCQE()
}

// scriptOn is newScript with a CQ of the test's for both directions.
func scriptOn(t *testing.T, o options, cq *roce.CQ) *script {
	t.Helper()
	e := newEndpoint(t, qpnA, o)
	c := e.config(o)
	c.SendCQ, c.RecvCQ = cq, cq
	var err error
	e.qp, err = roce.NewQP(qpnA, c)
	must(t, err)
	e.connect(qpnB, o, roce.StateRTS)
	s := &script{endpoint: e, t: t, o: o, frame: make([]byte, 8192)}
	must(t, s.path.Init(pathTo(qpnA, o.Framing)))
	return s
}

// TestPlaceIsFreeWhenCompletionShows: who sees a completion may post again, into
// queues of one entry, at once.
func TestPlaceIsFreeWhenCompletionShows(t *testing.T) {
	o := options{Depth: 1}.filled()
	var s *script
	var cq *roce.CQ
	shown := 0
	cq, err := roce.NewCQ(16, func() {
		shown++
		must(t, s.qp.PostRecv(&roce.RecvWR{}))
		if shown == 2 {
			must(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend}))
		}
	})
	must(t, err)
	s = scriptOn(t, o, cq)
	s.PostRecv(0, 0, 1)
	cq.Arm(false)
	s.Recv(request(wire.RCSendOnly, s.it(0), nil))
	// The receive that was posted in the event goes, and a SEND comes.
	must(t, s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend}))
	s.Expect(roctest.PSN(s.us(0)), roctest.Opcode(wire.RCSendOnly))
	s.ExpectAck(s.it(0), wire.ACKNoCredits, 1)
	s.Recv(request(wire.RCSendOnly, s.it(1), nil))
	if shown != 1 {
		t.Fatalf("%d events", shown)
	}
	cq.Arm(false)
	s.Recv(ack(s.us(0)))
	if shown != 2 {
		t.Fatalf("%d events", shown)
	}
}

// TestArm: one event for each arming, for what it was armed for; errors count as
// solicited.
func TestArm(t *testing.T) {
	for _, tt := range []struct {
		name      string
		arm       []bool // solicited only?
		se, error bool
		want      int
	}{
		{"not armed", nil, true, false, 0},
		{"any", []bool{false}, false, false, 1},
		{"solicited, is not", []bool{true}, false, false, 0},
		{"solicited, is", []bool{true}, true, false, 1},
		{"solicited, error", []bool{true}, false, true, 1},
		{"any stays any", []bool{false, true}, false, false, 1},
		{"solicited becomes any", []bool{true, false}, false, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options{}.filled()
			events := 0
			cq, err := roce.NewCQ(16, func() { events++ })
			must(t, err)
			s := scriptOn(t, o, cq)
			for _, only := range tt.arm {
				if cq.Arm(only) {
					t.Error("an empty CQ says that something waits")
				}
			}
			for i := range uint32(2) { // the second finds it disarmed
				s.PostRecv(uint64(i), 0, 1)
				p := request(wire.RCSendOnly, s.it(i), nil)
				p.SE = tt.se
				if tt.error {
					p.Payload = []byte("too long")
				}
				s.Recv(p)
			}
			if events != tt.want {
				t.Errorf("%d events, want %d", events, tt.want)
			}
			if !cq.Arm(false) {
				t.Error("a CQ with completions says that nothing waits")
			}
		})
	}
}

// TestOverrun: a QP whose completion found no room goes to ERR, and the CQ says
// so once it is empty.
func TestOverrun(t *testing.T) {
	s := newScript(t, options{CQDepth: 2})
	for i := range uint64(3) {
		s.Send(i, 1)
		s.Expect(roctest.PSN(s.us(uint32(i))))
	}
	s.Recv(ack(s.us(1)))
	s.ExpectState(roce.StateRTS)
	s.Recv(ack(s.us(2)))
	s.ExpectState(roce.StateErr)
	s.ExpectCount(counter.CQOverrun, 1)
	s.ExpectCQE(done(0, roce.WCSend), done(1, roce.WCSend))
	n, err := s.send.Poll(make([]roce.Completion, 1))
	if n != 0 || !errors.Is(err, roce.ErrOverrun) {
		t.Errorf("poll returned %d, %v", n, err)
	}
}

// TestNewCQRefuses depths that make no sense.
func TestNewCQRefuses(t *testing.T) {
	for _, depth := range []int{-1, 0, roce.MaxCQDepth + 1} {
		_, err := roce.NewCQ(depth, nil)
		wantErr(t, err, roce.ErrInvalid, "CQ depth")
	}
	cq, err := roce.NewCQ(5, nil)
	if err != nil || cq.Depth() < 5 {
		t.Errorf("depth %d, %v", cq.Depth(), err)
	}
}

// TestPollOrder: completions come in order across the wrap of the ring, in any
// batch.
func TestPollOrder(t *testing.T) {
	s := newScript(t, options{CQDepth: 8})
	next, id := uint64(0), uint64(0)
	for batch := 1; batch < 9; batch++ {
		for range batch {
			s.Send(id, 0)
			s.Expect()
			s.Recv(ack(s.us(uint32(id))))
			id++
		}
		got := make([]roce.Completion, 3)
		for next < id {
			n, err := s.send.Poll(got)
			if err != nil || n == 0 {
				t.Fatalf("poll returned %d, %v", n, err)
			}
			for _, wc := range got[:n] {
				if wc.WRID != next {
					t.Fatalf("completion %d, want %d", wc.WRID, next)
				}
				next++
			}
		}
	}
}
