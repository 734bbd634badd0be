package analyze

import (
	"testing"

	"xroce/roce/clock"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

const (
	us = clock.Microsecond
	ms = clock.Millisecond
)

// TestLatency: operations and acknowledgements are timed, and both queue pairs are known.
func TestLatency(t *testing.T) {
	r := newRig(t)
	for i := range wire.PSN(100) {
		r.send(10*us, i)
		r.ack(5*us, i, wire.ACKSyndrome(0x0a), uint32(i)+1)
	}
	report := r.says()
	if len(report.Connections) != 1 || len(report.Connections[0].Directions) != 2 {
		t.Fatalf("%+v", report.Connections)
	}
	d, back := report.Connections[0].Directions[0], report.Connections[0].Directions[1]
	if d.FromQPN != 0x11 || d.ToQPN != 0x22 || !d.KnowsQPN || back.FromQPN != 0x22 {
		t.Errorf("QP 0x%x to 0x%x, back from 0x%x", d.FromQPN, d.ToQPN, back.FromQPN)
	}
	if o := d.Operations[0]; o.Kind != "SEND" || o.Count != 100 || o.Bytes != 800 ||
		o.Latency.Count != 100 || o.Latency.Min != 5*us || o.Latency.Max != 5*us {
		t.Errorf("%+v", o)
	}
	if d.RTT == nil || d.RTT.Count != 100 || d.RTT.Mean != 5*us || d.Unanswered != 0 {
		t.Errorf("%+v, %d unanswered", d.RTT, d.Unanswered)
	}
	if back.Credits == nil || back.Credits.Fewest != 32 || back.Acks != 100 {
		t.Errorf("%+v, %d acknowledgements", back.Credits, back.Acks)
	}
}

// TestCauses: why packets come again, told by what came before.
func TestCauses(t *testing.T) {
	for name, tt := range map[string]struct {
		run  func(r *rig)
		want Cause
		says string
	}{
		"probe": {func(r *rig) {
			r.send(0, 7)
			r.send(us, 8)
			r.send(us, 9)
			r.send(67*ms, 9)
		}, Probe, "asked with its last packet after silence once (67ms)"},
		"timeout": {func(r *rig) {
			r.send(0, 7)
			r.send(us, 8)
			r.send(67*ms, 7)
			r.send(us, 8)
		}, Timeout, "waited for a timeout once (67ms)"},
		"selective": {func(r *rig) {
			r.send(0, 7)
			r.send(us, 8)
			r.send(us, 9)
			r.give(1, 3*us, roctest.Packet{
				Opcode: wire.SelectiveAck, PSN: 8, Payload: make([]byte, 32),
				AETH: wire.AETH{Syndrome: wire.NAKPSNSequenceError, MSN: 1},
			})
			r.send(us, 8)
		}, Selective, "repaired losses once (1µs) that a selective acknowledge named"},
		"unknown": {func(r *rig) {
			r.send(0, 7)
			r.send(us, 7)
		}, UnknownWhy, "for a reason that the capture does not show"},
	} {
		r := newRig(t)
		tt.run(r)
		d := r.says(tt.says).Connections[0].Directions[0]
		if len(d.Resent) != 1 || d.Resent[0].cause != tt.want {
			t.Errorf("%s: %+v", name, d.Resent)
		}
	}
}

// TestCongestion: who is told to slow down, and by how many.
func TestCongestion(t *testing.T) {
	r := newRig(t)
	r.send(0, 1)
	r.give(1, us, roctest.Packet{Opcode: wire.CNP, Payload: make([]byte, 16)})
	r.says("192.0.2.2 told 192.0.2.1 to slow down with 1 CNPs (packet 2)")
}

// TestOneSided: a capture of one direction says so, and knows no latency.
func TestOneSided(t *testing.T) {
	r := newRig(t)
	for i := range wire.PSN(5) {
		r.send(us, i)
	}
	report := r.says("but none the other way: no answers")
	if c := report.Connections[0]; !c.OneSided || c.Directions[0].Operations[0].Latency != nil {
		t.Errorf("%+v", c)
	}
	r = newRig(t)
	for i := range wire.PSN(5) {
		r.ack(us, i, 0, uint32(i))
	}
	r.says("but none the other way: no requests")
}
