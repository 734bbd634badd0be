package analyze

import (
	"cmp"
	"net/netip"
	"slices"

	"xroce/roce/clock"
	"xroce/roce/wire"
)

// A Report is what a capture says.
type Report struct {
	Diagnosis []string `json:"diagnosis"` // in plain words, the worst first

	Packets      int        `json:"packets"`
	Bytes        uint64     `json:"bytes"`
	RoCE         int        `json:"roce_packets"`
	Duration     clock.Time `json:"duration_ns"`
	Dropped      uint64     `json:"capture_dropped"` // that the capture itself lost
	Snapped      int        `json:"snapped"`         // of which it kept the headers
	BadICRC      Numbers    `json:"bad_icrc"`
	Refused      Numbers    `json:"malformed"`
	Manager      int        `json:"cm_messages"`
	ManagerAgain Numbers    `json:"cm_again"` // messages that came more than once
	Rejected     []Rejected `json:"cm_rejects,omitempty"`
	NotFollowed  int        `json:"not_followed"` // packets of connections beyond the bound

	Violations  []Violation  `json:"violations"`
	Connections []Connection `json:"connections"`
}

// Rejected is a connection that was refused.
type Rejected struct {
	Packet int        `json:"packet"`
	From   netip.Addr `json:"from"`
	Reason string     `json:"reason"`
}

// A Connection is two queue pairs that speak to each other, or one direction of which the other is
// not in the capture.
type Connection struct {
	Service    string      `json:"service"`
	MTU        int         `json:"path_mtu"` // 0 where it was not seen
	OneSided   bool        `json:"one_sided"`
	Directions []Direction `json:"directions"`
}

// A Direction is what went one way: requests of one end, and its answers.
type Direction struct {
	From     netip.Addr `json:"from"`
	FromQPN  uint32     `json:"from_qpn"`
	KnowsQPN bool       `json:"knows_from_qpn"`
	To       netip.Addr `json:"to"`
	ToQPN    uint32     `json:"to_qpn"`
	Packets  int        `json:"packets"`
	Bytes    int        `json:"bytes"`
	Payload  uint64     `json:"payload"`
	Rate     float64    `json:"bits_per_second"` // of payload, while there were packets

	Operations  []Operation `json:"operations"`
	Unanswered  int         `json:"unanswered"` // at the end of the capture
	Forgotten   int         `json:"forgotten"`  // that were too many at once to be timed
	Resent      []Resending `json:"retransmissions"`
	Duplicated  Numbers     `json:"duplicated_by_the_wire"`
	Reordered   Numbers     `json:"reordered"`
	Missing     Numbers     `json:"gaps"`
	LostAnswers Numbers     `json:"answers_lost"`
	RTT         *Latency    `json:"ack_rtt,omitempty"`

	Acks         int      `json:"acks"`
	DuplicateAck int      `json:"duplicate_acks"`
	SelectiveAck int      `json:"selective_acks"`
	NAKs         []Refuse `json:"naks"`
	RNRs         Numbers  `json:"rnr_naks"`
	Credits      *Credit  `json:"credits,omitempty"`
	ECT          Numbers  `json:"ecn_capable"`
	CE           Numbers  `json:"ecn_marked"`
	CNPs         Numbers  `json:"cnps"`

	New    Series  `json:"throughput"`
	Resend Series  `json:"throughput_resent"`
	PSNs   []Point `json:"psns"`
}

// An Operation is what there was of a kind.
type Operation struct {
	Kind    string   `json:"kind"`
	Count   int      `json:"count"`
	Bytes   uint64   `json:"bytes"`
	Latency *Latency `json:"latency,omitempty"`
}

// Latency is how long something took.
type Latency struct {
	Count int        `json:"count"`
	Min   clock.Time `json:"min_ns"`
	Mean  clock.Time `json:"mean_ns"`
	P50   clock.Time `json:"p50_ns"`
	P99   clock.Time `json:"p99_ns"`
	Max   clock.Time `json:"max_ns"`
	Bars  []Bar      `json:"histogram"`
}

// Resending is what was sent again for a cause.
type Resending struct {
	Cause    string     `json:"cause"`
	Episodes int        `json:"times"`
	Packets  Numbers    `json:"packets"`
	Waited   clock.Time `json:"waited_ns"`
	Longest  clock.Time `json:"longest_ns"`
	cause    Cause
}

// Refuse is a kind of negative acknowledgement.
type Refuse struct {
	Code string `json:"code"`
	Numbers
	syndrome wire.Syndrome
}

// Credit is what a responder said of its receives.
type Credit struct {
	Fewest int `json:"fewest"`
	Last   int `json:"last"`
}

// Report is what the packets so far say. It shares nothing with the Analyzer but lists that grow.
func (a *Analyzer) Report() *Report {
	r := a.report
	r.Violations, r.Connections = []Violation{}, []Connection{}
	for c := range Clause(numClauses) {
		if a.broken[c].Count > 0 {
			r.Violations = append(r.Violations, Violation{c.Where(), c.String(), a.broken[c]})
		}
	}
	done := map[*flow]bool{}
	var all []*flow
	for _, f := range a.order {
		if f.packets == 0 && (f.peer == nil || f.peer.packets == 0) || done[f] {
			continue
		}
		done[f] = true
		c := Connection{Service: f.service.String(), MTU: f.pathMTU()}
		c.Directions = append(c.Directions, f.direction())
		all = append(all, f)
		if g := f.peer; g != nil {
			done[g] = true
			c.Directions = append(c.Directions, g.direction())
			all = append(all, g)
		}
		c.OneSided = f.reliable() && (f.peer == nil || f.peer.packets == 0 || f.packets == 0)
		r.Connections = append(r.Connections, c)
	}
	slices.SortStableFunc(r.Connections, func(x, y Connection) int {
		return cmp.Compare(y.bytes(), x.bytes())
	})
	r.Diagnosis = diagnose(&r, all)
	return &r
}

// bytes are those of both directions.
func (c *Connection) bytes() (n int) {
	for i := range c.Directions {
		n += c.Directions[i].Bytes
	}
	return n
}

// reliable reports whether what the flow asks is answered.
func (f *flow) reliable() bool {
	return f.service == wire.ServiceRC || f.service == wire.ServiceXRC
}

// direction reports a flow.
func (f *flow) direction() Direction {
	d := Direction{
		From: f.src, To: f.dst, ToQPN: f.route.to.qpn, Packets: f.packets, Bytes: f.bytes,
		Payload: f.payload, Unanswered: len(f.window.list), Forgotten: f.window.forgotten,
		Operations: []Operation{}, Resent: []Resending{}, Duplicated: f.duplicated,
		Reordered: f.reordered, Missing: f.missing, LostAnswers: f.answered.lost,
		RTT: latency(&f.rtt), Acks: f.answered.acks, DuplicateAck: f.answered.duplicates,
		SelectiveAck: f.answered.selective, NAKs: []Refuse{}, RNRs: f.answered.rnrs, ECT: f.ect,
		CE: f.ce, CNPs: f.cnp, New: f.new, Resend: f.again, PSNs: f.points.List,
	}
	if f.peer != nil {
		d.FromQPN, d.KnowsQPN = f.peer.route.to.qpn, true
	}
	if span := f.lastSeen - f.firstSeen; span > 0 {
		d.Rate = float64(f.payload) * 8 * float64(clock.Second) / float64(span)
	}
	for k, work := range f.work {
		if work != nil {
			d.Operations = append(d.Operations, Operation{
				Kind(k).String(), work.Operations, work.Bytes, latency(&work.Latency),
			})
		}
	}
	for c := range Cause(numCauses) {
		if r := &f.resent[c]; r.Packets.Count > 0 {
			d.Resent = append(d.Resent, Resending{
				c.String(), r.Episodes, r.Packets, r.Waited, r.Longest, c,
			})
		}
	}
	for i, n := range f.answered.naks {
		if n.Count > 0 {
			s := wire.NAKPSNSequenceError + wire.Syndrome(i)
			d.NAKs = append(d.NAKs, Refuse{s.String(), n, s})
		}
	}
	if f.answered.credits {
		d.Credits = &Credit{f.answered.fewest, f.answered.last}
	}
	return d
}

// latency reports a histogram, nil when there is nothing in it.
func latency(h *Histogram) *Latency {
	if h.Count == 0 {
		return nil
	}
	return &Latency{
		h.Count, h.Min, h.Mean(), h.Quantile(0.5), h.Quantile(0.99), h.Max, h.Bars(),
	}
}
