package dialogue

import (
	"reflect"
	"slices"
	"testing"

	"xroce/bench/interop/internal/recordtest"
	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// turn alters one bit of an extended header.
func turn(h wire.Header, offset int, bit byte) alteration {
	return func(p *wire.Packet, frame []byte) {
		frame[len(frame)-p.TransportLen()+int(p.Spec.Offsets[h])+offset] ^= bit
	}
}

// An altering changes one field in the packets of a record that have it.
type altering struct {
	field  string // as a comparison calls it
	record string
	has    wire.HeaderSet
	alter  alteration
}

// change is an alteration of what was decoded.
func change(f func(p *wire.Packet)) alteration {
	return func(p *wire.Packet, _ []byte) { f(p) }
}

// alterations are one of each field of the headers.
var alterations = []altering{
	{"IP.Src", "app_rping_v4", 0, change(func(p *wire.Packet) { p.Src[15]++ })},
	{"IP.Dst", "app_rping_v4", 0, change(func(p *wire.Packet) { p.Dst[15]++ })},
	{"IP.TClass", "app_rping_v4", 0, change(func(p *wire.Packet) { p.TClass ^= 4 })},
	{"IP.HopLimit", "app_rping_v4", 0, change(func(p *wire.Packet) { p.HopLimit-- })},
	{"IP.FlowLabel", "cm_connect_v6", 0, change(func(p *wire.Packet) { p.FlowLabel ^= 1 })},
	{"IP.Tagged", "app_rping_v4", 0, change(func(p *wire.Packet) { p.Tags[0].TPID = 1 })},
	{"UDP.SourcePort range", "app_rping_v4", 0, change(func(p *wire.Packet) { p.SrcPort = 1 })},
	{"BTH.SE", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.SE = !p.BTH.SE })},
	{"BTH.M", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.M = !p.BTH.M })},
	{"BTH.PadCnt", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.PadCnt ^= 1 })},
	{"BTH.TVer", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.TVer = 1 })},
	{"BTH.PKey", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.PKey = 0x7fff })},
	{"BTH.FECN", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.FECN = true })},
	{"BTH.BECN", "app_rping_v4", 0, change(func(p *wire.Packet) { p.BTH.BECN = true })},
	{"BTH.AckReq", "app_rping_v4", wire.HasAETH, change(func(p *wire.Packet) {
		p.BTH.AckReq = !p.BTH.AckReq
	})},
	{"BTH.AckReq", "app_rping_v4", wire.HasRETH, change(func(p *wire.Packet) {
		p.BTH.AckReq = !p.BTH.AckReq
	})},
	{ackReqOfQP1, "app_rping_v4", wire.HasDETH, change(func(p *wire.Packet) {
		p.BTH.AckReq = !p.BTH.AckReq
	})},
	{"BTH.DestQP", "app_rping_v4", wire.HasAETH, change(func(p *wire.Packet) {
		p.BTH.DestQP += 99
	})},
	{"BTH.PSN", "app_rping_v4", wire.HasDETH, change(func(p *wire.Packet) { p.BTH.PSN += 7 })},
	{"payload length", "rc_write_v4", wire.HasRETH, change(func(p *wire.Packet) {
		p.Payload = append([]byte{0}, p.Payload...)
	})},
	{"RETH.DMALen", "app_rping_v4", wire.HasRETH, turn(wire.HeaderRETH, 15, 1)},
	{"AETH.Syndrome", "app_rping_v4", wire.HasAETH, turn(wire.HeaderAETH, 0, 0x60)},
	{"AETH.Credits", "app_rping_v4", wire.HasAETH, turn(wire.HeaderAETH, 0, 1)},
	{"AETH.MSN", "app_rping_v4", wire.HasAETH, turn(wire.HeaderAETH, 3, 1)},
	{"AtomicETH.SwapAdd", "rc_atomic_v4", wire.HasAtomicETH, turn(wire.HeaderAtomicETH, 19, 1)},
	{"AtomicETH.Compare", "rc_atomic_v4", wire.HasAtomicETH, turn(wire.HeaderAtomicETH, 27, 1)},
	{"DETH.QKey", "app_udaddy_v4", wire.HasDETH, turn(wire.HeaderDETH, 3, 1)},
	{"DETH.SrcQP", "cm_connect_v4", wire.HasDETH, turn(wire.HeaderDETH, 6, 1)},
	{"ImmDt.Data", "app_udaddy_v4", wire.HasImmDt, turn(wire.HeaderImmDt, 3, 1)},
}

// TestEveryHeaderIsCompared: a field that is altered in one packet is told by name.
func TestEveryHeaderIsCompared(t *testing.T) {
	for _, a := range alterations {
		list := recordtest.Read(t, a.record)
		reference := overheard(t, list, -1, nil)
		n := 0
		for at, s := range list {
			if p := recordtest.Decode(t, s.Frame); !p.Spec.Has(a.has) {
				continue
			}
			n++
			names := differ(overheard(t, list, at, a.alter), reference)
			if !slices.Contains(names, a.field) {
				t.Errorf("%s, packet %d: %s is not told, but %q", a.record, at, a.field, names)
			}
		}
		if n == 0 {
			t.Errorf("%s has no packet with %s", a.record, a.field)
		}
	}
}

// headerFields are all names of fields of the headers of data.
func headerFields() (names []string) {
	for _, h := range []struct {
		name  string
		value any
	}{
		{"IP", ipFields{}},
		{"UDP", udpFields{}},
		{"BTH", wire.BTH{}},
		{"RETH", wire.RETH{}},
		{"AtomicETH", wire.AtomicETH{}},
		{"AtomicAckETH", wire.AtomicAckETH{}},
		{"AETH", wire.AETH{}},
		{"DETH", wire.DETH{}},
		{"ImmDt", wire.ImmDt{}},
		{"IETH", wire.IETH{}},
	} {
		for _, f := range flatten(h.name, reflect.ValueOf(h.value)) {
			names = append(names, f.name)
		}
	}
	return names
}

// Each field of a header is altered above, or its rule says why not.
func TestEveryHeaderHasAnAlteration(t *testing.T) {
	for _, name := range headerFields() {
		r, special := ruleOf[name]
		altered := slices.ContainsFunc(alterations, func(a altering) bool {
			return a.field == name
		})
		if !altered && (!special || r.do != leftOut && r.do != inKey) {
			t.Errorf("nothing alters %s", name)
		}
	}
}

// The packets themselves: one that is missing, one more, another one.
func TestEveryPacketIsCompared(t *testing.T) {
	for _, record := range []string{"app_rping_v4", "app_udaddy_v4", "cm_connect_v6"} {
		list := recordtest.Read(t, record)
		reference := overheard(t, list, -1, nil)
		for at := range list {
			without := slices.Delete(slices.Clone(list), at, at+1)
			if differ(overheard(t, without, -1, nil), reference) == nil {
				t.Errorf("%s: packet %d is missed by nobody", record, at)
			}
			if differ(reference, overheard(t, without, -1, nil)) == nil {
				t.Errorf("%s: nobody wonders about packet %d", record, at)
			}
			again := slices.Insert(slices.Clone(list), at+1, list[at])
			if p := recordtest.Decode(t, list[at].Frame); p.BTH.DestQP != gsiQPN {
				// Those that are repeated are no difference.
				if names := differ(overheard(t, again, -1, nil), reference); names != nil {
					t.Errorf("%s: packet %d said twice: %q", record, at, names)
				}
			}
		}
	}
}

// Rules are of fields that there are.
func TestRulesHaveFields(t *testing.T) {
	fields := append(headerFields(), firstPSN)
	for _, name := range conversations {
		for _, s := range recordtest.Read(t, name) {
			p := recordtest.Decode(t, s.Frame)
			if p.BTH.DestQP == gsiQPN {
				for f := range rawFields(t, p.Payload) {
					fields = append(fields, f)
				}
			}
		}
	}
	for _, r := range rules {
		if !slices.Contains(fields, r.field) {
			t.Errorf("there is no field %s", r.field)
		}
		if r.why == "" {
			t.Errorf("nobody knows why %s is not compared", r.field)
		}
	}
	if len(ruleOf) != len(rules) {
		t.Error("a field has two rules")
	}
}

// TestEndsAreCompared: what an end says is told of that end alone.
func TestEndsAreCompared(t *testing.T) {
	list := recordtest.Read(t, "app_rping_v4")
	reference := overheard(t, list, -1, nil)
	for at, s := range list {
		d := overheard(t, list, at, func(p *wire.Packet, _ []byte) { p.HopLimit = 1 })
		for _, who := range []softroce.End{softroce.A, softroce.B} {
			if told := d.Compare(reference, who) != nil; told != (who == s.From) {
				t.Errorf("packet %d of %d: told of %d: %t", at, s.From, who, told)
			}
		}
	}
}
