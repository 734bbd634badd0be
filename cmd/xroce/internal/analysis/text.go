package analysis

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"xroce/roce/analyze"
	"xroce/roce/clock"
)

// maxText is how many connections the text tells of, the largest first.
const maxText = 50

// Text prints a report for people.
func Text(w io.Writer, r *analyze.Report) error {
	var b strings.Builder
	for _, line := range r.Diagnosis {
		fold(&b, line)
	}
	fmt.Fprintf(&b, "\n%d packets, %s, %s; %d of RoCE, %d of the connection manager\n", r.Packets,
		size(r.Bytes), span(r.Duration), r.RoCE, r.Manager)
	for i := range r.Connections[:min(len(r.Connections), maxText)] {
		connection(&b, i+1, &r.Connections[i])
	}
	if more := len(r.Connections) - maxText; more > 0 {
		fmt.Fprintf(&b, "\nand %d more connections; --json has all\n", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fold prints a sentence in lines of at most maxColumns, unless a word is longer.
func fold(b *strings.Builder, text string) {
	const maxColumns = 90
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			b.WriteString("* ")
			column = 2
		case column+1+n > maxColumns:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
}

func connection(b *strings.Builder, n int, c *analyze.Connection) {
	fmt.Fprintf(b, "\nConnection %d: %s", n, c.Service)
	if c.MTU > 0 {
		fmt.Fprintf(b, ", path MTU %d", c.MTU)
	}
	if c.OneSided {
		b.WriteString(", one direction only")
	}
	b.WriteByte('\n')
	for i := range c.Directions {
		direction(b, &c.Directions[i])
	}
}

// title names a direction.
func title(d *analyze.Direction) string {
	from := d.From.String()
	if d.KnowsQPN {
		from += fmt.Sprintf(" QP 0x%06x", d.FromQPN)
	}
	return fmt.Sprintf("%s > %s QP 0x%06x", from, d.To, d.ToQPN)
}

func direction(b *strings.Builder, d *analyze.Direction) {
	fmt.Fprintf(b, "  %s: %d packets, %s of payload", title(d), d.Packets, size(d.Payload))
	if d.Rate > 0 {
		fmt.Fprintf(b, ", %s", rate(d.Rate))
	}
	b.WriteByte('\n')
	for _, line := range facts(d) {
		fmt.Fprintf(b, "    %-24s %s\n", line[0], line[1])
	}
}

// facts are the rows of a direction, each a name and what there is to say.
func facts(d *analyze.Direction) (rows [][2]string) {
	row := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	for _, o := range d.Operations {
		row(o.Kind, "%d, %s%s", o.Count, size(o.Bytes), quantiles(", latency ", o.Latency))
	}
	if d.RTT != nil {
		row("ACK round trip", "%s", quantiles("", d.RTT))
	}
	for _, r := range d.Resent {
		row("sent again: "+r.Cause, "times %d, packets %d, waited %s, longest %s", r.Episodes,
			r.Packets.Count, span(r.Waited), span(r.Longest))
	}
	for _, n := range []struct {
		name string
		n    analyze.Numbers
	}{
		{"gaps", d.Missing},
		{"reordered", d.Reordered},
		{"doubled by the wire", d.Duplicated},
		{"READ answers lost", d.LostAnswers},
		{"RNR NAKs sent", d.RNRs},
		{"marked ECN CE", d.CE},
		{"ECN capable", d.ECT},
		{"CNPs", d.CNPs},
	} {
		if n.n.Count > 0 {
			row(n.name, "%d%s", n.n.Count, list(n.n))
		}
	}
	for _, n := range d.NAKs {
		row(n.Code, "%d%s", n.Count, list(n.Numbers))
	}
	if d.Acks > 0 {
		row("ACKs sent", "%d, %d of them twice, %d selective", d.Acks, d.DuplicateAck,
			d.SelectiveAck)
	}
	if d.Credits != nil {
		row("credits", "at least %d, at last %d", d.Credits.Fewest, d.Credits.Last)
	}
	if d.Unanswered > 0 {
		row("unanswered at the end", "%d", d.Unanswered)
	}
	return rows
}

// list names the first packets of something.
func list(n analyze.Numbers) string {
	text := fmt.Sprint(n.Packets)
	text = " (packets " + strings.Trim(text, "[]")
	if n.Count > len(n.Packets) {
		text += " ..."
	}
	return text + ")"
}

func quantiles(before string, l *analyze.Latency) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%smedian %s, 99%% %s, max %s", before, span(l.P50), span(l.P99),
		span(l.Max))
}

// size is a number of bytes.
func size(n uint64) string {
	f, unit := float64(n), 0
	for f >= 1000 && unit < 4 {
		f /= 1000
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.4g %cB", f, "kMGT"[unit-1])
}

// rate is a number of bits per second.
func rate(f float64) string {
	unit := 0
	for f >= 1000 && unit < 4 {
		f /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %s", f, [...]string{
		"bit/s", "kbit/s", "Mbit/s", "Gbit/s",
		"Tbit/s",
	}[unit])
}

// span is a duration with some four digits.
func span(t clock.Time) string {
	d := time.Duration(t)
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 1000).String()
		}
	}
	return d.String()
}
