package congestion

import (
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/counter"
)

// A meter measures a phase, from when its flows have settled.
type meter struct {
	phase Phase
	flows []*flow

	began   bool
	from    roce.Time
	done    []int64 // of each flow, when it began
	wire    int64
	lost    uint64
	samples int
}

// wireShare is by how much frames are longer than their payload: a WRITE of many packets has
// 58 bytes more a packet of 1024.
const wireShare = 1082. / 1024

// look takes a sample of the queue, if it is in the phase.
func (m *meter) look(now roce.Time, queue, most int, wire int64, lost uint64) {
	if now < m.phase.From+settling || now > m.phase.To {
		return
	}
	s := &m.phase.Steady
	if !m.began {
		m.began, m.from, m.wire, m.lost = true, now, wire, lost
		for _, f := range m.flows {
			m.done = append(m.done, f.done)
		}
	}
	if m.samples++; m.samples == 1 {
		most = queue // before, it was none of this phase
	}
	s.Queue += (float64(queue) - s.Queue) / float64(m.samples)
	s.QueueMax = max(s.QueueMax, most)
	s.Lost = lost - m.lost
	if now == m.from {
		return
	}
	capacity := float64(now-m.from) * lineRate / 8 / float64(roce.Second)
	var shares []float64
	var sum float64
	for i, f := range m.flows {
		shares = append(shares, float64(f.done-m.done[i]))
		sum += shares[i]
	}
	s.Use = float64(wire-m.wire) / capacity
	s.Goodput = sum * wireShare / capacity
	s.Jain = jain(shares)
}

// sample looks at everything.
func (w *world) sample(now roce.Time) {
	queue, most := w.network.QueueLength(campaign.MAC(0, 0))
	s := Sample{At: now, Queue: queue}
	var wire int64
	for i, f := range w.flows {
		wire += f.wire
		s.Rates = append(s.Rates, float64(f.wire-w.before[i])*8/float64(sampling))
		w.before[i] = f.wire
		s.Limit = append(s.Limit, float64(f.qp.Snapshot().Rate)/1e6)
	}
	counts := w.network.Counts()
	s.Lost = counts.Lost()
	for i := range w.meters {
		w.meters[i].look(now, queue, most, wire, s.Lost)
	}
	w.result.Samples = append(w.result.Samples, s)
}

// finish makes the result.
func (w *world) finish() (*Result, error) {
	r := &w.result
	for i := range w.meters {
		r.Phases = append(r.Phases, w.meters[i].phase)
	}
	counts := w.network.Counts()
	r.Frames, r.Marked, r.Lost = counts.Sent, counts.Marked, counts.Lost()
	r.Ended = []string{}
	for _, f := range w.flows {
		if f.err != nil {
			r.Ended = append(r.Ended, f.err.Error())
		}
	}
	r.Counters = map[string]uint64{}
	told := map[string]bool{}
	for id := range counter.Count {
		told[id.String()] = true
	}
	for _, h := range w.hosts {
		list, err := h.device.Counters()
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if told[c.Name] && c.Value > 0 {
				r.Counters[c.Name] += c.Value
			}
		}
	}
	return r, nil
}
