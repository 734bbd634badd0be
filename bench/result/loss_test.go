package result

import (
	"math"
	"math/rand/v2"
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
					"dropped_on_purpose": 100, "local_ack_timeout_err": 5,
					"sent_pkts": 9900 + 2000, "retransmits": 2000,
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

// TestIdealOfAModel: a sender that is never idle, and hears of a gap so many packets later,
// has the ideal share with the N of its run, however often packets behind a gap are lost.
func TestIdealOfAModel(t *testing.T) {
	const packets = 200_000
	for _, p := range []float64{0.001, 0.01, 0.05} {
		for _, late := range []int{8, 64, 200} {
			r := rand.New(rand.NewPCG(1, 2))
			sent := 0
			for delivered := 0; delivered < packets; {
				if sent++; r.Float64() >= p {
					delivered++
					continue
				}
				sent += late // thrown away, lost or not
			}
			row := Row{Workers: []worker.Report{{Counters: map[string]uint64{
				"sent_pkts": uint64(sent), "retransmits": uint64(sent - packets),
			}}}}
			n, _ := resent(&row, p)
			share, ideal := float64(packets)/float64(sent), idealGoBackN(p, n)
			if math.Abs(share/ideal-1) > 1e-9 || math.Abs(n/float64(late+1)-1) > 0.15 {
				t.Errorf("loss %v, %d late: share %.3f, ideal %.3f with N %.1f", p, late, share,
					ideal, n)
			}
		}
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
