package roce_test

import (
	"strings"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// TestTrace: what happens to a QP is recorded in order, with its time.
func TestTrace(t *testing.T) {
	s := newScript(t, options{})
	trace := roce.NewTrace(64)
	s.qp.SetTrace(trace)
	s.now = 5
	s.Send(7, 4)
	s.Expect()
	s.now = 6
	s.Recv(ack(s.us(0)))
	s.now = 7
	s.Recv(request(wire.RCSendOnly, s.it(0), nil)) // no receive
	s.Expect()
	s.Recv(request(wire.RCWriteOnly, s.it(3), nil)) // behind it
	s.now = 8
	s.qp.HandleDeadline(8)
	s.now = 9
	s.Recv(request(wire.RCSendMiddle, s.it(0), make([]byte, s.mtu())))
	s.Expect()
	s.qp.SetTrace(nil)
	s.Recv(ack(s.us(0)))
	want := []string{
		"5 sent RC_SEND_ONLY psn 0x000100",
		"6 received RC_ACK psn 0x000100",
		"6 completed wr 7 success",
		"7 received RC_SEND_ONLY psn 0x000200",
		"7 dropped RC_SEND_ONLY psn 0x000200 at resources",
		"7 sent RC_ACK psn 0x000200",
		"7 received RC_WRITE_ONLY psn 0x000203",
		"7 dropped RC_WRITE_ONLY psn 0x000203 at after_gap",
		"8 deadline",
		"9 received RC_SEND_MIDDLE psn 0x000200",
		"9 dropped RC_SEND_MIDDLE psn 0x000200 at opcode_sequence",
		"9 state ERR",
		"9 sent RC_ACK psn 0x000200",
	}
	events, lost := trace.Events()
	var got []string
	for _, e := range events {
		got = append(got, e.String())
	}
	if lost != 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("lost %d, recorded\n%s\nwant\n%s", lost, strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
}

// TestTraceWraps: a full trace keeps the newest events and counts the others.
func TestTraceWraps(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		s := newScript(t, options{})
		trace := roce.NewTrace(n)
		s.qp.SetTrace(trace)
		if events, lost := trace.Events(); len(events) != 0 || lost != 0 {
			t.Errorf("a new trace has %v, lost %d", events, lost)
		}
		size := max(n, 1)
		for i := range 10 {
			s.now = roce.Time(100 + i)
			s.qp.HandleDeadline(s.now)
			events, lost := trace.Events()
			if len(events) != min(i+1, size) || lost != uint64(max(0, i+1-size)) ||
				events[len(events)-1].Time != s.now {
				t.Fatalf("after %d events: %v, lost %d", i+1, events, lost)
			}
		}
	}
	if k := roce.TraceKind(99); k.String() != "kind 99" {
		t.Errorf("kind is %s", k)
	}
}
