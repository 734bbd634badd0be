package engine

import (
	"cmp"
	"slices"

	"xroce/engine/pager"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
)

// Resources are the objects of a device at one time, as rdma-resource(8) shows them.
// Each list is in the order of numbers and has no more rows than were asked for;
// Total has the true numbers.
type Resources struct {
	Device string        `json:"ifname"`
	Total  ResourceCount `json:"total"`
	PDs    []PDRow       `json:"pd,omitempty"`
	MRs    []MRRow       `json:"mr,omitempty"`
	MWs    []MWRow       `json:"mw,omitempty"`
	CQs    []CQRow       `json:"cq,omitempty"`
	QPs    []QPRow       `json:"qp,omitempty"`
	SRQs   []SRQRow      `json:"srq,omitempty"`
}

// A ResourceCount is how many objects of each kind a device has.
type ResourceCount struct {
	PD  int `json:"pd"`
	MR  int `json:"mr"`
	MW  int `json:"mw"`
	CQ  int `json:"cq"`
	QP  int `json:"qp"`
	SRQ int `json:"srq"`
}

// A PDRow is a protection domain.
type PDRow struct {
	PDN   uint32 `json:"pdn"`
	Users int64  `json:"users"` // regions, QPs and SRQs
}

// An MRRow is a memory region. Whoever shows it may take the keys out.
type MRRow struct {
	MRN    uint32  `json:"mrn"`
	RKey   *uint32 `json:"rkey,omitempty"`
	LKey   *uint32 `json:"lkey,omitempty"`
	IOVA   *uint64 `json:"iova,omitempty"`
	Len    uint64  `json:"mrlen"` // bytes
	Access string  `json:"access"`
	Valid  bool    `json:"valid"` // not invalidated
	PDN    uint32  `json:"pdn"`
	// ODP is what was counted for a region with on-demand paging, nil of others.
	ODP *pager.Stats `json:"odp,omitempty"`
}

// An MWRow is a memory window.
type MWRow struct {
	MWN   uint32  `json:"mwn"`
	Type  uint8   `json:"type"` // 1 or 2
	RKey  *uint32 `json:"rkey,omitempty"`
	Bound bool    `json:"bound"`
	Len   uint64  `json:"mwlen"` // bytes, 0 when it is not bound
	PDN   uint32  `json:"pdn"`
}

// A CQRow is a completion queue.
type CQRow struct {
	CQN   uint32 `json:"cqn"`
	CQE   int    `json:"cqe"`   // room for completions
	Users int    `json:"users"` // SRQs and QPs, twice those that use it for both queues
}

// A QPRow is a queue pair. RQPN is 0 where it has no peer.
type QPRow struct {
	LQPN      uint32 `json:"lqpn"`
	RQPN      uint32 `json:"rqpn"`
	Type      string `json:"type"`
	State     string `json:"state"`
	RQPSN     uint32 `json:"rq-psn"`
	SQPSN     uint32 `json:"sq-psn"`
	PDN       uint32 `json:"pdn"`
	SendCQN   uint32 `json:"send-cqn,omitempty"`
	RecvCQN   uint32 `json:"recv-cqn,omitempty"`
	SRQN      uint32 `json:"srqn,omitempty"`
	SendQueue uint32 `json:"sends"` // work requests that are not complete
	RecvQueue uint32 `json:"recvs"`
	// Rate is what congestion control allows in kbit/s, 0 for any, and Alpha how congested
	// DCQCN takes the path to be, 0 to 1.
	Rate  uint32  `json:"cc-rate-kbps,omitempty"`
	Alpha float64 `json:"cc-alpha,omitempty"`
	// Counters are those that are not 0, of a QP that counts by itself: nil of others. See
	// Device.CountQPs.
	Counters map[string]uint64 `json:"counters,omitempty"`
}

// An SRQRow is a shared receive queue.
type SRQRow struct {
	SRQN  uint32 `json:"srqn"`
	Type  string `json:"type"` // BASIC or XRC
	MaxWR int    `json:"max-wr"`
	Recvs int    `json:"recvs"` // posted
	PDN   uint32 `json:"pdn"`
	CQN   uint32 `json:"cqn,omitempty"`
}

// Resources returns the objects of the device, at most limit of a kind, 0 for the
// numbers alone. It holds all progress locks meanwhile: nothing moves, and the rows
// are of one moment.
func (d *Device) Resources(limit int) Resources {
	r, counted := d.lookAt(max(limit, 0))
	for i := range r.QPs {
		if set, ok := counted[r.QPs[i].LQPN]; ok {
			r.QPs[i].Counters = named(&set)
		}
	}
	r.sort()
	return r
}

// lookAt is Resources without an order, and with the counters of QPs beside their rows.
func (d *Device) lookAt(limit int) (r Resources, counted map[uint32]counter.Set) {
	d.lock()
	defer d.unlock()
	r.Device = d.Name()
	var pds []*PD
	var mrs []*MR
	var mws []*MW
	var cqs []*CQ
	pds, r.Total.PD = objectsOf[*PD](&d.registry, resourcePD, limit)
	mrs, r.Total.MR = objectsOf[*MR](&d.registry, resourceMR, limit)
	mws, r.Total.MW = objectsOf[*MW](&d.registry, resourceMW, limit)
	cqs, r.Total.CQ = objectsOf[*CQ](&d.registry, resourceCQ, limit)
	r.Total.QP, r.Total.SRQ = d.qps.Len(), d.srqs.Len()
	for _, p := range pds {
		r.PDs = append(r.PDs, PDRow{PDN: p.number, Users: max(p.users.Load(), 0)})
	}
	for _, m := range mrs {
		r.MRs = append(r.MRs, m.row())
	}
	for _, w := range mws {
		r.MWs = append(r.MWs, w.row())
	}
	for _, c := range cqs {
		r.CQs = append(r.CQs, CQRow{CQN: c.number, CQE: c.core.Depth(), Users: c.users})
	}
	for _, qp := range d.qps.All {
		if len(r.QPs) == limit {
			break
		}
		r.QPs = append(r.QPs, qp.row())
		if own := qp.home().counted[qp]; own != nil {
			if counted == nil {
				counted = map[uint32]counter.Set{}
			}
			counted[qp.core.Num()] = *own
		}
	}
	for _, s := range d.srqs.All {
		if len(r.SRQs) == limit {
			break
		}
		r.SRQs = append(r.SRQs, s.row())
	}
	return r, counted
}

func (r *Resources) sort() {
	slices.SortFunc(r.PDs, func(a, b PDRow) int { return cmp.Compare(a.PDN, b.PDN) })
	slices.SortFunc(r.MRs, func(a, b MRRow) int { return cmp.Compare(a.MRN, b.MRN) })
	slices.SortFunc(r.MWs, func(a, b MWRow) int { return cmp.Compare(a.MWN, b.MWN) })
	slices.SortFunc(r.CQs, func(a, b CQRow) int { return cmp.Compare(a.CQN, b.CQN) })
	slices.SortFunc(r.QPs, func(a, b QPRow) int { return cmp.Compare(a.LQPN, b.LQPN) })
	slices.SortFunc(r.SRQs, func(a, b SRQRow) int { return cmp.Compare(a.SRQN, b.SRQN) })
}

// HideKeys takes the keys and addresses out, with which a peer could name memory.
func (r *Resources) HideKeys() {
	for i := range r.MRs {
		m := &r.MRs[i]
		m.RKey, m.LKey, m.IOVA = nil, nil, nil
	}
	for i := range r.MWs {
		r.MWs[i].RKey = nil
	}
}

func (m *MR) row() MRRow {
	lkey, rkey, addr := m.LKey(), m.RKey(), m.Addr()
	var paged *pager.Stats
	if s, ok := m.ODPStats(); ok {
		paged = &s
	}
	return MRRow{
		MRN: m.number, LKey: &lkey, RKey: &rkey, IOVA: &addr, Len: m.Len(),
		Access: (m.core.Access() &^ mem.Invalidatable).String(), Valid: m.core.Valid(),
		PDN: m.pdn.Load(), ODP: paged,
	}
}

func (w *MW) row() MWRow {
	key := w.core.RKey()
	return MWRow{
		MWN: w.number, Type: uint8(w.Type()), RKey: &key, Bound: w.Bound(), Len: w.Len(),
		PDN: w.pd.number,
	}
}

// row is called with the progress lock held.
func (q *QP) row() QPRow {
	s := q.core.Snapshot()
	r := QPRow{
		LQPN: s.QPN, RQPN: s.DestQPN, Type: s.Type.String(), State: s.State.String(),
		RQPSN: uint32(s.ExpectedPSN), SQPSN: uint32(s.NextPSN), PDN: q.control.refs.pd.number,
		SendQueue: s.SendPosted, RecvQueue: s.RecvPosted, Rate: s.Rate, Alpha: s.Alpha,
	}
	if s.State < roce.StateRTR {
		r.RQPN = 0
	}
	if cq := q.control.refs.sendCQ; cq != nil {
		r.SendCQN = cq.number
	}
	if cq := q.control.refs.recvCQ; cq != nil {
		r.RecvCQN = cq.number
	}
	if q.control.refs.srq != nil {
		r.SRQN = q.control.refs.srq.SRQN()
	}
	return r
}

func (s *SRQ) row() SRQRow {
	attr, posted := s.core.Query()
	r := SRQRow{SRQN: s.SRQN(), Type: "BASIC", MaxWR: attr.MaxWR, Recvs: posted, PDN: s.pd.number}
	if s.xrcd != nil {
		r.Type, r.CQN = "XRC", s.cq.number
	}
	return r
}
