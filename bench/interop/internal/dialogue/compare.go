package dialogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// A Difference is one between two dialogues that should be the same.
type Difference struct {
	What      string `json:"what"`      // which field, or what of a stream
	Reference string `json:"reference"` // what Soft-RoCE does
	Ours      string `json:"ours"`      // what xroce does there
	Times     int    `json:"times"`
}

// Compare tells how what an end said in a dialogue differs from what it said in
// the reference.
func (d *Dialogue) Compare(reference *Dialogue, who softroce.End) []Difference {
	d.mu.Lock()
	defer d.mu.Unlock()
	reference.mu.Lock()
	defer reference.mu.Unlock()
	var list []Difference
	for _, s := range streams(who, d, reference) {
		want, got := reference.steps[s], d.steps[s]
		var excused *Difference
		switch s.kind {
		case answers:
			excused = coalesced(want, got)
		case messages:
			excused = crossed(want, got)
		}
		if excused != nil {
			list = append(list, *excused)
			want, got = common(want, got)
			sortHangUps(want)
			sortHangUps(got)
		}
		list = append(list, compareKeys(s, want, got)...)
		list = append(list, compareFields(want, got)...)
	}
	return list
}

// streams are those of an end in two dialogues, in the order in which differences
// are told.
func streams(who softroce.End, a, b *Dialogue) (list []stream) {
	for _, d := range [...]*Dialogue{a, b} {
		for s := range d.steps {
			if s.from == who && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b stream) int {
		return cmp.Or(cmp.Compare(a.conn, b.conn), cmp.Compare(a.kind, b.kind))
	})
	return list
}

// compareKeys tells where two streams have different packets.
func compareKeys(s stream, want, got []step) []Difference {
	at := func(list []step, i int) string {
		if i < len(list) {
			return list[i].key
		}
		return "nothing"
	}
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			return []Difference{{
				What: fmt.Sprintf("%s, packet %d", s, i+1), Reference: w, Ours: g, Times: 1,
			}}
		}
	}
	return nil
}

// compareFields tells which fields of packets with the same key differ, and how. It
// ends where the keys differ.
func compareFields(want, got []step) []Difference {
	found := map[Difference]int{}
	for i := range min(len(want), len(got)) {
		w, g := want[i], got[i]
		if w.key != g.key {
			break
		}
		names := maps.Clone(w.fields)
		maps.Copy(names, g.fields)
		for name := range names {
			if w.fields[name] != g.fields[name] {
				found[Difference{
					What: name, Reference: w.fields[name], Ours: g.fields[name],
				}]++
			}
		}
	}
	var list []Difference
	for d, times := range found {
		d.Times = times
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Reference, b.Reference),
			cmp.Compare(a.Ours, b.Ours))
	})
	return list
}

// coalescedAcks is the difference that fewer acknowledgements are.
const coalescedAcks = "number of acknowledgements"

// coalesced reports whether one stream of answers has fewer acknowledgements than
// the other and is the same otherwise: an acknowledgement covers all before it.
// It returns nil when both have the same number, or more than that differs.
func coalesced(want, got []step) *Difference {
	fewer, more := got, want
	if len(got) > len(want) {
		fewer, more = want, got
	}
	if len(fewer) == len(more) || len(fewer) == 0 ||
		fewer[len(fewer)-1].key != more[len(more)-1].key {
		return nil
	}
	for _, s := range more {
		if len(fewer) > 0 && s.key == fewer[0].key {
			fewer = fewer[1:]
		} else if !strings.HasPrefix(s.key, wire.RCAck.String()+" ") {
			return nil
		}
	}
	if len(fewer) > 0 {
		return nil
	}
	return &Difference{
		What: coalescedAcks, Reference: fmt.Sprint(len(want)), Ours: fmt.Sprint(len(got)), Times: 1,
	}
}

// whoHangsUp is the difference that the other end hangs up first, or both at once.
const whoHangsUp = "who hangs up"

// crossed reports whether two streams of messages are the same but for a DREQ in place
// of a DREP, or both of them, at the end of each connection. It returns nil when they
// are the same, or more than that differs.
func crossed(want, got []step) *Difference {
	w, g := len(want)-hangUps(want), len(got)-hangUps(got)
	ends, ours := keys(want[w:]), keys(got[g:])
	if ends == ours || keys(want[:w]) != keys(got[:g]) ||
		!slices.Equal(parted(want[w:]), parted(got[g:])) {
		return nil
	}
	return &Difference{What: whoHangsUp, Reference: ends, Ours: ours, Times: 1}
}

// hangUps is how many steps at the end are a DREQ or a DREP.
func hangUps(list []step) (n int) {
	for n < len(list) {
		if _, ends := endOf(list[len(list)-n-1]); !ends {
			break
		}
		n++
	}
	return n
}

// endOf reports whether a step is a DREQ or a DREP, and of which connection.
func endOf(s step) (conn string, ends bool) {
	for _, a := range []cm.Attribute{cm.AttributeDREQ, cm.AttributeDREP} {
		if conn, ends = strings.CutPrefix(s.key, a.String()); ends {
			return conn, true
		}
	}
	return "", false
}

// parted lists the connections that steps end, sorted.
func parted(list []step) (conns []string) {
	for _, s := range list {
		conn, _ := endOf(s)
		conns = append(conns, conn)
	}
	slices.Sort(conns)
	return slices.Compact(conns)
}

// sortHangUps puts the DREQs and DREPs at the end in an order that does not depend on
// time.
func sortHangUps(list []step) {
	slices.SortFunc(list[len(list)-hangUps(list):], func(a, b step) int {
		return cmp.Compare(a.key, b.key)
	})
}

// keys lists the keys of steps.
func keys(list []step) string {
	var all []string
	for _, s := range list {
		all = append(all, s.key)
	}
	return strings.Join(all, ", ")
}

// common are the packets that both of two streams have.
func common(want, got []step) (w, g []step) {
	has := func(list []step) func(step) bool {
		keys := map[string]bool{}
		for _, s := range list {
			keys[s.key] = true
		}
		return func(s step) bool { return !keys[s.key] }
	}
	return slices.DeleteFunc(slices.Clone(want), has(got)),
		slices.DeleteFunc(slices.Clone(got), has(want))
}
