package payload

import (
	"fmt"
	"slices"

	"xroce/bench/softroce"
	"xroce/cmd/perfdump"
	"xroce/roce/wire"
)

// gsiQPN is the QP of the connection manager, whose messages are none of a test.
const gsiQPN = 1

// maxFaults is how many faults of a case are told.
const maxFaults = 5

// faults are what is wrong, the first of it.
type faults []string

func (f *faults) add(format string, args ...any) {
	if len(*f) < maxFaults {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// A Payload hears all packets of a case and remembers what they said about data. The
// zero Payload has heard nothing. Not for concurrent use.
type Payload struct {
	lines  map[line]*talk
	faults faults
}

// Add hears a packet, which the cable carries in a frame. Lost ones are heard, too:
// they were sent.
func (p *Payload) Add(from softroce.End, frame []byte, packet *wire.Packet, lost bool) {
	spec := packet.Spec
	request := spec.Is(wire.ClassRequest)
	answer := spec.Is(wire.ClassResponse) && (spec.Is(wire.ClassRead) || spec.Is(wire.ClassAtomic))
	if packet.BTH.DestQP == gsiQPN || !request && !answer {
		return
	}
	if p.lines == nil {
		p.lines = map[line]*talk{}
	}
	l := line{from, packet.BTH.DestQP}
	t := p.lines[l]
	if t == nil {
		t = &talk{requests: map[wire.PSN]*heard{}, answers: map[wire.PSN]*heard{}}
		p.lines[l] = t
	}
	said := t.answers
	psn := packet.BTH.PSN
	if request {
		said = t.requests
		if !t.begun {
			t.begun, t.first = true, psn
		}
		t.end = max(t.end, psn.Diff(t.first)+1)
	}
	h := newHeard(frame, packet)
	if before := said[psn]; before != nil {
		if what := before.differs(h); what != "" {
			p.faults.add("PSN 0x%06x to QP 0x%06x was sent again, but %s", psn, l.qpn, what)
		}
		h = before
	}
	h.arrived = h.arrived || !lost
	said[psn] = h
}

// Compare tells how many bytes of payload were compared with the memory of xroce, and
// what is wrong with them. It changes nothing: another memory may be compared next.
func (p *Payload) Compare(d *perfdump.Dump) (compared int, wrong []string) {
	m, found := newModel(d), slices.Clone(p.faults)
	for i := range d.QPs {
		if err := m.queuePair(p.lines, &d.QPs[i]); err != nil {
			found.add("QP 0x%06x: %v", d.QPs[i].QPN, err)
		}
	}
	if len(found) == 0 {
		if err := m.end(); err != nil {
			found.add("%v", err)
		}
	}
	if m.compared == 0 {
		found.add("no payload was compared")
	}
	return m.compared, found
}
