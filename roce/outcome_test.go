package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// outcome gives the QP a packet and says what came of it.
func (s *script) outcome(packet roctest.Packet) roce.Outcome {
	s.t.Helper()
	packet.DestQP = qpnA
	var p wire.Packet
	if r := p.Decode(packet.Frame(&s.path), nil); r != wire.OK {
		s.t.Fatalf("the script made a bad packet: %s", r)
	}
	s.qp.HandlePacket(s.now, &p)
	return s.qp.Outcome(&p)
}

// TestOutcome: each packet has a verdict, with the reason or the receive.
func TestOutcome(t *testing.T) {
	s := newScript(t, options{})
	s.PostRecv(70, 0, 64)
	send := func(n uint32) roctest.Packet {
		return request(wire.RCSendOnly, s.it(n), []byte("data"))
	}
	for _, step := range []struct {
		name   string
		packet roctest.Packet
		want   roce.Verdict
		reason string
		wr     uint64
	}{
		{"the expected one", send(0), roce.VerdictAccepted, "admitted", 70},
		{"again", send(0), roce.VerdictDuplicate, "admitted", 0},
		{"no receive", send(1), roce.VerdictRefused, "resources", 0},
		{"behind it", send(2), roce.VerdictDropped, "after_gap", 0},
		{"answer to nothing", ack(s.us(5)), roce.VerdictDropped, "future_response", 0},
		{
			"out of sequence", request(wire.RCSendMiddle, s.it(1), make([]byte, s.mtu())),
			roce.VerdictRefused, "opcode_sequence", 0,
		},
		{"after the end", send(1), roce.VerdictDropped, "qp_state", 0},
	} {
		o := s.outcome(step.packet)
		if o.Verdict != step.want || o.Reason.String() != step.reason || o.WRID != step.wr ||
			o.HasWR != (step.wr != 0) {
			t.Errorf("%s: %s %s, wr %d", step.name, o.Verdict, o.Reason, o.WRID)
		}
	}
	if v := roce.Verdict(99); v.String() != "verdict 99" {
		t.Error(v)
	}
}

// TestOutcomeOfEarly: a packet that closes a gap is told of itself, not of what it let in.
func TestOutcomeOfEarly(t *testing.T) {
	s := newScript(t, options{Ext: roce.ExtReorderWindow | roce.ExtSelectiveRepeat})
	s.PostRecv(1, 0, 64)
	early := request(wire.RCSendOnly, s.it(1), []byte("early")) // will find no receive
	if o := s.outcome(early); o.Verdict != roce.VerdictHeld {
		t.Errorf("early: %s %s", o.Verdict, o.Reason)
	}
	if o := s.outcome(early); o.Verdict != roce.VerdictDuplicate {
		t.Errorf("early again: %s %s", o.Verdict, o.Reason)
	}
	o := s.outcome(request(wire.RCSendOnly, s.it(0), []byte("first")))
	if o.Verdict != roce.VerdictAccepted || o.HasWR {
		t.Errorf("first: %+v", o)
	}
}

// TestSent: what is written is told as a request of a work request, new or again, or as an
// answer.
func TestSent(t *testing.T) {
	s := newScript(t, options{})
	s.PostRecv(1, 0, 64)
	s.Send(7, 4)
	s.Expect()
	if got, want := s.qp.Sent(), (roce.Sent{Request: true, WRID: 7}); got != want {
		t.Errorf("a request: %+v", got)
	}
	s.Recv(ackWith(s.us(0), wire.NAKPSNSequenceError))
	s.Expect()
	if got, want := s.qp.Sent(), (roce.Sent{Request: true, Again: true, WRID: 7}); got != want {
		t.Errorf("again: %+v", got)
	}
	s.Recv(request(wire.RCSendOnly, s.it(0), []byte("data")))
	s.Expect(roctest.Opcode(wire.RCAck))
	if got := s.qp.Sent(); got != (roce.Sent{}) {
		t.Errorf("an answer: %+v", got)
	}
}
