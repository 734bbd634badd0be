package result

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/bench/worker"
)

// sized is a case of messages of a length: what each variant measured, round by round.
func sized(length int, values map[string][]float64) Case {
	c := Case{Name: fmt.Sprint(SizePrefix, length), Unit: "bit/s"}
	for _, v := range []string{ours, "eager", "get", "put"} {
		if values[v] != nil {
			c.Variants = append(c.Variants, v)
		}
		for round, value := range values[v] {
			c.Rows = append(c.Rows, Row{Round: round, Variant: v, Value: value})
		}
	}
	return c
}

// TestChoice: the choice is held against the protocol with the best median, and may be as much
// slower as that one is in its lower quartile.
func TestChoice(t *testing.T) {
	others := map[string][]float64{"eager": {60, 90, 100, 100, 110}, "get": {200, 10, 20, 30, 40}}
	for _, tt := range []struct {
		chosen []float64
		want   string
	}{
		{[]float64{100, 100, 100, 100, 100}, "met"},
		{[]float64{90, 90, 90, 90, 90}, "met"}, // the lower quartile of eager
		{[]float64{89, 89, 89, 89, 89}, "NOT met"},
		{[]float64{80, 80, 95, 95, 95}, "NOT met"}, // its own lower quartile
		{[]float64{0, 0, 0, 0, 0}, "not measured"},
	} {
		values := map[string][]float64{ours: tt.chosen}
		for k, v := range others {
			values[k] = v
		}
		d := &Document{Cases: []Case{sized(64, values)}}
		found := false
		for _, v := range d.Judge() {
			if v.Goal.Case == "msg-size-64" {
				found = true
				if v.String() != tt.want {
					t.Errorf("%v: %v %s, want %s", tt.chosen, v.Measured, v, tt.want)
				}
			}
		}
		if !found {
			t.Fatal("no goal for msg-size-64")
		}
	}
}

func TestBest(t *testing.T) {
	c := sized(64, map[string][]float64{ours: {9}, "eager": {1}, "get": {3}, "put": {2}})
	for _, tt := range []struct {
		lower bool
		want  string
	}{{false, "get"}, {true, "eager"}} {
		if c.LowerIsBetter = tt.lower; c.Best(ours) != tt.want {
			t.Errorf("lower is better %v: %s, want %s", tt.lower, c.Best(ours), tt.want)
		}
	}
	if got := (&Case{Variants: []string{ours}}).Best(ours); got != "" {
		t.Errorf("the best of nothing is %q", got)
	}
}

func TestProtocolTable(t *testing.T) {
	d := &Document{Cases: []Case{
		{Name: "send-64"},
		sized(4096, map[string][]float64{ours: {2e9}, "get": {1e9}, "put": {4e9}}),
		sized(64, map[string][]float64{"get": {1e9}}),
	}}
	want := [][]string{
		{
			"msg-size-4096", "bit/s", "–", "–", "1G", "4G", "–", "2G", "put", "0.50",
			"0.50 … 0.50",
		},
		{"msg-size-64", "bit/s", "–", "–", "1G", "–", "–", "–", "get", "–", "–"},
	}
	if diff := cmp.Diff(want, d.protocolTable().rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d.Case("send-64") != &d.Cases[0] || d.Case("none") != nil {
		t.Error("cases are not found by their names")
	}
}

// TestAllocationsOfMessages: those of messages are theirs, and those of verbs are not.
func TestAllocationsOfMessages(t *testing.T) {
	c := reliable("msg-64", 4000)
	for i := range c.Rows {
		for k := range c.Rows[i].Workers {
			c.Rows[i].Workers[k].Mode = worker.Messages + " over RC"
		}
	}
	d, judged := &Document{Cases: []Case{reliable("send-64", 1), c}}, 0
	for _, v := range d.Judge() {
		if !strings.HasPrefix(v.Goal.Text, "allocations") || v.Measured.N == 0 {
			continue
		}
		judged++
		want := "met"
		if strings.Contains(v.Goal.Text, "64 B") {
			want = "NOT met"
		}
		if v.String() != want {
			t.Errorf("%s: %s, want %s", v.Goal.Text, v, want)
		}
	}
	if judged != 2 {
		t.Errorf("%d goals were judged", judged)
	}
}
