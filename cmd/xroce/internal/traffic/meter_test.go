package traffic_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine/metrics"
	"xroce/roce/clock"
)

// values are the counters of a meter by name.
func values(t *testing.T, m *traffic.Meter) map[string]uint64 {
	t.Helper()
	list, err := m.Counters()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]uint64{}
	for _, c := range list {
		of[c.Name] = c.Value
	}
	return of
}

// TestMeter: what goes over two links and what a sink makes of it is read while they are used,
// and Prometheus takes it. Under the race detector it shows that reading it is allowed.
func TestMeter(t *testing.T) {
	c := &virtual{look: 1000, tick: 1000}
	there, back := newWireLink(), newWireLink()
	there.lose = func(i int) bool { return i%10 == 5 }
	there.wait = func() { c.now += 10 * clock.Millisecond }
	back.stats.TxPackets = 3
	there.stats.TxPackets = 4
	meter := traffic.NewMeter("w0")
	link := meter.Link(there)
	meter.Link(back)
	sink := traffic.NewSink(nil)
	guard := meter.Watch(sink)
	p := plan("max", 0, traffic.PlanFlow{})
	p.Count = 100
	s := sender(t, p, link, c)
	stop, read := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				read <- nil
				return
			default:
				if _, err := meter.Counters(); err != nil {
					read <- err
					return
				}
			}
		}
	}()
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.End(func(int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	col := &traffic.Collector{Link: link, Sink: sink, Clock: c, Guard: guard}
	if err := col.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-read; err != nil {
		t.Error(err)
	}
	of := values(t, meter)
	if of["tx_packets"] != 7 || of["sink_frames"] != 90 || of["sink_lost_frames"] != 10 ||
		of["sink_flows"] != 1 {
		t.Error(of)
	}
	shown, registry := metrics.New(), prometheus.NewPedanticRegistry()
	shown.AddSource(meter)
	registry.MustRegister(shown)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
}

// TestMeterOfNone: without --metrics nothing is locked.
func TestMeterOfNone(t *testing.T) {
	if guard := (*traffic.Meter)(nil).Watch(traffic.NewSink(nil)); guard != nil {
		t.Error(guard)
	}
}
