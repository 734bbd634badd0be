package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/analysis"
	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture/read"
	"xroce/roce/analyze"
	"xroce/roce/clock"
	"xroce/roce/dissect"
)

// analyzeCommand says what happened in a capture.
func (a *app) analyzeCommand() *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:   "analyze FILE",
		Short: "Say what happened on the connections of a capture",
		Long: `Read a capture, as xroce decode does, and say what happened on each connection: in
plain words what went wrong first, then which operations there were and how long they
took, the throughput, what was sent again and why (a timeout, a probe, a NAK, an RNR NAK,
a selective acknowledge, a lost answer), what the wire doubled and reordered, round-trip
times of acknowledgements, credits, ECN and CNPs, and what is against the architecture,
by clause.

It works on captures of any RoCE: queue pairs are matched by the connection manager where
its messages are in the capture, else by PSNs. A capture of one direction only, or one that
began late, is analyzed as far as it goes. The memory that this takes does not depend on
the size of the file.

--html writes one page with plots of throughput, PSNs and latency. It needs no network.`,
		Example: `  xroce analyze capture.pcapng
  xroce analyze --html report.html capture.pcap.zst
  xroce analyze --json capture.pcapng | jq .diagnosis`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&page, "html", "", "write the report to this file, as a page")
	return a.command(c, func(ctx context.Context, args []string) error {
		if page != "" && a.json {
			return usagef("--html and --json: one of them")
		}
		return a.leave(ctx, func() error { return a.analyze(ctx, args[0], page) })
	})
}

// analyze reports a capture, as far as it can be read.
func (a *app) analyze(ctx context.Context, name, page string) error {
	in, err := a.openCaptureAhead(name)
	if err != nil {
		return err
	}
	defer in.close()
	if a.reads(in, page) {
		return usagef("--html: %s is the capture that is read", page)
	}
	out, err := openResult(page)
	if err != nil {
		return err
	}
	defer out.close()
	var (
		analyzer = analyze.New()
		d        = dissect.Dissector{HeadersOnly: true}
		p        dissect.Packet
	)
	readErr := in.each(ctx, func(c *read.Packet) error {
		d.Now = clock.Time(c.Time)
		d.Dissect(c.Link, c.Data, c.Length, &p)
		analyzer.Add(c.Number, clock.Time(c.Time), c.Dropped, &p)
		return nil
	})
	report := analyzer.Report()
	switch {
	case a.json:
		err = a.printJSON(report)
	case page != "":
		err = out.fill(func(w io.Writer) error {
			return writePage(w, filepath.Base(name), report)
		})
	default:
		var text bytes.Buffer
		if err = analysis.Text(&text, report); err == nil {
			_, err = a.stdout.Write([]byte(plain.Lines(text.String())))
		}
	}
	return errors.Join(err, readErr)
}

// writePage writes a report as a page.
func writePage(w io.Writer, name string, r *analyze.Report) error {
	out := bufio.NewWriter(w)
	if err := analysis.HTML(out, name, r); err != nil {
		return err
	}
	return out.Flush()
}
