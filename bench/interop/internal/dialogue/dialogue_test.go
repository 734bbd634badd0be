package dialogue

import (
	"strings"
	"testing"

	"xroce/bench/interop/internal/recordtest"
	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// packet makes a packet of a dialogue.
func packet(op wire.Opcode, psn wire.PSN, ackReq bool) *wire.Packet {
	return &wire.Packet{Spec: op.Spec(), BTH: wire.BTH{
		Opcode: op, PSN: psn, PKey: 0xffff, AckReq: ackReq, DestQP: 17,
	}}
}

// exchange makes a dialogue of requests of A from a first PSN, and answers of B.
func exchange(first wire.PSN, ackReq bool, requests []wire.PSN, acks []wire.PSN) *Dialogue {
	d := New()
	for _, psn := range requests {
		d.Add(softroce.A, packet(wire.RCSendOnly, first.Add(uint32(psn)), ackReq))
	}
	for _, psn := range acks {
		d.Add(softroce.B, packet(wire.RCAck, first.Add(uint32(psn)), false))
	}
	return d
}

func TestDialogue(t *testing.T) {
	reference := exchange(0xfffffe, true, []wire.PSN{0, 1, 2, 3}, []wire.PSN{0, 1, 2, 3})
	whole := []wire.PSN{0, 1, 2, 3}
	for _, c := range []struct {
		name string
		ours *Dialogue
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
		for _, d := range c.ours.Compare(reference, c.who) {
			got = append(got, d.What)
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// parting makes a dialogue of which A's messages end in some way.
func parting(t *testing.T, steps ...string) *Dialogue {
	t.Helper()
	d := New()
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
		{[]string{"REQ", "RTU"}, []string{"REQ", "RTU", "DREP"}, "messages, packet 3"},
		{
			[]string{"REP", "DREP", "DREQ of connection 2"},
			[]string{"REP", "DREP of connection 2", "DREQ", "DREP"},
			whoHangsUp,
		},
		{
			[]string{"REP", "DREP", "DREQ of connection 2"},
			[]string{"REP", "DREP", "DREQ"},
			"messages, packet 3",
		},
	} {
		var got []string
		for _, d := range parting(t, c.ours...).Compare(parting(t, c.reference...), softroce.A) {
			got = append(got, d.What)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%q with %q: %q, not %q", c.ours, c.reference, got, c.want)
		}
	}
}

// An explanation is of its values and its tool, not of all that a field may hold.
func TestExplained(t *testing.T) {
	known := Difference{What: "REQ.RNRRetryCount", Reference: "0", Ours: "7"}
	other := Difference{What: "REQ.RNRRetryCount", Reference: "7", Ours: "0"}
	for _, c := range []struct {
		tool string
		list []Difference
		want *Difference
	}{
		{"ucmatose", nil, nil},
		{"ucmatose", []Difference{known}, nil},
		{"rping", []Difference{known}, &known},
		{"ucmatose", []Difference{known, other}, &other},
	} {
		got := Unexplained(c.tool, c.list)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v of %v is unexplained, not %v", c.tool, got, c.list, c.want)
		}
	}
}

// mad makes a packet of a message of the connection manager that is like another one.
func mad(p *wire.Packet, psn wire.PSN, m parsed) *wire.Packet {
	made := *p
	made.BTH.PSN, made.Payload = psn, make([]byte, cm.MADLen)
	m.Put(made.Payload, 77)
	return &made
}

// TestTriesAgain: a REQ that found nobody and is sent anew is one, unless it was
// refused for another reason, or goes somewhere else.
func TestTriesAgain(t *testing.T) {
	list := recordtest.Read(t, "app_rping_v4")
	to, from := recordtest.Decode(t, list[0].Frame), recordtest.Decode(t, list[1].Frame)
	reference := overheard(t, list, -1, nil)
	for _, c := range []struct {
		reason  cm.Reason
		service cm.ServiceID
		want    bool
	}{
		{cm.ReasonInvalidServiceID, 0, true},
		{cm.ReasonConsumer, 0, false},
		{cm.ReasonInvalidServiceID, 1, false},
	} {
		r, err := cm.ParseREQ(to.Payload)
		if err != nil {
			t.Fatal(err)
		}
		r.LocalCommID++
		r.ServiceID += c.service
		d := New()
		d.Add(softroce.A, mad(to, to.BTH.PSN.Sub(1), &r))
		d.Add(softroce.B, mad(from, from.BTH.PSN.Sub(1), &cm.REJ{
			RemoteCommID: r.LocalCommID, Reason: c.reason,
		}))
		for _, s := range list {
			d.Add(s.From, recordtest.Decode(t, s.Frame))
		}
		if names := keyDifferences(d, reference); (names == nil) != c.want {
			t.Errorf("%s, service ID + %d: %q", c.reason, c.service, names)
		}
	}
}

// keyDifferences are those about which packets there are, of either end.
func keyDifferences(d, reference *Dialogue) (names []string) {
	for _, name := range differ(d, reference) {
		if strings.Contains(name, "packet") {
			names = append(names, name)
		}
	}
	return names
}
