package result

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"xroce/bench/ratio"
	"xroce/bench/stage"
)

// RunsWanted is how many whole runs numbers are published of, at least: what one run says is
// also the weather of its hour.
const RunsWanted = 5

// Runs are whole runs of the harness, of which each has the same weight.
type Runs []*Document

// Check says why the runs cannot be summed up. cases are the names of what a whole run
// measures: a rerun of some of them is not one, and replaces nothing.
func (r Runs) Check(cases []string) error {
	if len(r) < RunsWanted {
		return fmt.Errorf("result: %d runs, want %d at least", len(r), RunsWanted)
	}
	seen := map[int64]bool{}
	for _, d := range r {
		when := d.Time.Format("2006-01-02 15:04:05")
		switch {
		case d.Quick:
			return fmt.Errorf("result: the run of %s is a quick one", when)
		case seen[d.Time.UnixNano()]:
			return fmt.Errorf("result: the run of %s is there twice", when)
		case d.Window != r[0].Window || d.Pairs != r[0].Pairs:
			return fmt.Errorf("result: the run of %s has %d rounds of %gs, another %d of %gs",
				when, d.Pairs, d.Window, r[0].Pairs, r[0].Window)
		}
		seen[d.Time.UnixNano()] = true
		for _, name := range cases {
			if c := d.Case(name); c == nil || len(c.Rows) == 0 {
				return fmt.Errorf("result: the run of %s is not whole: it has no %s", when, name)
			}
		}
	}
	return nil
}

// WriteText prints the tables for a terminal.
func (r Runs) WriteText(out io.Writer) error {
	var failed error
	for _, t := range r.tables() {
		failed = errors.Join(failed, t.writeText(out))
	}
	return failed
}

// WriteMarkdown prints the tables for a page.
func (r Runs) WriteMarkdown(out io.Writer) error {
	var failed error
	for _, t := range r.tables() {
		failed = errors.Join(failed, t.writeMarkdown(out))
	}
	return failed
}

func (r Runs) tables() []table { return []table{r.goalTable(), r.ratioTable()} }

// ratioTable is every comparison: the median of the runs' medians, and how far they spread.
func (r Runs) ratioTable() table {
	t := table{
		title: fmt.Sprintf("Medians of %d whole runs", len(r)),
		header: []string{
			"case", "variant", "against", "ratio", "spread", "runs", "stage",
		},
		notes: r.notes(),
	}
	if len(r) == 0 {
		return t
	}
	for i := range r[0].Cases {
		first := &r[0].Cases[i]
		for _, cmp := range first.Compare() {
			s := r.spread(func(d *Document) ratio.Spread {
				c := d.Case(first.Name)
				if c == nil {
					return ratio.Spread{}
				}
				return c.compare(cmp.Variant, cmp.Peer).Ratio
			})
			t.rows = append(t.rows, []string{
				first.Name, cmp.Variant, cmp.Peer, perhaps(s, "%.2f"), extremes(s, "%.2f"),
				fmt.Sprint(s.N), tuning(first.Settings),
			})
		}
	}
	return t
}

// goalTable holds the medians of the runs against the goals.
func (r Runs) goalTable() table {
	t := table{
		title:  "Goals, by the medians of the runs",
		header: []string{"goal", "bar", "median", "spread", "runs", "verdict"},
	}
	for _, g := range Goals() {
		s := r.spread(func(d *Document) ratio.Spread { return g.measure(d, &g) })
		if s.N == 0 && !r.concern(g) {
			continue // no part of a whole run
		}
		sign := "≥"
		if g.AtMost {
			sign = "≤"
		}
		t.rows = append(t.rows, []string{
			g.Text, fmt.Sprintf("%s %g", sign, g.Bar), perhaps(s, "%.3g"), extremes(s, "%.3g"),
			fmt.Sprint(s.N), Verdict{g, s}.String(),
		})
	}
	return t
}

// concern reports whether a run has the case of a goal.
func (r Runs) concern(g Goal) bool {
	return slices.ContainsFunc(r, func(d *Document) bool { return d.Case(g.Case) != nil })
}

// spread is where the runs' medians of something lie.
func (r Runs) spread(of func(*Document) ratio.Spread) ratio.Spread {
	var medians []float64
	for _, d := range r {
		if s := of(d); s.N > 0 {
			medians = append(medians, s.Median)
		}
	}
	return ratio.SpreadOf(medians)
}

// notes say what was run when, and on what.
func (r Runs) notes() []string {
	var list, commits, machines []string
	for _, d := range r {
		when := d.Time.Format("2006-01-02 15:04")
		list = append(list, fmt.Sprintf("%s (load %.2f)", when, d.Load))
		if !slices.Contains(commits, d.Machine.Commit) {
			commits = append(commits, d.Machine.Commit)
		}
		f := d.Machine
		one := fmt.Sprintf("%d × %s, Linux %s, %s", f.CPUs, f.CPU, f.Kernel, f.Go)
		if !slices.Contains(machines, one) {
			machines = append(machines, one)
		}
	}
	return []string{
		"Runs: " + strings.Join(list, ", ") + ".",
		"Commit: " + strings.Join(commits, ", ") + ".",
		"Machine: " + strings.Join(machines, "; ") + ".",
		"Ratio: the median over the runs of the median of a run's rounds; spread: the smallest " +
			"and the largest of these.",
	}
}

// tuning names in short what decides on veth what is measured: the qdisc, and where NAPI runs.
func tuning(s stage.Settings) string {
	if s.Qdisc == "" {
		return "–"
	}
	qdisc, _, _ := strings.Cut(s.Qdisc, " ")
	napi := "softirq"
	if strings.HasPrefix(s.NAPI, "threaded") {
		napi = "thread"
	}
	return strings.TrimSuffix(qdisc, ",") + ", NAPI " + napi
}

// extremes prints the smallest and the largest, or a dash when there are none.
func extremes(s ratio.Spread, format string) string {
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf(format+" … "+format, s.Smallest, s.Largest)
}
