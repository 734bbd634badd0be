package stat

import (
	"fmt"
	"strings"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/pager"
)

// maxRows is how many queue pairs a table has.
const maxRows = 20

// AppendTable prints counters and queue pairs of a device.
func (d *Device) AppendTable(b *strings.Builder, all bool) {
	fmt.Fprintf(b, "%s: pid %d comm %s qp %d mr %d cq %d\n", plain.Text(d.Name), d.PID,
		plain.Text(d.Comm), d.Objects.QP, d.Objects.MR, d.Objects.CQ)
	for _, name := range d.Names(all) {
		fmt.Fprintf(b, "  %-26s %d\n", plain.Text(name), d.Counters[name])
	}
	for i, q := range d.QPs {
		if i == maxRows {
			fmt.Fprintf(b, "  and %d more queue pairs, see xroce res qp\n", d.Objects.QP-i)
			break
		}
		fmt.Fprintf(b, "  qp 0x%06x %s %s peer 0x%06x sq-psn 0x%06x rq-psn 0x%06x", q.LQPN,
			plain.Text(q.Type), plain.Text(q.State), q.RQPN, q.SQPSN, q.RQPSN)
		fmt.Fprintf(b, " sends %d recvs %d", q.SendQueue, q.RecvQueue)
		appendNumbers(b, d.order, q.Counters)
		b.WriteString("\n")
	}
	for i, m := range d.MRs {
		if i == maxRows {
			fmt.Fprintf(b, "  and %d more regions, see xroce res mr\n", len(d.MRs)-i)
			break
		}
		fmt.Fprintf(b, "  mr %d mrlen %d", m.MRN, m.Len)
		names, numbers := paging(m.ODP)
		appendNumbers(b, names, numbers)
		b.WriteString("\n")
	}
}

// Paging prints what was counted for a region with on-demand paging on a line.
func Paging(s *pager.Stats) string {
	names, numbers := paging(s)
	words := make([]string, 0, len(names))
	for _, name := range names {
		words = append(words, fmt.Sprintf("%s %d", name, numbers[name]))
	}
	return strings.Join(words, " ")
}

// paging is what was counted for a region with on-demand paging, with the names of 'rdma
// statistic show mr', and the time that accesses waited.
func paging(s *pager.Stats) (names []string, numbers map[string]uint64) {
	names = []string{
		"page_faults", "page_faults_handled", "page_invalidations",
		"page_invalidations_handled", "page_prefetch", "page_fault_wait_ns",
	}
	return names, map[string]uint64{
		names[0]: s.PageFaults, names[1]: s.PageFaultsHandled, names[2]: s.PageInvalidations,
		names[3]: s.PageInvalidationsHandled, names[4]: s.PagePrefetch,
		names[5]: uint64(s.PageFaultWait),
	}
}

// numberLine is how long a line of appendNumbers may be.
const numberLine = 96

// appendNumbers prints names with their numbers below a line, in the order of the counters of the
// device.
func appendNumbers[N uint64 | float64](b *strings.Builder, order []string, numbers map[string]N) {
	left := 0
	for _, name := range order {
		n, ok := numbers[name]
		if !ok {
			continue
		}
		word := fmt.Sprintf(" %s %v", plain.Text(name), n)
		if f, ok := any(n).(float64); ok {
			word = fmt.Sprintf(" %s %.0f", plain.Text(name), f)
		}
		if left -= len(word); left < 0 {
			b.WriteString("\n    ")
			left = numberLine - len(word)
		}
		b.WriteString(word)
	}
}

// AppendTable prints what happened at a device.
func (c *Change) AppendTable(b *strings.Builder) {
	fmt.Fprintf(b, "%s: pid %d comm %s, per second\n", plain.Text(c.Name), c.PID,
		plain.Text(c.Comm))
	for _, name := range c.Order {
		fmt.Fprintf(b, "  %-26s %.0f\n", plain.Text(name), c.Rates[name])
	}
	for i, q := range c.QPs {
		if i == maxRows || q.SQRate+q.RQRate == 0 && len(q.Rates) == 0 {
			break
		}
		fmt.Fprintf(b, "  qp 0x%06x %s %s peer 0x%06x sq-psn %.0f rq-psn %.0f", q.LQPN,
			plain.Text(q.Type), plain.Text(q.State), q.RQPN, q.SQRate, q.RQRate)
		appendNumbers(b, c.all, q.Rates)
		b.WriteString("\n")
	}
}

// Screen is what xroce top shows: devices, then the busiest queue pairs of all, in at most so
// many lines.
func Screen(changes []Change, lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %8s %12s %12s %10s %10s %10s %10s %6s\n", "DEVICE", "PID", "TX pkt/s",
		"RX pkt/s", "TX Mbit/s", "RX Mbit/s", "AGAIN/s", "DROPS/s", "QPs")
	left := lines - 3
	for i := range changes {
		c := &changes[i]
		if left--; left < 0 {
			break
		}
		fmt.Fprintf(&b, "%-12.18s %8d %12.0f %12.0f %10.1f %10.1f %10.0f %10.0f %6d\n",
			plain.Text(c.Name), c.PID, c.Rates["sent_pkts"], c.Rates["rcvd_pkts"],
			c.Rates["sent_bytes"]*8/1e6, c.Rates["rcvd_bytes"]*8/1e6, c.Rates["retransmits"],
			c.Drops, len(c.QPs))
		for _, name := range c.Order {
			if left > 0 && IsDrop(name) {
				left--
				fmt.Fprintf(&b, "    %-26s %.0f/s\n", plain.Text(name), c.Rates[name])
			}
		}
	}
	fmt.Fprintf(&b, "\n%-12s %8s %10s %10s %-9s %-6s %12s %12s %6s %6s\n", "DEVICE", "PID", "QP",
		"PEER", "TYPE", "STATE", "SQ-PSN/s", "RQ-PSN/s", "SENDS", "RECVS")
	for i := range changes {
		c := &changes[i]
		for _, q := range c.QPs {
			if left--; left < 0 {
				return b.String()
			}
			fmt.Fprintf(&b, "%-12.18s %8d   0x%06x   0x%06x %-9s %-6s", plain.Text(c.Name),
				c.PID, q.LQPN, q.RQPN, plain.Text(q.Type), plain.Text(q.State))
			fmt.Fprintf(&b, " %12.0f %12.0f %6d %6d\n", q.SQRate, q.RQRate, q.SendQueue,
				q.RecvQueue)
		}
	}
	return b.String()
}
