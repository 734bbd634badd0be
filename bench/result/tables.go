package result

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"xroce/bench/ratio"
	"xroce/bench/worker"
)

// A table is what is printed, for a terminal or for a page.
type table struct {
	title  string
	header []string
	rows   [][]string
	notes  []string
}

// writeText prints the table in columns. A table without rows is not printed.
func (t *table) writeText(out io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	if t.title != "" {
		fmt.Fprintf(out, "%s\n\n", t.title)
	}
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	_, err := fmt.Fprintf(out, "%s\n", strings.Join(append(t.notes, ""), "\n"))
	return err
}

// writeMarkdown prints the table for a page.
func (t *table) writeMarkdown(out io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	var b strings.Builder
	if t.title != "" {
		fmt.Fprintf(&b, "**%s**\n\n", t.title)
	}
	rule := make([]string, len(t.header))
	for i := range rule {
		rule[i] = "---"
	}
	fmt.Fprintf(&b, "| %s |\n|%s|\n", strings.Join(t.header, " | "), strings.Join(rule, "|"))
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
	if len(t.notes) > 0 {
		b.WriteString(strings.Join(t.notes, "  \n") + "\n\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// perhaps prints a median, or a dash when there is none.
func perhaps(s ratio.Spread, format string) string {
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf(format, s.Median)
}

// within prints quartiles, or a dash when there are none.
func within(s ratio.Spread, format string) string {
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf(format+" … "+format, s.Q1, s.Q3)
}

// rttTable has the percentiles of the round trips, each the median of its rounds.
func (d *Document) rttTable() table {
	t := table{
		title:  "Round trips in ns, halved, medians of the rounds",
		header: []string{"case", "variant", "p50", "p99", "p99.9"},
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		for _, variant := range c.Variants {
			half := func(of func(*worker.RTT) int64) string {
				return perhaps(c.spread(variant, func(r *Row) (float64, bool) {
					if len(r.Workers) == 0 || r.Workers[0].RTT == nil {
						return 0, false
					}
					return float64(of(r.Workers[0].RTT)) / 2, true
				}), "%.0f")
			}
			p50 := half(func(r *worker.RTT) int64 { return r.P50 })
			if p50 == "–" {
				continue
			}
			t.rows = append(t.rows, []string{
				c.Name, variant, p50,
				half(func(r *worker.RTT) int64 { return r.P99 }),
				half(func(r *worker.RTT) int64 { return r.P999 }),
			})
		}
	}
	return t
}
