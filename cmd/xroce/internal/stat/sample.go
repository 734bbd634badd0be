package stat

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"xroce/engine"
	"xroce/engine/control"
)

// A Device is a device of a process, with its counters.
type Device struct {
	PID      int                  `json:"pid"`
	Comm     string               `json:"comm"`
	Name     string               `json:"device"`
	Counters map[string]uint64    `json:"counters"`
	Objects  engine.ResourceCount `json:"objects"`
	QPs      []engine.QPRow       `json:"qp"`
	MRs      []engine.MRRow       `json:"mr,omitempty"` // with on-demand paging

	at    time.Time // when its process had answered
	order []string  // names of counters, as they were told
}

// A Sample is what processes said, each at its time: one that stalls holds up the answers of those
// that are asked after it.
type Sample struct{ Devices []Device }

// NewSample makes a Sample of answers to control.AskStatistics. With a name it has the devices
// of that name alone.
func NewSample(answers []control.Answer, name string) Sample {
	s := Sample{Devices: []Device{}}
	for i := range answers {
		a := &answers[i]
		for j := range a.Devices {
			r := &a.Devices[j]
			if name != "" && r.Device != name || j >= len(a.Counters) {
				continue
			}
			d := Device{
				PID: a.PID, Comm: a.Comm, Name: r.Device, Objects: r.Total, QPs: r.QPs,
				Counters: map[string]uint64{}, at: a.At,
			}
			for _, m := range r.MRs {
				if m.ODP != nil {
					d.MRs = append(d.MRs, m)
				}
			}
			for _, c := range a.Counters[j] {
				if _, again := d.Counters[c.Name]; !again {
					d.order = append(d.order, c.Name)
				}
				d.Counters[c.Name] = c.Value
			}
			s.Devices = append(s.Devices, d)
		}
	}
	slices.SortStableFunc(s.Devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
	})
	return s
}

// Names are those of the counters, in their order; without all, of those that are not 0.
func (d *Device) Names(all bool) []string {
	if all {
		return d.order
	}
	return slices.DeleteFunc(slices.Clone(d.order), func(name string) bool {
		return d.Counters[name] == 0
	})
}

// A QP is a queue pair with how fast its PSNs moved.
type QP struct {
	engine.QPRow
	SQRate float64 `json:"sq-psn-per-second"`
	RQRate float64 `json:"rq-psn-per-second"`
	// Rates are those of its counters that moved, when it counts by itself.
	Rates map[string]float64 `json:"per_second,omitempty"`
}

// A Change is what happened at a device in a time.
type Change struct {
	PID     int                `json:"pid"`
	Comm    string             `json:"comm"`
	Name    string             `json:"device"`
	Seconds float64            `json:"seconds"`
	Rates   map[string]float64 `json:"per_second"` // of the counters that moved
	Drops   float64            `json:"drops_per_second"`
	QPs     []QP               `json:"qp"` // the busiest first

	Order []string `json:"-"` // names of the counters that moved
	all   []string // of all
}

// gauges are the counters that also shrink: a rate of them says nothing.
var gauges = []string{"tx_outstanding_descs", "sq_posted"}

// lost are the counters of packets that were lost here, beside those whose names say so.
var lost = []string{
	"out_of_buffer", "rx_dropped", "rx_ring_full", "rx_fill_ring_empty_descs", "rx_oversize",
	"tx_busy", "handover_no_room", "port_xmit_discards",
}

// IsDrop reports whether a counter counts packets that were dropped here.
func IsDrop(name string) bool {
	return strings.HasPrefix(name, "drop_") || slices.Contains(lost, name)
}

// Since says what happened at each device that is in both samples.
func (s *Sample) Since(before *Sample) []Change {
	changes := []Change{}
	for i := range s.Devices {
		d := &s.Devices[i]
		j := slices.IndexFunc(before.Devices, func(b Device) bool {
			return b.PID == d.PID && b.Name == d.Name
		})
		if j < 0 || !d.at.After(before.Devices[j].at) {
			continue
		}
		changes = append(changes, change(&before.Devices[j], d))
	}
	return changes
}

// change says what happened at a device.
func change(before, d *Device) Change {
	seconds := d.at.Sub(before.at).Seconds()
	c := Change{
		PID: d.PID, Comm: d.Comm, Name: d.Name, Seconds: seconds, Rates: map[string]float64{},
		QPs: []QP{}, all: d.order,
	}
	for _, name := range d.order {
		was, now := before.Counters[name], d.Counters[name]
		if now <= was || slices.Contains(gauges, name) {
			continue // it has not moved, or is one of another device of that name
		}
		rate := float64(now-was) / seconds
		c.Rates[name], c.Order = rate, append(c.Order, name)
		if IsDrop(name) {
			c.Drops += rate
		}
	}
	for _, q := range d.QPs {
		row := QP{QPRow: q}
		i := slices.IndexFunc(before.QPs, func(b engine.QPRow) bool { return b.LQPN == q.LQPN })
		if i >= 0 {
			row.SQRate = psnRate(before.QPs[i].SQPSN, q.SQPSN, seconds)
			row.RQRate = psnRate(before.QPs[i].RQPSN, q.RQPSN, seconds)
			row.Rates = rates(before.QPs[i].Counters, q.Counters, seconds)
		}
		c.QPs = append(c.QPs, row)
	}
	slices.SortStableFunc(c.QPs, func(a, b QP) int {
		return cmp.Compare(b.SQRate+b.RQRate, a.SQRate+a.RQRate)
	})
	return c
}

// rates are those of the counters that moved, nil of none. One that was not told is 0.
func rates(before, now map[string]uint64, seconds float64) map[string]float64 {
	var r map[string]float64
	for name, n := range now {
		if n <= before[name] {
			continue
		}
		if r == nil {
			r = map[string]float64{}
		}
		r[name] = float64(n-before[name]) / seconds
	}
	return r
}

// psnRate is how fast a PSN moved. One that went back began a new connection.
func psnRate(was, now uint32, seconds float64) float64 {
	const psns = 1 << 24
	if moved := (now - was) % psns; moved < psns/2 {
		return float64(moved) / seconds
	}
	return 0
}
