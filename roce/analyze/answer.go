package analyze

import (
	"xroce/roce/dissect"
	"xroce/roce/wire"
)

// answer looks at an answer, which is to a request of the other direction.
func (g *flow) answer(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	psn := w.BTH.PSN
	if g.peer == nil {
		pair(a.partner(g, psn), g)
	}
	if w.Spec.Is(wire.ClassRead) {
		g.read(a, p)
	}
	if !w.Spec.Has(wire.HasAETH) {
		return
	}
	g.acks(a, psn, w)
}

// rider looks at an acknowledge that rides on a request of its sender.
func (g *flow) rider(a *Analyzer, p *dissect.Packet) {
	psn := p.RoCE.APSN().PSN
	if g.peer == nil {
		pair(a.partner(g, psn), g)
	}
	g.acks(a, psn, &p.RoCE)
}

// acks looks at the AETH of a packet, which is for a PSN.
func (g *flow) acks(a *Analyzer, psn wire.PSN, w *wire.Packet) {
	f, h := g.peer, w.AETH()
	g.tell(a, w.BTH.Opcode, psn, h)
	if f == nil || !f.begun {
		return
	}
	if !h.Syndrome.IsRNRNAK() {
		f.lastAgain = 0
	}
	if !psn.Before(f.nextMax) && a.report.Dropped == 0 && f.missing.Count == 0 {
		a.breaks(AckOfSent)
	}
	switch h.Syndrome.Kind() {
	case wire.KindACK:
		if w.Spec.Is(wire.ClassRequest) {
			f.acknowledged(a, psn, wire.RCAck.Spec())
			return
		}
		f.acknowledged(a, psn, w.Spec)
	case wire.KindRNRNAK:
		f.pending, f.hasPending = RNR, true
		f.points.add(a.now, psn.Diff(f.first), Naked)
	case wire.KindNAK:
		f.refused(a, w.BTH.Opcode, psn, h.Syndrome)
	}
}

// tell notes what an answer says.
func (g *flow) tell(a *Analyzer, op wire.Opcode, psn wire.PSN, h wire.AETH) {
	t := &g.answered
	forward := !t.begun || !psn.Before(t.psn)
	if t.begun && psn.After(t.psn) && wire.PSN(h.MSN).Before(wire.PSN(t.msn)) &&
		h.Syndrome.IsACK() {
		a.breaks(MSNForward)
	}
	if t.begun && psn == t.psn && op.Spec().Is(wire.ClassAck) && h.MSN == t.msn {
		t.duplicates++
	}
	if forward {
		t.begun, t.psn, t.msn = true, psn, h.MSN
	}
	switch h.Syndrome.Kind() {
	case wire.KindACK:
		t.acks++
		if n, ok := wire.Credits(h.Syndrome.Code()); ok {
			if !t.credits || n < t.fewest {
				t.fewest = n
			}
			t.credits, t.last = true, n
		}
	case wire.KindRNRNAK:
		t.rnrs.add(a.number)
	case wire.KindNAK:
		if op == wire.SelectiveAck {
			t.selective++
			return
		}
		t.naks[h.Syndrome.NAK()-wire.NAKPSNSequenceError].add(a.number)
	}
}

// acknowledged takes off the window what an answer acknowledges.
func (f *flow) acknowledged(a *Analyzer, psn wire.PSN, s *wire.OpcodeSpec) {
	f.points.add(a.now, psn.Diff(f.first), Acked)
	if f.timing && !psn.Before(f.timedPSN) {
		f.rtt.Add(a.now - f.timedAt)
		f.timing = false
	}
	if s.Is(wire.ClassRead) && s.Class&wire.ClassLast == 0 {
		return
	}
	answer := !s.Is(wire.ClassAck) || s.Is(wire.ClassAtomic)
	if answer && s.Is(wire.ClassRead) {
		f.resolve(psn)
	}
	f.window.acknowledge(psn, answer, func(o *operation) {
		if work := f.work[o.kind]; work != nil {
			work.Latency.Add(a.now - o.at)
		}
	})
}

// resolve corrects where the answer to a READ ends, which was not known without the path MTU: it
// is its last packet that came.
func (f *flow) resolve(psn wire.PSN) {
	for i := range f.window.list {
		o := &f.window.list[i]
		next := f.nextMax
		if i+1 < len(f.window.list) {
			next = f.window.list[i+1].first
		}
		if o.kind == Read && !psn.Before(o.first) && psn.Before(next) {
			o.last = psn
			if i+1 == len(f.window.list) && f.next != f.nextMax {
				f.next, f.nextMax = psn.Add(1), psn.Add(1)
			}
			return
		}
	}
}

// refused notes what a negative acknowledgement asks for.
func (f *flow) refused(a *Analyzer, op wire.Opcode, psn wire.PSN, s wire.Syndrome) {
	f.points.add(a.now, psn.Diff(f.first), Naked)
	if s.NAK() != wire.NAKPSNSequenceError {
		return
	}
	// Behind a packet that found no receive, those that follow it are out of sequence.
	if !f.hasPending || f.pending != RNR {
		f.pending, f.hasPending = NAK, true
		if op == wire.SelectiveAck {
			f.pending = Selective
		}
	}
	for i := range f.gaps {
		if !psn.Before(f.gaps[i].first) && !psn.After(f.gaps[i].last) {
			f.gaps[i].refused = true
		}
	}
	// All before it has come.
	f.window.acknowledge(psn.Sub(1), false, func(o *operation) {
		if work := f.work[o.kind]; work != nil {
			work.Latency.Add(a.now - o.at)
		}
	})
}

// read looks at a packet of the answer to a READ: whether it goes on where the last one stood.
func (g *flow) read(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	s, psn := w.Spec, w.BTH.PSN
	g.new.add(a.now, w.PayloadLen())
	inside := s.Class&wire.ClassFirst == 0
	if inside && g.reading && psn != g.fromAnswer {
		if psn.After(g.fromAnswer) {
			g.answered.lost.add(a.number)
			if f := g.peer; f != nil {
				f.pending, f.hasPending = LostAnswer, true
			}
		}
	}
	g.reading, g.fromAnswer = s.Class&wire.ClassLast == 0, psn.Add(1)
}
