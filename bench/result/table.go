package result

import (
	"fmt"
	"io"
	"strings"

	"xroce/bench/ratio"
)

// WriteText prints the ratios, with the medians they are made of, and what else
// there is to tell, for a terminal.
func (d *Document) WriteText(out io.Writer) error {
	tables := append([]table{d.ratioTable()}, d.otherTables()...)
	for i := range tables {
		if err := tables[i].writeText(out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s\n", strings.Join(d.notes(), "\n"))
	return err
}

// otherTables are the same for a terminal and for a page.
func (d *Document) otherTables() []table {
	return []table{
		d.tunnelTable(), d.rttTable(), d.lossTable(), d.costTable(), d.profileTable(),
		d.goalTable(),
	}
}

// ratioTable is every comparison with the amounts it is made of.
func (d *Document) ratioTable() table {
	t := table{header: []string{
		"case", "variant", "against", "ratio", "quartiles", "variant's", "peer's", "unit", "pairs",
		"void", "stage",
	}}
	for i := range d.Cases {
		c := &d.Cases[i]
		for _, cmp := range c.Compare() {
			t.rows = append(t.rows, []string{
				c.Name, cmp.Variant, cmp.Peer, cmp.median(), cmp.quartiles(), typical(cmp.Ours),
				typical(cmp.Peers), c.unit(), fmt.Sprint(cmp.Ratio.N), fmt.Sprint(cmp.Void),
				tuning(c.Settings),
			})
		}
		for _, s := range c.Skipped {
			t.rows = append(t.rows, []string{
				c.Name, s.Variant, "–", "–", "–", "–", "–", "–", "–", "skipped: " + s.Reason, "–",
			})
		}
	}
	return t
}

// WriteMarkdown prints the ratios as a table for a page, without the amounts they
// are made of, since those are the machine's more than ours; then the others.
func (d *Document) WriteMarkdown(out io.Writer) error {
	t := table{header: []string{
		"case", "what", "variant", "against", "ratio", "quartiles", "pairs", "stage",
	}}
	for i := range d.Cases {
		c := &d.Cases[i]
		what := c.Title + ", " + c.unit()
		for _, cmp := range c.Compare() {
			pairs := fmt.Sprint(cmp.Ratio.N)
			if cmp.Void > 0 {
				pairs += fmt.Sprintf(" (%d void)", cmp.Void)
			}
			t.rows = append(t.rows, []string{
				c.Name, what, cmp.Variant, cmp.Peer, cmp.median(), cmp.quartiles(), pairs,
				tuning(c.Settings),
			})
		}
		for _, s := range c.Skipped {
			t.rows = append(t.rows, []string{
				c.Name, c.Title, s.Variant, "–", "–", "–", "skipped: " + s.Reason, "–",
			})
		}
	}
	for _, one := range append([]table{t}, d.otherTables()...) {
		if err := one.writeMarkdown(out); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, strings.Join(d.notes(), "  \n")+"\n")
	return err
}

// notes are the facts without which the table must not be read.
func (d *Document) notes() []string {
	notes := []string{
		d.Machine.String() + ".",
		fmt.Sprintf("%s, windows of %.3g s, load average %.2f at the start.",
			d.Time.UTC().Format("2006-01-02 15:04 UTC"), d.Window, d.Load),
	}
	if len(d.Cases) > 0 {
		s := d.Cases[0].Settings
		notes = append(notes, fmt.Sprintf("%s, AF_XDP in copy mode, qdisc %s where not said "+
			"otherwise: these are not the numbers of a network card.", s.Driver, s.Qdisc))
	}
	if d.Quick {
		notes = append(notes, "QUICK RUN: windows this short say nothing about speed.")
	}
	return notes
}

func (c *Case) unit() string {
	if c.LowerIsBetter {
		return c.Unit + ", lower is better"
	}
	return c.Unit
}

// typical is the median as an amount.
func typical(s ratio.Spread) string {
	if s.N == 0 {
		return "–"
	}
	return amount(s.Median)
}

func (c Comparison) median() string { return perhaps(c.Ratio, "%.2f") }

func (c Comparison) quartiles() string { return within(c.Ratio, "%.2f") }

// amount prints three significant digits with a suffix for thousands.
func amount(v float64) string {
	for _, s := range []struct {
		size   float64
		suffix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= s.size {
			return fmt.Sprintf("%.3g%s", v/s.size, s.suffix)
		}
	}
	return fmt.Sprintf("%.3g", v)
}
