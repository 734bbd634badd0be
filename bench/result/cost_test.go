package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/bench/worker"
)

func TestCostTable(t *testing.T) {
	d := &Document{Cases: []Case{reliable("send-64", 4000)}}
	table := d.costTable()
	want := [][]string{
		{"send-64", "ours", "sends", "300", "900", "2", "4", "0.001", "0"},
		{"send-64", "ours", "receives", "–", "–", "0", "0", "2", "0"},
	}
	if diff := cmp.Diff(want, table.rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(table.header) != len(want[0]) || table.notes[0] != "Cycles: none here." {
		t.Errorf("header %q, notes %q", table.header, table.notes)
	}
	d.Cases[0].Rows = append(d.Cases[0].Rows, Row{Variant: ours, Workers: []worker.Report{{}}})
	for i := range d.Cases[0].Rows {
		for k := range d.Cases[0].Rows[i].Workers {
			d.Cases[0].Rows[i].Workers[k].Cost = nil
		}
	}
	if table := d.costTable(); len(table.rows) != 0 {
		t.Errorf("costs out of nothing: %q", table.rows)
	}
}

func TestRTTTable(t *testing.T) {
	c := Case{Name: "rtt-64", Variants: []string{ours, raw}}
	for round, p50 := range []int64{100, 300, 200} {
		c.Rows = append(c.Rows, Row{Round: round, Variant: ours, Workers: []worker.Report{
			{RTT: &worker.RTT{P50: p50, P99: 10 * p50, P999: 100 * p50}}, {},
		}})
	}
	table := (&Document{Cases: []Case{c, {Name: "send-64", Variants: []string{ours}}}}).rttTable()
	want := [][]string{{"rtt-64", ours, "100", "1000", "10000"}}
	if diff := cmp.Diff(want, table.rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
