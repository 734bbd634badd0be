package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"xroce/engine/pager"
)

// one is a prometheus.Collector of one metric.
type one struct{ prometheus.Metric }

func (one) Describe(chan<- *prometheus.Desc)      {}
func (o one) Collect(to chan<- prometheus.Metric) { to <- o.Metric }

// TestPageFaults: how long faults took is a histogram, of seconds; what is longer than any bound
// is in the count.
func TestPageFaults(t *testing.T) {
	latency := pager.Latency{0: 1, 3: 2, pager.LatencyBuckets - 1: 4}
	m := pageFaults("eth0", pager.Stats{PageFaultWait: 1500 * time.Millisecond}, latency)
	var want strings.Builder
	want.WriteString("# HELP roce_page_fault_seconds How long faults of on-demand paging took.\n" +
		"# TYPE roce_page_fault_seconds histogram\n")
	for _, bucket := range []string{
		"1e-06|1", "2e-06|1", "4e-06|1", "8e-06|3", "1.6e-05|3", "3.2e-05|3", "6.4e-05|3",
		"0.000128|3", "0.000256|3", "0.000512|3", "0.001024|3", "0.002048|3", "0.004096|3",
		"0.008192|3", "0.016384|3", "0.032768|3", "0.065536|3", "0.131072|3", "0.262144|3",
		"0.524288|3", "1.048576|3", "2.097152|3", "4.194304|3", "+Inf|7",
	} {
		bound, count, _ := strings.Cut(bucket, "|")
		want.WriteString(`roce_page_fault_seconds_bucket{device="eth0",le="` + bound + `"} ` +
			count + "\n")
	}
	want.WriteString("roce_page_fault_seconds_sum{device=\"eth0\"} 1.5\n" +
		"roce_page_fault_seconds_count{device=\"eth0\"} 7\n")
	if err := testutil.CollectAndCompare(one{m}, strings.NewReader(want.String())); err != nil {
		t.Error(err)
	}
}
