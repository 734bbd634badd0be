package result

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"xroce/bench/worker"
)

// lossy is a case at 0 and 1 % loss: half the goodput, 20 packets sent again for
// each one lost.
func lossy() Case {
	c := Case{
		Name: "loss-gbn", Unit: "bit/s", Reference: "0 % loss", Axis: "packets in a million",
		Variants: []string{"0 % loss", "1 % loss"},
		At:       []Point{{"0 % loss", 0}, {"1 % loss", 10000}},
	}
	for round := range 3 {
		c.Rows = append(c.Rows,
			Row{Round: round, Variant: "0 % loss", Value: 1e9, Workers: []worker.Report{{}}},
			Row{Round: round, Variant: "1 % loss", Value: 5e8, Workers: []worker.Report{{
				Counters: map[string]uint64{
					"dropped_on_purpose": 100, "retransmits": 2000, "local_ack_timeout_err": 5,
				},
			}}})
	}
	return c
}

func TestLossTable(t *testing.T) {
	d := &Document{Cases: []Case{lossy(), {Name: "send-64"}}}
	table := d.lossTable()
	// (1 - 0.01) / (1 + 0.01 × 19) = 0.832, and 0.5 is 0.60 of that.
	want := [][]string{
		{"loss-gbn", "0 % loss", "1G", "1.00", "1.00 … 1.00", "–", "–", "–", "–", "1.000"},
		{
			"loss-gbn", "1 % loss", "500M", "0.50", "0.50 … 0.50", "20.0", "0.050", "0.83",
			"0.60", "0.990",
		},
	}
	if diff := cmp.Diff(want, table.rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, row := range table.rows {
		if len(row) != len(table.header) {
			t.Errorf("%d columns under %d", len(row), len(table.header))
		}
	}
	if v := verdict(t, d, "go-back-N at 1 % loss, of its ideal"); v.Measured.N != 3 || v.Met() {
		t.Errorf("%+v, %s", v.Measured, v)
	}
	d.Cases[0].Rows[0].Void = "it broke"
	if s := d.Cases[0].shareOfIdeal("1 % loss", 0.01); s.N != 2 {
		t.Errorf("%d rounds with a void reference count, want 2", s.N)
	}
}

func TestIdeals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Float64Range(0, 0.5).Draw(t, "p")
		n := rapid.Float64Range(1, 1000).Draw(t, "n")
		gbn, selective := idealGoBackN(p, n), idealSelective(p)
		if gbn > selective || gbn < 0 {
			t.Fatalf("go-back-N %v, selective %v", gbn, selective)
		}
		// Who sends again one packet for each one lost does as well as can be.
		if one := idealGoBackN(p, 1); math.Abs(one-selective) > 1e-12 {
			t.Fatalf("N = 1: %v, want %v", one, selective)
		}
		if idealGoBackN(0, n) != 1 {
			t.Fatal("without loss something is lost")
		}
	})
}
