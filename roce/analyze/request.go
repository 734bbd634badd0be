package analyze

import (
	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/wire"
)

// Times by which causes are told apart.
const (
	// reorderWindow is how late a packet may be to have been overtaken: later, and when the other
	// end has asked for it, it was lost and sent again.
	reorderWindow = 200 * clock.Microsecond
	// quiet is the least time without a packet that is taken for a timeout. Programs time out
	// after 131 microseconds at least (local ACK timeout 5), most after milliseconds.
	quiet = 100 * clock.Microsecond
	// patience is how long after a negative acknowledgement packets come again because of it:
	// later it was lost behind the place of the capture, and they come because of a timeout.
	patience = 10 * clock.Millisecond
)

// request looks at a request.
func (f *flow) request(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	psn := w.BTH.PSN
	if !f.begun {
		f.begun, f.first, f.next, f.nextMax, f.unsure = true, psn, psn, psn, true
	}
	f.settle()
	slot := &f.recent[psn%maxRecent]
	twice := slot.used && slot.psn == psn && slot.id == w.IPID && w.IPID != 0
	slot.psn, slot.id, slot.used = psn, w.IPID, true
	switch {
	case twice:
		f.duplicated.add(a.number)
	case !psn.Before(f.next):
		if psn.After(f.nextMax) {
			f.skipped(a, psn)
		}
		f.forward(a, p)
	case f.late(a, psn):
		f.reordered.add(a.number)
		f.unsure = true
		f.points.add(a.now, psn.Diff(f.first), Sent)
	default:
		f.repeat(a, p)
	}
}

// skipped notes PSNs that did not come.
func (f *flow) skipped(a *Analyzer, psn wire.PSN) {
	f.missing.add(a.number)
	f.unsure, f.left = true, -1
	if len(f.gaps) == maxGaps {
		f.gaps = append(f.gaps[:0], f.gaps[1:]...)
	}
	f.gaps = append(f.gaps, gap{first: f.nextMax, last: psn.Sub(1), at: a.now})
}

// late reports whether a packet was only overtaken: it fills a gap that the other end has not
// asked for, soon.
func (f *flow) late(a *Analyzer, psn wire.PSN) bool {
	for i := range f.gaps {
		g := &f.gaps[i]
		if psn.Before(g.first) || psn.After(g.last) {
			continue
		}
		if g.refused || a.now-g.at > reorderWindow || f.hasPending {
			return false
		}
		if g.first == g.last {
			f.gaps = append(f.gaps[:i], f.gaps[i+1:]...)
		} else if g.first == psn {
			g.first = psn.Add(1)
		}
		return true
	}
	return false
}

// forward looks at a request that is new.
func (f *flow) forward(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	s, psn := w.Spec, w.BTH.PSN
	f.resending, f.lastAgain = false, 0
	f.points.add(a.now, psn.Diff(f.first), Sent)
	f.message(a, p)
	kind := kindOf(s)
	if f.work[kind] == nil {
		f.work[kind] = &Work{}
	}
	work := f.work[kind]
	n := w.PayloadLen()
	last := psn
	f.next, f.nextMax = psn.Add(1), psn.Add(1)
	if kind == Read {
		n = int(w.RETH().DMALen)
		last = f.readTo(psn, uint32(n))
	} else {
		f.new.add(a.now, n)
	}
	work.Bytes += uint64(n)
	if s.Class&wire.ClassFirst != 0 {
		work.Operations++
		o := operation{kind: kind, first: psn, last: last, at: a.now}
		if kind == Read {
			o.asked = uint32(n)
		}
		f.window.push(o)
	}
	if o := f.window.newest(); o != nil && s.Class&wire.ClassLast != 0 {
		o.ended, o.last = true, last
		if s.Service == wire.ServiceUC { // nobody answers
			f.window.list = f.window.list[:0]
		}
	}
	if w.BTH.AckReq && !f.timing && s.Service != wire.ServiceUC {
		f.timing, f.timedPSN, f.timedAt = true, psn, a.now
	}
}

// readTo is the last PSN of the answer to a READ, and moves on what comes next. Without a path MTU
// it may be anything from the largest to the smallest one.
func (f *flow) readTo(psn wire.PSN, n uint32) wire.PSN {
	const smallest, largest = 256, 4096
	packets := func(mtu uint32) uint32 { return max(n/mtu+min(n%mtu, 1), 1) }
	if mtu := f.pathMTU(); mtu > 0 {
		f.next = psn.Add(packets(uint32(mtu)))
		f.nextMax = f.next
		return f.next.Sub(1)
	}
	f.next, f.nextMax = psn.Add(packets(largest)), psn.Add(packets(smallest))
	return f.next.Sub(1)
}

// settle says what the last READ takes as soon as the path MTU is known.
func (f *flow) settle() {
	if f.next == f.nextMax || f.pathMTU() == 0 {
		return
	}
	if o := f.window.newest(); o != nil && o.kind == Read {
		f.next = f.readEnd(o.first, o.asked)
		f.nextMax, o.last = f.next, f.next.Sub(1)
	}
}

// message looks at how a new request goes on with the one before it.
func (f *flow) message(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	s := w.Spec
	first, last := s.Class&wire.ClassFirst != 0, s.Class&wire.ClassLast != 0
	if !f.unsure && first == f.open {
		a.breaks(MessageOrder)
	}
	if first {
		f.unsure, f.left = false, -1
		if s.Is(wire.ClassWrite) && s.Has(wire.HasRETH) {
			f.left = int64(w.RETH().DMALen)
		}
	}
	if f.left >= 0 && s.Is(wire.ClassWrite) {
		f.left -= int64(w.PayloadLen())
		if f.left < 0 || last && f.left != 0 {
			a.breaks(MessageLength)
			f.left = -1
		}
	}
	f.open = !last
}

// repeat looks at a request that was there before.
func (f *flow) repeat(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	psn := w.BTH.PSN
	f.points.add(a.now, psn.Diff(f.first), Again)
	f.again.add(a.now, w.PayloadLen())
	f.timing = false // which of them is acknowledged is not known
	waited := f.since(a.now)
	anew := !f.resending || psn != f.resendNext && waited >= quiet
	f.resending, f.resendNext = true, psn.Add(1)
	if w.Spec.Is(wire.ClassRead) {
		f.resendNext = f.readEnd(psn, w.RETH().DMALen)
	}
	if anew {
		f.pending, f.hasPending = f.why(psn, waited), true
		r := &f.resent[f.pending]
		r.Episodes++
		r.Waited += waited
		r.Longest = max(r.Longest, waited)
		f.lastAgain++
	}
	f.resent[f.pending].Packets.add(a.number)
	if !anew {
		return
	}
	f.hasPending = false
	for i := range f.gaps {
		if !psn.After(f.gaps[i].last) {
			f.gaps = f.gaps[:i] // what is behind it is sent again too
			break
		}
	}
}

// readEnd is the PSN behind the answer to a READ.
func (f *flow) readEnd(psn wire.PSN, n uint32) wire.PSN {
	if mtu := uint32(f.pathMTU()); mtu > 0 {
		return psn.Add(max(n/mtu+min(n%mtu, 1), 1))
	}
	return psn.Add(1)
}

// why is the cause of a packet that comes again after a time without one.
func (f *flow) why(psn wire.PSN, waited clock.Time) Cause {
	switch {
	case f.hasPending && (waited <= patience || f.pending == RNR || f.pending == LostAnswer):
		return f.pending
	case waited >= quiet && psn == f.nextMax.Sub(1) && len(f.window.list) > 1:
		return Probe
	case waited >= quiet:
		return Timeout
	}
	return UnknownWhy
}
