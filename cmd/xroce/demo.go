package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/demo"
	"xroce/cmd/xroce/internal/progress"
	"xroce/engine"
)

func (a *app) demoCommand() *cobra.Command {
	var o demo.Options
	var device deviceFlags
	var size int
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show two hosts at work on this machine",
		Long: `Show the stack at work on this machine, without hardware and without touching any
of its interfaces. As root it makes two network namespaces joined by a virtual
cable and runs over AF_XDP; without root, or where AF_XDP is not to be had, it runs
on a simulated network and says why.

It carries out every operation of reliable and unreliable connections at several
sizes, atomics, memory windows that are revoked, matrix columns under one key,
datagrams, shared receive queues and XRC, with every byte and every completion
compared, writes to memory whose pages come and go, sends a message by each protocol
of messages, carries Ethernet frames and IP packets in the headers of InfiniBand, and
reads its own packets back from the capture, which shows what control messages each
message caused. Then it copies a file, copies one over a cable that loses 5 % of the
frames, and measures.
Everything it makes is removed at the end.`,
		Example: `  sudo xroce demo                       # over AF_XDP
  xroce demo                            # on the simulated network
  sudo xroce demo --capture demo.pcapng && wireshark demo.pcapng
  xroce demo --sim --json --size 4096   # one size, for programs`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&o.Capture, "capture", "", "keep the packets in this pcapng file")
	flags.BoolVar(&o.Keep, "keep", false, "leave the namespaces and files for a look")
	flags.BoolVar(&o.Simulated, "sim", false, "use the simulated network")
	flags.IntVar(&size, "size", 0, "messages of that many bytes (default 1, 64, 4096, 1 MiB)")
	flags.DurationVar(&o.CellTime, "time", 200*time.Millisecond, "how long each rate is measured")
	flags.Int64Var(&o.FileSize, "file-size", 64<<20, "least size of the copied file in bytes")
	device.registerOpen(flags)
	return a.command(c, func(ctx context.Context, _ []string) error {
		switch {
		case c.Flags().Changed("size") && (size < 1 || size > demo.MaxSize):
			return usagef("--size %d is not in 1..%d", size, demo.MaxSize)
		case o.CellTime <= 0 || o.CellTime > 10*time.Second:
			return usagef("--time %s is not above 0 and up to 10s", o.CellTime)
		case o.FileSize < 0 || o.FileSize > 1<<32:
			return usagef("--file-size %d is not in 0..%d", o.FileSize, int64(1<<32))
		case size > 0:
			o.Sizes = []int{size}
		}
		var err error
		if o.Device, err = device.options(a); err != nil {
			return err
		}
		if o.Device.Backend == engine.BackendAsavie {
			return usagef("the demonstration opens a queue several times, which backend %s can "+
				"do once in a process", engine.BackendAsavie)
		}
		return a.demo(ctx, o)
	})
}

// demo runs the demonstration and prints what it came to.
func (a *app) demo(ctx context.Context, o demo.Options) error {
	if o.Simulated {
		o.Reason = "asked for"
	}
	o.Hook, o.Opened, o.Dir = a.demoHook, a.show, a.demoDir
	o.Started = func(w demo.Wire) {
		if !a.json {
			a.printf("%s\n", w)
		}
	}
	var line *progress.Line
	var stage demo.Stage
	o.Progress = func(s demo.Stage, done, total, step int64) {
		if s != stage {
			if line != nil {
				line.Close()
			}
			stage, line = s, a.progress("demo: "+string(s), step == 1)
		}
		line.Update(done, total)
	}
	report, err := demo.Run(ctx, o)
	if line != nil {
		line.Close()
	}
	switch {
	case a.json:
		if jsonErr := a.printJSON(report); jsonErr != nil {
			return jsonErr
		}
	case err == nil || report.Wire.Backend != "": // else nothing began
		a.printDemo(&report)
	}
	if err != nil {
		return err
	}
	if report.Failed > 0 {
		return exitError{exitFailure, nil}
	}
	return nil
}

// printDemo prints what came after the first line.
func (a *app) printDemo(r *demo.Report) {
	for _, s := range r.Scenes {
		a.printf("%-8s %3d checks: %s\n", s.Name, s.Checks, s.What)
		for _, note := range s.Notes {
			a.printf("%-8s   %s\n", "", note)
		}
	}
	if r.Capture.Packets > 0 {
		where := ""
		if r.Capture.File != "" {
			where = " in " + r.Capture.File
		}
		a.printf("capture: %d packets%s, %d sent again\n", r.Capture.Packets, where,
			r.Capture.Retransmits)
		if r.Capture.File != "" {
			a.printf("read it: tshark --disable-protocol rpcordma -r %s\n", r.Capture.File)
		}
	}
	if len(r.Messages) > 0 {
		a.printf("%s", messagePictures(r.Messages))
	}
	if r.Copy.Bytes > 0 {
		a.printf("copy: %s, %s in %.2f s, %.2f Gb/s, SHA-256 %s\n", r.Copy.Source,
			progress.Bytes(r.Copy.Bytes), r.Copy.Seconds, r.Copy.GbPerSecond(), r.Copy.SHA256[:16])
	}
	if len(r.Loss) > 0 {
		a.printf("\n%s", lossTable(r.Loss))
	}
	if len(r.Rows) > 0 {
		a.printf("\n%s\n", demoTable(r.Rows))
	}
	for _, f := range r.Failures {
		a.printf("FAILED: %s\n", f)
	}
	if len(r.Kept) > 0 {
		a.printf("kept; to remove it:\n  %s\n", strings.Join(r.Kept, "\n  "))
	}
	a.printf("demo: %d passed, %d failed\n", r.Passed, r.Failed)
}

// messagePictures prints what messages said on the wire.
func messagePictures(speeches []demo.Speech) string {
	var b strings.Builder
	arrows := [2]string{"-->", "<--"}
	b.WriteString("what messages said, read back from the capture:\n")
	for _, s := range speeches {
		fmt.Fprintf(&b, "  %s", s.What)
		if s.Protocol != "" {
			fmt.Fprintf(&b, ", %d bytes: %s", s.Size, s.Why)
		}
		b.WriteString("\n")
		for _, line := range s.Lines {
			fmt.Fprintf(&b, "    %s %s\n", arrows[line.From], line.Text)
		}
	}
	return b.String()
}

// lossTable prints what the loss of frames cost.
func lossTable(rows []demo.LossRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %8s %8s %8s %8s %8s %12s  %s\n", "recovery", "size", "seconds",
		"Gb/s", "frames", "lost", "sent again", "SHA-256")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-20s %8s %8.2f %8.3f %8d %8d %12d  %s\n", r.Recovery,
			progress.Bytes(r.Bytes), r.Seconds, r.GbPerSecond(), r.Frames, r.Lost, r.Retransmits,
			r.SHA256[:16])
	}
	fmt.Fprintf(&b, "One file over a cable that loses %.0f %% of the frames in each direction, "+
		"received whole.\n", 100*rows[0].Share)
	for _, r := range rows {
		if r.Tries > 1 {
			fmt.Fprintf(&b, "The hosts were held up, and %s lost its connection: this is "+
				"try %d, with longer timeouts.\n", r.Recovery, r.Tries)
		}
	}
	return b.String()
}

// demoTable prints the rates, aligned.
func demoTable(rows []demo.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-21s %8s %12s %8s %19s\n", "operation", "bytes", "messages/s", "Gb/s",
		"half round trip us")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-21s %8d %12.0f %8.3f %19.2f\n", r.Operation, r.Size, r.Messages,
			r.Gigabits, r.Microseconds)
	}
	b.WriteString("One QP, up to 64 messages in flight; payload only; both hosts in this " +
		"process, each\npolled by its own thread (direct mode). READ and atomics: the whole " +
		"round trip.\n")
	return b.String()
}
