package analyze

import (
	"encoding/binary"
	"net/netip"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/dissect"
	"xroce/roce/wire"
)

// Bounds of what an Analyzer keeps.
const (
	// MaxFlows is how many directions of connections are followed, the first ones of a capture.
	MaxFlows = 2048

	maxRequests = 1024 // of the connection manager that wait for their reply
	maxBefore   = 64   // packets before the first one of a direction that may have been lost
	maxEarly    = 64   // directions without a partner that an answer is compared with
)

// A place is a queue pair of a host.
type place struct {
	host wire.GID
	qpn  uint32
}

// A route is a direction: from a host to a queue pair.
type route struct {
	from wire.GID
	to   place
}

// A request is a REQ, by who sent it and its number.
type request struct {
	host wire.GID
	comm uint32
}

// A message is one of the connection manager, which comes again with the same number.
type message struct {
	host      wire.GID
	tid       uint64
	attribute cm.Attribute
}

// Directions that are found without a look into the map.
const (
	recentBits  = 6
	recentFlows = 1 << recentBits
)

// recentOf is the place in recent of what goes to a queue pair. The numbers of queue pairs often
// differ in few bits, which the product spreads.
func recentOf(to *wire.GID, qpn uint32) uint32 {
	return (binary.LittleEndian.Uint32(to[12:]) ^ qpn) * 0x9e3779b1 >> (32 - recentBits)
}

// An Analyzer looks at the packets of a capture. The zero value is not ready; New makes one.
type Analyzer struct {
	flows    map[route]*flow
	order    []*flow
	recent   [recentFlows]*flow // of flows, by recentOf: most packets find theirs here
	requests map[request]place
	messages map[message]bool
	report   Report
	broken   [numClauses]Numbers

	number int        // of the packet that is looked at
	now    clock.Time // since the first packet
	start  clock.Time
	begun  bool
}

// New returns an Analyzer.
func New() *Analyzer {
	return &Analyzer{
		flows: map[route]*flow{}, requests: map[request]place{}, messages: map[message]bool{},
	}
}

// Add looks at the next packet: its number in the capture, when it was there, and what is in it.
// Nothing of p is kept. dropped is how many packets the capture says that it lost before it.
func (a *Analyzer) Add(number int, at clock.Time, dropped uint64, p *dissect.Packet) {
	if !a.begun {
		a.begun, a.start = true, at
	}
	a.number, a.now = number, max(at-a.start, 0)
	r := &a.report
	r.Packets++
	r.Bytes += uint64(p.Length)
	r.Duration = max(r.Duration, a.now)
	r.Dropped += dropped
	if p.Fragment && p.Around {
		a.breaks(FragmentedRoCE)
	}
	whole := p.Joining != dissect.Alone && p.Joining != dissect.Repeated
	if p.Around && !p.IsRoCE && whole {
		r.Refused.add(number)
	}
	if !p.IsRoCE {
		return
	}
	r.RoCE++
	if p.ICRC == dissect.Bad {
		r.BadICRC.add(number)
		return // whoever it is for drops it
	}
	if p.ICRC == dissect.Cut {
		r.Snapped++
	}
	a.header(p)
	if p.IsManager {
		a.manage(p)
	}
	f := a.flowOf(p)
	if f == nil {
		r.NotFollowed++
		return
	}
	f.seen(a, p)
}

// breaks notes that the packet breaks a rule.
func (a *Analyzer) breaks(c Clause) { a.broken[c].add(a.number) }

// header looks at what a packet has to have whatever came before it.
func (a *Analyzer) header(p *dissect.Packet) {
	w := &p.RoCE
	s := w.Spec
	if w.BTH.PKey&0x7fff == 0 {
		a.breaks(ZeroPKey)
	}
	if w.BTH.AckReq && s.Is(wire.ClassResponse) {
		a.breaks(AckReqOfAnswer)
	}
	if w.BTH.SE && !s.Is(wire.ClassLast) {
		a.breaks(SolicitedInside)
	}
	if s.Has(wire.HasAETH) && w.AETH().Syndrome.Kind() == wire.KindReserved {
		a.breaks(ReservedSyndrome)
	}
	if s.Is(wire.ClassRead|wire.ClassRequest) || s.Is(wire.ClassWrite) {
		if s.Has(wire.HasRETH) && w.RETH().DMALen > maxDMA {
			a.breaks(DMALength)
		}
	}
	if s.Has(wire.HasAtomicETH) && w.AtomicETH().VA&7 != 0 {
		a.breaks(AtomicAligned)
	}
	if p.Snapped {
		return
	}
	if w.BTH.Opcode == wire.CNP && !zero(w.Payload) {
		a.breaks(ZeroCNP)
	}
	if n := int(w.BTH.PadCnt); n > 0 && !zero(p.Pad()) {
		a.breaks(ZeroPad)
	}
}

// maxDMA is the longest that a READ or WRITE may be, in bytes.
const maxDMA = 1 << 31

// zero reports whether there are only zeros.
func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// flowOf is the direction that a packet is of, nil when there are too many.
func (a *Analyzer) flowOf(p *dissect.Packet) *flow {
	w := &p.RoCE
	recent := &a.recent[recentOf(&w.Dst, w.BTH.DestQP)]
	if f := *recent; f != nil && f.route.to.qpn == w.BTH.DestQP && f.route.from == w.Src &&
		f.route.to.host == w.Dst {
		return f
	}
	at := route{w.Src, place{w.Dst, w.BTH.DestQP}}
	if f, ok := a.flows[at]; ok {
		*recent = f
		return f
	}
	if len(a.order) == MaxFlows {
		return nil
	}
	f := &flow{route: at, service: p.RoCE.Spec.Service, src: p.Src, dst: p.Dst}
	if !f.src.IsValid() {
		f.src, f.dst = at.from.Addr(), at.to.host.Addr()
	}
	a.flows[at], *recent = f, f
	a.order = append(a.order, f)
	return f
}

// manage learns from the connection manager which queue pairs are connected.
func (a *Analyzer) manage(p *dissect.Packet) {
	if p.Manager.MgmtClass != cm.MgmtClass {
		return
	}
	a.report.Manager++
	key := message{p.RoCE.Src, p.Manager.TID, p.Manager.Attribute}
	if a.messages[key] {
		a.report.ManagerAgain.add(a.number)
	} else if len(a.messages) < maxRequests {
		a.messages[key] = true
	}
	w := &p.RoCE
	switch p.Manager.Attribute {
	case cm.AttributeREQ:
		r, err := cm.ParseREQ(p.MAD)
		if err == nil && len(a.requests) < maxRequests {
			a.requests[request{w.Src, r.LocalCommID}] = place{w.Src, r.LocalQPN}
		}
	case cm.AttributeREP:
		r, err := cm.ParseREP(p.MAD)
		if err != nil {
			return
		}
		from := request{w.Dst, r.RemoteCommID}
		active, ok := a.requests[from]
		if !ok {
			return // the REQ is not in the capture, or this came again
		}
		delete(a.requests, from)
		passive := place{w.Src, r.LocalQPN}
		to := a.made(route{active.host, passive}, w.Dst, w.Src)
		back := a.made(route{passive.host, active}, w.Src, w.Dst)
		pair(to, back)
	case cm.AttributeREJ:
		r, err := cm.ParseREJ(p.MAD)
		if err == nil {
			a.report.Rejected = appendBounded(a.report.Rejected, Rejected{
				Packet: a.number, From: addrOf(w.Src), Reason: r.Reason.String(),
			})
		}
	}
}

// made is the direction of a connection that is about to be used.
func (a *Analyzer) made(at route, src, dst wire.GID) *flow {
	if f, ok := a.flows[at]; ok {
		return f
	}
	if len(a.order) == MaxFlows {
		return nil
	}
	f := &flow{route: at, src: addrOf(src), dst: addrOf(dst)}
	a.flows[at] = f
	a.order = append(a.order, f)
	return f
}

func addrOf(g wire.GID) netip.Addr { return netip.AddrFrom16(g).Unmap() }

// pair makes two directions those of one connection.
func pair(f, g *flow) {
	if f == nil || g == nil || f == g {
		return
	}
	for _, old := range [...]*flow{f.peer, g.peer} {
		if old != nil {
			old.peer = nil
		}
	}
	f.peer, g.peer = g, f
}

// partner finds the direction that an answer belongs to: one of the other way between the same
// hosts, in which its PSN is waited for. It is nil when there is none or more than one.
func (a *Analyzer) partner(g *flow, psn wire.PSN) (found *flow) {
	looked := 0
	for i := len(a.order) - 1; i >= 0 && looked < maxEarly; i-- {
		f := a.order[i]
		if f.peer != nil || !f.begun || f.route.from != g.route.to.host ||
			f.route.to.host != g.route.from {
			continue
		}
		if looked++; psn.Before(f.first.Sub(maxBefore)) || !psn.Before(f.nextMax) {
			continue
		}
		if found != nil {
			return nil
		}
		found = f
	}
	return found
}

// maxListed is how many things of a kind a report lists.
const maxListed = 32

// appendBounded adds to a list that does not grow for ever.
func appendBounded[T any](list []T, v T) []T {
	if len(list) < maxListed {
		list = append(list, v)
	}
	return list
}
