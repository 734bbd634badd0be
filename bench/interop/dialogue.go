package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// A step is a packet of a dialogue. What is random in each run, QP numbers, keys,
// addresses and first PSNs, is not in it.
type step struct {
	// key is what the protocol fixes: opcode, PSN from the first on, lengths.
	key string
	// fields are those that the protocol leaves to the sender, by name.
	fields map[string]string
}

// A stream is which packets of a dialogue belong together: within one their order
// is fixed, between two of them it depends on time.
type stream struct {
	from   softroce.End
	answer bool // responses and acknowledgements
}

// streams are all of them, in the order in which differences are told.
var streams = []stream{
	{softroce.A, false}, {softroce.B, true}, {softroce.B, false}, {softroce.A, true},
}

// String names a stream.
func (s stream) String() string {
	what := "requests"
	if s.answer {
		what = "answers"
	}
	return what
}

// A dialogue is what two ends said to each other, without repetitions: those
// depend on time as well.
type dialogue struct {
	first map[softroce.End]wire.PSN // of the requests of an end
	next  map[stream]wire.PSN
	steps map[stream][]step
}

func newDialogue() *dialogue {
	return &dialogue{
		first: map[softroce.End]wire.PSN{}, next: map[stream]wire.PSN{},
		steps: map[stream][]step{},
	}
}

// connectionManager is the QP whose packets are no part of a dialogue: their
// order is that of two programs, and their PSNs go on from one to the next.
const connectionManager = 1

// add takes the next packet.
func (d *dialogue) add(from softroce.End, p *wire.Packet) {
	if p.BTH.DestQP == connectionManager {
		return
	}
	s := stream{from: from, answer: !p.Spec.Is(wire.ClassRequest)}
	asker := from
	if s.answer {
		asker = softroce.B - from
	}
	psn := p.BTH.PSN
	if _, begun := d.first[asker]; !begun {
		d.first[asker] = psn
	}
	if next, begun := d.next[s]; begun && psn.Before(next) {
		return // a repetition
	}
	d.next[s] = psn.Add(1)
	d.steps[s] = append(d.steps[s], newStep(p, psn.Diff(d.first[asker])))
}

// newStep takes from a packet what can be compared.
func newStep(p *wire.Packet, psn int32) step {
	key := fmt.Sprintf("%s psn+%d payload=%d pad=%d", p.BTH.Opcode, psn, p.PayloadLen(),
		p.BTH.PadCnt)
	s := step{fields: map[string]string{
		"BTH.AckReq":     fmt.Sprint(p.BTH.AckReq),
		"BTH.SE":         fmt.Sprint(p.BTH.SE),
		"BTH.MigReq":     fmt.Sprint(p.BTH.M),
		"BTH.TVer":       fmt.Sprint(p.BTH.TVer),
		"BTH.P_Key":      fmt.Sprintf("0x%04x", p.BTH.PKey),
		"BTH.FECN/BECN":  fmt.Sprint(p.BTH.FECN, p.BTH.BECN),
		"IP.HopLimit":    fmt.Sprint(p.HopLimit),
		"IP.TClass":      fmt.Sprint(p.TClass),
		"IP.FlowLabel":   fmt.Sprint(p.FlowLabel),
		"UDP.SourcePort": fmt.Sprintf("ephemeral %t", p.SrcPort >= 0xc000),
	}}
	if p.Spec.Has(wire.HasRETH) {
		key += fmt.Sprintf(" dmalen=%d", p.RETH().DMALen)
	}
	if p.Spec.Has(wire.HasAtomicETH) {
		a := p.AtomicETH()
		s.fields["AtomicETH.SwapAdd"] = fmt.Sprint(a.SwapAdd)
		s.fields["AtomicETH.Compare"] = fmt.Sprint(a.Compare)
	}
	if p.Spec.Has(wire.HasDETH) {
		key += fmt.Sprintf(" qkey=0x%x", p.DETH().QKey)
	}
	if p.Spec.Has(wire.HasAETH) {
		a := p.AETH()
		s.fields["AETH.Syndrome"] = a.Syndrome.String()
		s.fields["AETH.MSN"] = fmt.Sprint(a.MSN)
	}
	s.key = key
	return s
}

// A difference is one between two dialogues that should be the same.
type difference struct {
	What      string `json:"what"`      // which field, or what of a stream
	Reference string `json:"reference"` // what Soft-RoCE does, an example
	Ours      string `json:"ours"`      // what xroce does there
	Times     int    `json:"times"`
}

// compare tells how what an end said in a dialogue differs from what it said in
// the reference.
func (d *dialogue) compare(reference *dialogue, who softroce.End) []difference {
	var list []difference
	for _, s := range streams {
		if s.from != who {
			continue
		}
		want, got := reference.steps[s], d.steps[s]
		if s.answer {
			acks := coalesced(want, got)
			if acks != nil {
				list = append(list, *acks)
				continue // what is not there has no fields
			}
		}
		list = append(list, compareKeys(s, want, got)...)
		list = append(list, compareFields(want, got)...)
	}
	return list
}

// compareKeys tells where two streams have different packets.
func compareKeys(s stream, want, got []step) []difference {
	at := func(list []step, i int) string {
		if i < len(list) {
			return list[i].key
		}
		return "nothing"
	}
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			return []difference{{
				What: fmt.Sprintf("%s, packet %d", s, i+1), Reference: w, Ours: g, Times: 1,
			}}
		}
	}
	return nil
}

// compareFields tells which fields of packets with the same key differ.
func compareFields(want, got []step) []difference {
	found := map[string]*difference{}
	for i := range min(len(want), len(got)) {
		if want[i].key != got[i].key {
			break
		}
		for name, value := range want[i].fields {
			if value == got[i].fields[name] {
				continue
			}
			if found[name] == nil {
				found[name] = &difference{
					What: name, Reference: value, Ours: got[i].fields[name],
				}
			}
			found[name].Times++
		}
	}
	var list []difference
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[name])
	}
	return list
}

// coalescedAcks is the difference that fewer acknowledgements are.
const coalescedAcks = "number of acknowledgements"

// coalesced tells whether one stream of answers has fewer acknowledgements than
// the other and is the same otherwise: an acknowledgement covers all before it.
// It returns nil when both have the same number, or more than that differs.
func coalesced(want, got []step) *difference {
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
	return &difference{
		What: coalescedAcks, Reference: fmt.Sprint(len(want)), Ours: fmt.Sprint(len(got)), Times: 1,
	}
}
