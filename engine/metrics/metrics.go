package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"xroce/engine"
	"xroce/engine/internal/roster"
	"xroce/engine/pager"
)

// A Source is what has counters and is no device, such as frames of a test on an interface. Both
// methods are safe for concurrent use.
type Source interface {
	// Name is the label that its metrics have as device.
	Name() string
	// Counters are read when Prometheus asks. Names are those of a device, or others.
	Counters() ([]engine.Counter, error)
}

// A Collector collects the counters of devices and sources. It implements prometheus.Collector
// and is safe for concurrent use.
type Collector struct {
	devices roster.Roster

	mu      sync.Mutex
	sources []Source
}

// New returns a Collector of no device.
func New() *Collector { return new(Collector) }

// Add collects the counters of a device, too, until it fails or is closed. Its label is the name of
// its interface. Where another device has that, as with several on one interface, it is eth0#2, or
// the next number that is free, for as long as the device lives.
func (c *Collector) Add(d *engine.Device) { c.devices.Add(d) }

// AddSource collects the counters of a source, too. Its name is none of a device or of another
// source.
func (c *Collector) AddSource(s Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = append(c.sources, s)
}

// others are the sources.
func (c *Collector) others() []Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sources)
}

// Describe implements prometheus.Collector. Which counters there are is known by what a device
// runs on, so it describes none: the Collector is an unchecked one.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. A device that cannot be read is left out, and shown
// as not up.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.others() {
		collect(to, s)
	}
	for _, d := range c.devices.Open() {
		if !collect(to, d) {
			continue
		}
		stats, latency := d.ODPStats()
		to <- pageFaults(d.Name(), stats, latency)
		n := d.Resources(0).Total
		for kind, value := range map[string]int{
			"pd": n.PD, "mr": n.MR, "mw": n.MW, "cq": n.CQ, "qp": n.QP, "srq": n.SRQ,
		} {
			to <- prometheus.MustNewConstMetric(objectsDesc, prometheus.GaugeValue,
				float64(value), d.Name(), kind)
		}
	}
}

// collect collects the counters of one source, and reports whether they could be read.
func collect(to chan<- prometheus.Metric, s Source) bool {
	counters, err := s.Counters()
	up := 1.0
	if err != nil {
		up = 0
	}
	to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up, s.Name())
	for i := range counters {
		if counters[i].Name != pageFaultWait {
			to <- metricOf(s.Name(), &counters[i])
		}
	}
	return err == nil
}

var (
	upDesc = prometheus.NewDesc("roce_up", "Whether the counters of the device could be read.",
		[]string{"device"}, nil)
	objectsDesc = prometheus.NewDesc("roce_objects", "Objects of verbs that there are.",
		[]string{"device", "kind"}, nil)
	dropsDesc = prometheus.NewDesc("roce_drops_total",
		"Packets that were dropped, by the check that did it.", []string{"device", "cause"}, nil)
	pageFaultsDesc = prometheus.NewDesc("roce_page_fault_seconds",
		"How long faults of on-demand paging took.", []string{"device"}, nil)
	xdpDesc = prometheus.NewDesc("roce_xdp_packets_total",
		"Packets that the XDP program saw, by its verdict.", []string{"device", "verdict"}, nil)
)

// pageFaultWait is the counter that is in the histogram of pageFaults, in seconds.
const pageFaultWait = "page_fault_wait_ns"

// pageFaults is how long faults of on-demand paging took at a device.
func pageFaults(device string, stats pager.Stats, latency pager.Latency) prometheus.Metric {
	below := map[float64]uint64{} // the bounds of Prometheus have all that is less
	count := uint64(0)
	for i, n := range latency {
		if count += n; i < pager.LatencyBuckets-1 {
			below[pager.LatencyBound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(pageFaultsDesc, count, stats.PageFaultWait.Seconds(),
		below, device)
}

// gauges are the counters that also shrink.
var gauges = []string{
	"tx_outstanding_descs", "sq_posted", "sink_lost_frames", "sink_flows",
}

// metricOf makes a metric of a counter.
func metricOf(device string, c *engine.Counter) prometheus.Metric {
	desc, kind, labels := (*prometheus.Desc)(nil), prometheus.CounterValue, []string{device}
	cause, isDrop := strings.CutPrefix(c.Name, "drop_")
	verdict, isXDP := strings.CutPrefix(c.Name, "xdp_")
	switch {
	case isDrop:
		desc, labels = dropsDesc, append(labels, cause)
	case isXDP:
		desc, labels = xdpDesc, append(labels, verdict)
	case slices.Contains(gauges, c.Name):
		desc, kind = newDesc(c, ""), prometheus.GaugeValue
	default:
		desc = newDesc(c, "_total")
	}
	return prometheus.MustNewConstMetric(desc, kind, float64(c.Value), labels...)
}

// newDesc describes a counter, whose unit is in its help where the name does not have it.
func newDesc(c *engine.Counter, suffix string) *prometheus.Desc {
	help := c.Help + " (" + c.Unit + ")"
	return prometheus.NewDesc("roce_"+c.Name+suffix, help, []string{"device"}, nil)
}
