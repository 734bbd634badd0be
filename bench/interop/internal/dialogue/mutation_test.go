package dialogue

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xroce/bench/interop/internal/recordtest"
	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// An alteration changes a packet, which has a frame of its own.
type alteration func(p *wire.Packet, frame []byte)

// overheard is the dialogue of a record. change, if any, alters packet number at.
func overheard(t *testing.T, list []recordtest.Packet, at int, change alteration) *Dialogue {
	t.Helper()
	d := New()
	for i, s := range list {
		if i != at {
			d.Add(s.From, recordtest.Decode(t, s.Frame))
			continue
		}
		frame := slices.Clone(s.Frame)
		p := recordtest.Decode(t, frame)
		change(p, frame)
		d.Add(s.From, p)
	}
	return d
}

// differ are the names of the differences of an altered record, of either end.
func differ(altered, reference *Dialogue) (names []string) {
	for _, who := range []softroce.End{softroce.A, softroce.B} {
		for _, d := range altered.Compare(reference, who) {
			names = append(names, d.What)
		}
	}
	return names
}

// conversations are records with all messages of the connection manager, all
// both families. In the first, data go both ways.
var conversations = []string{
	"app_rping_v4", "cm_connect_v4", "cm_connect_v6", "cm_late_accept_v4", "cm_reject_v4",
	"cm_no_listener_v4", "app_udaddy_v4", "cm_sidr_v4", "cm_sidr_v6", "cm_sidr_reject_v4",
}

// A record compared with itself has no difference, and is not empty.
func TestRecordIsAsItself(t *testing.T) {
	for _, name := range append(conversations, "rc_atomic_v4", "rc_read_v6_mtu4096", "uc_send_v4") {
		list := recordtest.Read(t, name)
		a, b := overheard(t, list, -1, nil), overheard(t, list, -1, nil)
		if len(a.steps) == 0 {
			t.Errorf("%s: nothing was said", name)
		}
		if names := differ(a, b); names != nil {
			t.Errorf("%s differs from itself: %q", name, names)
		}
	}
}

// rawFields are all fields of a message as they are on the wire, by the names that
// a comparison uses.
func rawFields(t *testing.T, mad []byte) map[string]string {
	t.Helper()
	h, err := cm.ParseHeader(mad)
	if err != nil {
		t.Fatal(err)
	}
	m := parse(h.Attribute, mad)
	fields := map[string]string{}
	if m == nil {
		return fields
	}
	name := h.Attribute.String()
	r := reader{book: &book{labels: map[uint32]bool{}}, fields: map[string]string{}}
	fields[name+" reserved"] = reserved(h, m, mad)
	var private []byte
	var service cm.ServiceID
	switch m := m.(type) {
	case *cm.REQ:
		private, service = m.Private[:], m.ServiceID
	case *cm.SIDRREQ:
		private, service = m.Private[:], m.ServiceID
	}
	if private != nil && service.IP() {
		for i, f := range []string{"Versions", "SrcPort", "Src", "Dst"} {
			at := []int{0, 2, 4, 20, 36}
			fields[name+".IP."+f] = string(private[at[i]:at[i+1]])
		}
		r.private(name, service, private)
	}
	for name, v := range map[string]any{"MAD": h, name: m} {
		for _, f := range flatten(name, reflect.ValueOf(v)) {
			fields[f.name] = text(f.value)
		}
	}
	return fields
}

// changed are the names of the fields in which two messages differ.
func changed(a, b map[string]string) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for name := range all {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}

// TestEveryBitOfAMessageIsCompared: each bit of each message of the connection
// manager, altered alone, is told by the name of its field. Values that a later
// message repeats may be told there as well, or in place of it: one for an end
// that has not said anything is no part of the dialogue, and is missing.
func TestEveryBitOfAMessageIsCompared(t *testing.T) {
	met := map[string]bool{} // fields, by name
	seen := map[cm.Attribute]bool{}
	for _, name := range conversations {
		list := begun(t, recordtest.Read(t, name))
		reference := overheard(t, list, -1, nil)
		for at := range list {
			p := recordtest.Decode(t, list[at].Frame)
			if p.BTH.DestQP != gsiQPN {
				continue
			}
			mad := p.Payload
			h, _ := cm.ParseHeader(mad)
			// One of each message is enough, the one with data behind it; over IPv6
			// the private data, where the addresses are.
			first, free := 0, private(h.Attribute)
			if seen[h.Attribute] {
				if !strings.HasSuffix(name, "v6") {
					continue
				}
				first = free * 8
			}
			seen[h.Attribute] = true
			before := rawFields(t, mad)
			for bit := first; bit < len(mad)*8; bit++ {
				if bit/8 >= free+cm.IPHeaderLen {
					bit = min(bit+10, len(mad)*8-1) // all are alike: one of each byte
				}
				altered := slices.Clone(mad)
				altered[bit/8] ^= 0x80 >> (bit % 8)
				d := overheard(t, list, at, func(p *wire.Packet, _ []byte) { p.Payload = altered })
				names := differ(d, reference)
				wrong := bitProblem(changed(before, rawFields(t, altered)), names)
				if wrong != "" {
					t.Fatalf("%s, packet %d (%s), byte %d bit %d: %s: %q", name, at, h.Attribute,
						bit/8, 7-bit%8, wrong, names)
				}
				for _, n := range names {
					met[n] = true
				}
			}
		}
	}
	for _, a := range []cm.Attribute{
		cm.AttributeREQ, cm.AttributeMRA, cm.AttributeREJ, cm.AttributeREP, cm.AttributeRTU,
		cm.AttributeDREQ, cm.AttributeDREP, cm.AttributeSIDRREQ, cm.AttributeSIDRREP,
	} {
		for _, f := range flatten(a.String(), reflect.ValueOf(parse(a, make([]byte, cm.MADLen)))) {
			if _, special := ruleOf[f.name]; !special && !met[f.name] {
				t.Errorf("no altered bit was told as %s", f.name)
			}
		}
	}
}

// TestRefusalHasAnID: a REJ of an application names the connection that it ends, and
// one of a host on which nobody listens has none.
func TestRefusalHasAnID(t *testing.T) {
	for _, name := range []string{"cm_reject_v4", "cm_no_listener_v4"} {
		list := recordtest.Read(t, name)
		const id = cm.HeaderLen
		d := overheard(t, list, 1, func(p *wire.Packet, _ []byte) {
			if p.Payload[id] == 0 {
				p.Payload[id] = 1
			} else {
				clear(p.Payload[id:][:4])
			}
		})
		names := differ(d, overheard(t, list, -1, nil))
		if !slices.Contains(names, "REJ.LocalCommID") {
			t.Errorf("%s: %q", name, names)
		}
	}
}

// begun is a record without most of its data.
func begun(t *testing.T, list []recordtest.Packet) []recordtest.Packet {
	t.Helper()
	data := 0
	return slices.DeleteFunc(list, func(s recordtest.Packet) bool {
		if recordtest.Decode(t, s.Frame).BTH.DestQP != gsiQPN {
			data++
		}
		return data > 4 && recordtest.Decode(t, s.Frame).BTH.DestQP != gsiQPN
	})
}

// private is where a message has its private data, in bytes from the MAD's begin.
func private(a cm.Attribute) (offset int) {
	m := reflect.ValueOf(parse(a, make([]byte, cm.MADLen))).Elem()
	return cm.MADLen - m.FieldByName("Private").Len()
}

// bitProblem says what is wrong with what a comparison told of an altered field, ""
// for nothing.
func bitProblem(fields, names []string) string {
	if len(fields) == 0 {
		return "the bit is in no field"
	}
	for _, f := range fields {
		r, special := ruleOf[f]
		switch {
		case slices.Contains(names, f):
			return ""
		case special && r.do == leftOut, f == "REJ.LocalCommID":
			// Nobody names the communication ID of who refuses: it is there or not,
			// see TestRefusalHasAnID.
			return ""
		case f == "MAD.Attribute" || special:
			// Another message, or none, or the answer to nobody.
			if slices.ContainsFunc(names, func(n string) bool {
				return strings.HasPrefix(n, "messages, packet") || ruleOf[n].why != ""
			}) {
				return ""
			}
		}
	}
	return strings.Join(fields, ", ") + " was not told"
}
