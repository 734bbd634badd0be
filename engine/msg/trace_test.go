package msg_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
)

// TestTraceHasTheProtocol of each message, and why, at both ends; a flush is no message.
func TestTraceHasTheProtocol(t *testing.T) {
	_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	if events, lost := ca.Trace(); events != nil || lost != 0 {
		t.Errorf("before it was started: %v, %d", events, lost)
	}
	ca.StartTrace(8)
	cb.StartTrace(8)
	ctx := within(t)
	buf := make([]byte, 1<<20)
	for _, s := range []*msg.Send{
		{Buffers: [][]byte{buf[:10]}, Tag: 3},
		{Buffers: [][]byte{buf[:5], buf[:1<<20-5]}, Tag: 4, Protocol: rmsg.Get},
	} {
		r := &msg.Receive{Buffers: [][]byte{make([]byte, 1<<20)}, From: cb}
		must(t, ca.PostSend(s))
		must(t, b.PostReceive(r))
		must(t, r.Wait(ctx))
		must(t, s.Wait(ctx))
	}
	must(t, ca.Flush(ctx))
	for _, end := range []struct {
		conn *msg.Conn
		want []msg.TraceEvent
	}{
		{ca, []msg.TraceEvent{
			{Kind: msg.TracePosted, Tag: 3, Length: 10},
			{Kind: msg.TraceSent, Tag: 3, Length: 10, Protocol: rmsg.Eager, Why: rmsg.Fits},
			{Kind: msg.TracePosted, Tag: 4, Length: 1 << 20},
			{Kind: msg.TraceSent, Tag: 4, Length: 1 << 20, Protocol: rmsg.Get, Why: rmsg.Forced},
		}},
		{cb, []msg.TraceEvent{
			{Kind: msg.TraceReceived, Tag: 3, Length: 10, Protocol: rmsg.Eager},
			{Kind: msg.TraceReceived, Tag: 4, Length: 1 << 20, Protocol: rmsg.Get},
		}},
	} {
		events, lost := end.conn.Trace()
		if len(events) != len(end.want) || lost != 0 {
			t.Fatalf("%+v, %d lost, want %+v", events, lost, end.want)
		}
		for i, e := range events {
			if i > 0 && e.Time < events[i-1].Time {
				t.Errorf("event %d is earlier than the one before", i)
			}
			if e.Time = 0; e != end.want[i] {
				t.Errorf("event %d: %+v, want %+v", i, e, end.want[i])
			}
		}
	}
	var out bytes.Buffer
	must(t, ca.WriteTrace(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil ||
		len(lines) != 4 || last["protocol"] != "get" || last["why"] != "forced" {
		t.Errorf("%v:\n%s", err, &out)
	}
}

// TestTraceIsBounded: what is older than the last events is counted, and gone.
func TestTraceIsBounded(t *testing.T) {
	_, _, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	ca.StartTrace(3)
	ctx := within(t)
	for range 5 {
		must(t, ca.Send(ctx, []byte("x")))
		_, err := cb.Receive(ctx, make([]byte, 1))
		must(t, err)
	}
	if events, lost := ca.Trace(); len(events) != 3 || lost != 7 ||
		events[2].Kind != msg.TraceSent {
		t.Errorf("%+v, %d lost", events, lost)
	}
	if s := msg.TraceKind(9).String(); s != "kind 9" {
		t.Error(s)
	}
	ca.StartTrace(0)
	if events, lost := ca.Trace(); events != nil || lost != 0 {
		t.Errorf("when it was stopped: %v, %d", events, lost)
	}
}
