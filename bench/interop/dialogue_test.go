package main

import (
	"strings"
	"testing"

	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// packet makes a packet of a dialogue.
func packet(op wire.Opcode, psn wire.PSN, ackReq bool) *wire.Packet {
	return &wire.Packet{Spec: op.Spec(), BTH: wire.BTH{
		Opcode: op, PSN: psn, PKey: 0xffff, AckReq: ackReq, DestQP: 17,
	}}
}

// exchange makes a dialogue of requests of A from a first PSN, and answers of B.
func exchange(first wire.PSN, ackReq bool, requests []wire.PSN, acks []wire.PSN) *dialogue {
	d := newDialogue()
	for _, psn := range requests {
		d.add(softroce.A, packet(wire.RCSendOnly, first.Add(uint32(psn)), ackReq))
	}
	for _, psn := range acks {
		d.add(softroce.B, packet(wire.RCAck, first.Add(uint32(psn)), false))
	}
	return d
}

func TestDialogue(t *testing.T) {
	reference := exchange(0xfffffe, true, []wire.PSN{0, 1, 2, 3}, []wire.PSN{0, 1, 2, 3})
	whole := []wire.PSN{0, 1, 2, 3}
	for _, c := range []struct {
		name string
		ours *dialogue
		who  softroce.End
		want []string
	}{
		{"the same", exchange(77, true, whole, whole), softroce.A, nil},
		{"repetitions", exchange(77, true, []wire.PSN{0, 1, 0, 1, 2, 3}, whole), softroce.A, nil},
		{"a field", exchange(77, false, whole, whole), softroce.A, []string{"BTH.AckReq"}},
		{"a packet less", exchange(77, true, whole[:3], whole), softroce.A, []string{
			"requests, packet 4",
		}},
		{"a gap", exchange(77, true, []wire.PSN{0, 2, 3}, whole), softroce.A, []string{
			"requests, packet 2",
		}},
		{"fewer acknowledgements", exchange(5, true, whole, []wire.PSN{1, 3}), softroce.B, []string{
			coalescedAcks,
		}},
		{"the last one is missing", exchange(5, true, whole, whole[:3]), softroce.B, []string{
			"answers, packet 4",
		}},
	} {
		var got []string
		for _, d := range c.ours.compare(reference, c.who) {
			got = append(got, d.What)
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// parting makes a dialogue of which A's messages end in some way.
func parting(t *testing.T, steps ...string) *dialogue {
	t.Helper()
	d := newDialogue()
	s := stream{from: softroce.A, kind: messages}
	for _, key := range steps {
		d.steps[s] = append(d.steps[s], step{key: key, fields: map[string]string{"x": key}})
	}
	return d
}

func TestWhoHangsUp(t *testing.T) {
	for _, c := range []struct {
		reference, ours []string
		want            string
	}{
		{[]string{"REQ", "RTU", "DREQ"}, []string{"REQ", "RTU", "DREQ"}, ""},
		{[]string{"REQ", "RTU", "DREQ"}, []string{"REQ", "RTU", "DREP"}, whoHangsUp},
		{[]string{"REQ", "RTU", "DREQ"}, []string{"REQ", "RTU", "DREQ", "DREP"}, whoHangsUp},
		{[]string{"REQ", "RTU", "DREQ"}, []string{"REQ", "RTU"}, "messages, packet 3"},
		{[]string{"REQ", "RTU", "DREQ"}, []string{"REQ", "DREP"}, "messages, packet 2"},
		{[]string{"REQ", "DREQ"}, []string{"REQ", "DREQ", "DREQ"}, "messages, packet 3"},
	} {
		var got []string
		for _, d := range parting(t, c.ours...).compare(parting(t, c.reference...), softroce.A) {
			got = append(got, d.What)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%q with %q: %q, not %q", c.ours, c.reference, got, c.want)
		}
	}
}

// An explanation is of its values and its tool, not of all that a field may hold.
func TestExplained(t *testing.T) {
	known := difference{What: "REQ.RNRRetryCount", Reference: "0", Ours: "7"}
	other := difference{What: "REQ.RNRRetryCount", Reference: "7", Ours: "0"}
	for _, c := range []struct {
		tool string
		list []difference
		want *difference
	}{
		{"ucmatose", nil, nil},
		{"ucmatose", []difference{known}, nil},
		{"rping", []difference{known}, &known},
		{"ucmatose", []difference{known, other}, &other},
	} {
		got := unexplained(Case{Tool: c.tool}, c.list)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v of %v is unexplained, not %v", c.tool, got, c.list, c.want)
		}
	}
}
