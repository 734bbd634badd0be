package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"xroce/bench/stage"
	"xroce/bench/worker"
)

// Generators that are programs of their own, and not workers: xroce pktgen and testpmd of DPDK.

// generatorStart is how long a generator may take to begin, before the warm-up.
const generatorStart = 700 * time.Millisecond

// A generator is a program that sends. stop ends it, if it has not ended, and returns how many
// frames it sent, 0 where it does not say.
type generator struct {
	stop func() (sent uint64, err error)
}

// countedInXDP measures what a generator on A sends by what an XDP program on B counts, in a window
// like that of a worker. start is told how long the generator has to send.
func countedInXDP(
	start func(ctx context.Context, p *place, lasts time.Duration) (generator, error),
) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		o := p.options(role{stage.B, sink, "sink"})
		o.Warmup += generatorStart
		reader, err := p.Start(ctx, stage.B, p.argv(sink, o)...)
		if err != nil {
			return measurement{}, err
		}
		defer reader.Close()
		if _, err := reader.Ready(); err != nil {
			return measurement{}, err
		}
		if err := p.Settle(ctx); err != nil {
			return measurement{}, err
		}
		lasts := o.Warmup + o.Window
		g, err := start(ctx, p, lasts+generatorStart)
		if err != nil {
			return measurement{}, err
		}
		if err := reader.Go(""); err != nil {
			_, stopped := g.stop()
			return measurement{}, errors.Join(err, stopped)
		}
		select {
		case <-time.After(lasts):
		case <-ctx.Done():
		}
		sent, err := g.stop()
		if err != nil {
			return measurement{}, err
		}
		report, err := reader.Report(lasts)
		if err != nil {
			return measurement{}, err
		}
		m := measurement{
			value: report.PerSecond(), loss: loss(sent, report.Total),
			workers: []worker.Report{{Total: sent, Mode: "a program"}, report},
		}
		if m.value == 0 {
			return m, errNothing
		}
		return m, nil
	}
}

// pktgenReport is what is read of the JSON of xroce pktgen.
type pktgenReport struct {
	Sent     uint64
	Received *uint64
	Dropped  uint64
	Seconds  float64
}

// pktgen is the command line of xroce pktgen for A. Its frames are as long as those of the case.
func (p *place) pktgen(lasts time.Duration, more ...string) []string {
	path, _ := p.command()
	return append([]string{
		path, "pktgen", "-d", p.Interface(stage.A), "--to", p.Address(stage.B).String(),
		"--size", fmt.Sprint(p.c.sockets.Frame), "--duration", lasts.String(), "--json",
	}, more...)
}

// startPktgen runs xroce pktgen as fast as it goes.
func startPktgen(ctx context.Context, p *place, lasts time.Duration) (generator, error) {
	cmd := p.Command(ctx, stage.A, p.pktgen(lasts)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return generator{}, fmt.Errorf("xroce pktgen: %w", err)
	}
	return generator{func() (uint64, error) {
		if err := cmd.Wait(); err != nil { // it ends by itself
			return 0, fmt.Errorf("xroce pktgen: %w: %s", err, stderr.Bytes())
		}
		var r pktgenReport
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			return 0, fmt.Errorf("xroce pktgen: %w", err)
		}
		return r.Sent, nil
	}}, nil
}

// testpmdArgs has testpmd send frames of a size from an interface over AF_XDP, with the options
// that its driver has by default, on the processors that it is started on.
func testpmdArgs(ifname string, size int) []string {
	return []string{
		"stdbuf", "-oL", // it is to be seen when it has begun
		"dpdk-testpmd", "--lcores", "(0,1)@" + testpmdCPUs, "--no-shconf", "--no-huge", "-m", "256",
		"--no-pci", "--vdev", "net_af_xdp0,iface=" + ifname, "--",
		"--forward-mode=txonly", fmt.Sprintf("--txpkts=%d", size), "--total-num-mbufs=8192",
	}
}

// testpmdCPUs stands for the processor of A in testpmdArgs.
const testpmdCPUs = "CPU"

// testpmdCommand is testpmd on A, one thread for its prompt and one that sends, both on the
// processor of A.
func testpmdCommand(ctx context.Context, st *stage.Stage, size int) *exec.Cmd {
	args := testpmdArgs(st.Interface(stage.A), size)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], testpmdCPUs, fmt.Sprint(st.Settings().CPUs[stage.A]))
	}
	return st.Command(ctx, stage.A, args...)
}

// startTestpmd runs testpmd until it is told to stop.
func startTestpmd(ctx context.Context, p *place, _ time.Duration) (generator, error) {
	cmd := testpmdCommand(ctx, p.Stage, p.c.sockets.Frame)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return generator{}, fmt.Errorf("testpmd: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return generator{}, fmt.Errorf("testpmd: %w", err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return generator{}, fmt.Errorf("testpmd: %w", err)
	}
	stop := func() (uint64, error) {
		// Who has ended already needs no word.
		_, _ = io.WriteString(stdin, "\n")
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			return 0, fmt.Errorf("testpmd: %w: %s", err, complaint(said.Bytes()))
		}
		return 0, nil
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "txonly packet forwarding") {
			return generator{stop}, nil
		}
	}
	_, err = stop()
	return generator{}, errors.Join(errors.New("testpmd: it does not send"), lines.Err(), err)
}

// testpmdMissing tries testpmd on a stage of its own, and says why it does not run, or "".
func testpmdMissing(ctx context.Context) (why string) {
	if why := programMissing("dpdk-testpmd", "dpdk"); why != "" {
		return why
	}
	st, err := stage.Open(ctx, stage.Options{MTU: 1500})
	if err != nil {
		return err.Error()
	}
	defer func() {
		if err := st.Close(); err != nil && why == "" {
			why = err.Error()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, testpmdPatience)
	defer cancel()
	// Without standard input it ends as soon as it has begun.
	out, err := testpmdCommand(ctx, st, shortLength).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("testpmd: %v: %s", err, complaint(out))
	}
	return ""
}

// testpmdPatience is how long testpmd may take to begin and end.
const testpmdPatience = time.Minute

// complaint is the line that says what was wrong, of all that a program said.
func complaint(text []byte) string {
	last := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		lower := strings.ToLower(line)
		for _, word := range []string{"error", "fail", "cannot", "unable", "no free", "not "} {
			if strings.Contains(lower, word) {
				return line
			}
		}
		if line != "" {
			last = line
		}
	}
	return last
}
