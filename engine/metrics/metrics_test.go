package metrics_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"xroce/engine"
	"xroce/engine/metrics"
	"xroce/engine/sim"
)

// open opens a device on a simulated network.
func open(t *testing.T, network *sim.Network, name string, n byte) *engine.Device {
	t.Helper()
	port, err := network.NewPort(sim.PortConfig{
		Name: name, MAC: [6]byte{2, n}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.OpenLink(port, port, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestCollector: the counters of two devices, which Prometheus accepts, and of one when the
// other is closed.
func TestCollector(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := open(t, network, "xr1", 1), open(t, network, "xr2", 2)
	b.AllocPD()
	c := metrics.New()
	c.Add(a)
	c.Add(b)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	const want = `
# TYPE roce_objects gauge
# HELP roce_objects Objects of verbs that there are.
roce_objects{device="xr1",kind="cq"} 0
roce_objects{device="xr1",kind="mr"} 0
roce_objects{device="xr1",kind="mw"} 0
roce_objects{device="xr1",kind="pd"} 0
roce_objects{device="xr1",kind="qp"} 0
roce_objects{device="xr1",kind="srq"} 0
roce_objects{device="xr2",kind="cq"} 0
roce_objects{device="xr2",kind="mr"} 0
roce_objects{device="xr2",kind="mw"} 0
roce_objects{device="xr2",kind="pd"} 1
roce_objects{device="xr2",kind="qp"} 0
roce_objects{device="xr2",kind="srq"} 0
# HELP roce_sq_posted posted to send queues and not complete, now (work requests)
# TYPE roce_sq_posted gauge
roce_sq_posted{device="xr1"} 0
roce_sq_posted{device="xr2"} 0
# HELP roce_sent_pkts_total RoCE packets given to the link (packets)
# TYPE roce_sent_pkts_total counter
roce_sent_pkts_total{device="xr1"} 0
roce_sent_pkts_total{device="xr2"} 0
`
	err = testutil.GatherAndCompare(registry, strings.NewReader(want), "roce_objects",
		"roce_sq_posted", "roce_sent_pkts_total")
	if err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(registry, "roce_up"); err != nil || n != 1 {
		t.Errorf("%d devices are up, %v", n, err)
	}
}

// TestTwoDevicesOfOneName: each has a label of its own, and Prometheus takes both, also where it
// would not take the name.
func TestTwoDevicesOfOneName(t *testing.T) {
	c, registry := metrics.New(), prometheus.NewPedanticRegistry()
	for _, iface := range []string{"xr1", "xr1", "b\xfcro0", "b\xf6ro0"} {
		network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
		if err != nil {
			t.Fatal(err)
		}
		c.Add(open(t, network, iface, 1))
	}
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	const want = `
# TYPE roce_up gauge
# HELP roce_up Whether the counters of the device could be read.
roce_up{device="b�ro0"} 1
roce_up{device="b�ro0#2"} 1
roce_up{device="xr1"} 1
roce_up{device="xr1#2"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "roce_up"); err != nil {
		t.Error(err)
	}
	// What is not a counter has the label as well.
	n, err := testutil.GatherAndCount(registry, "roce_page_fault_seconds")
	if err != nil || n != 4 {
		t.Errorf("%d histograms, %v", n, err)
	}
}

// TestDashboard: what docs/grafana.json asks for is there.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	c := metrics.New()
	c.Add(open(t, network, "xr1", 1))
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range families {
		known[f.GetName()] = true
	}
	names := regexp.MustCompile(`\broce_\w+`)
	asked := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, name := range names.FindAllString(target.Expr, -1) {
				if asked++; !known[name] {
					t.Errorf("%s: no %s", p.Title, name)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("it asks for nothing")
	}
}
