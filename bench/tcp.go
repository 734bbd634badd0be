package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"

	"xroce/bench/stage"
	"xroce/bench/worker"
)

// kernelTCP measures one TCP stream with iperf3, the kernel as it is by default.
func kernelTCP(ctx context.Context, p *place) (measurement, error) {
	return p.iperf(ctx, parseIperf)
}

// tcpBesideXDP is kernelTCP with an XDP program on both ends that passes
// everything: what an application pays that lives beside AF_XDP. veth turns
// segmentation offload off then.
func tcpBesideXDP(ctx context.Context, p *place) (measurement, error) {
	return besideXDP(kernelTCP)(ctx, p)
}

// besideXDP is run with an XDP program on both ends that passes everything, and NAPI as the kernel
// has it by default.
func besideXDP(run runFunc) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		for _, side := range []stage.Side{stage.A, stage.B} {
			r := role{side, pass, "pass"}
			proc, err := p.Start(ctx, side, p.argv(pass, p.options(r))...)
			if err != nil {
				return measurement{}, err
			}
			defer proc.Close() // the program goes with the process
			if _, err := proc.Ready(); err != nil {
				return measurement{}, err
			}
		}
		if err := p.Unsettle(ctx); err != nil {
			return measurement{}, err
		}
		return run(ctx, p)
	}
}

// iperf runs a server on B and a client on A, with more arguments for that, and parses what the
// client says.
func (p *place) iperf(ctx context.Context, parse func([]byte) (measurement, error),
	more ...string,
) (measurement, error) {
	ctx, cancel := context.WithCancel(ctx)
	server := p.Command(ctx, stage.B, "iperf3", "-s", "-1", "--forceflush",
		"-B", p.Address(stage.B).String())
	stdout, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		cancel()
		return measurement{}, fmt.Errorf("iperf3 -s: %w", err)
	}
	defer func() {
		cancel()
		_ = server.Wait() // ended by itself, or just now by us
	}()
	if err := awaitListening(bufio.NewScanner(stdout)); err != nil {
		return measurement{}, err
	}
	// Whole seconds are all that iperf3 takes. The first one is not counted: what the others
	// do in their warm-up TCP does until its window has opened.
	seconds := strconv.Itoa(int(math.Max(1, math.Round(p.window.Seconds()))))
	args := []string{"iperf3", "-c", p.Address(stage.B).String(), "-t", seconds, "-O", "1", "-J"}
	args = append(args, more...)
	out, err := p.Command(ctx, stage.A, args...).Output()
	if err != nil {
		return measurement{}, fmt.Errorf("iperf3 -c: %w: %s", err, out)
	}
	return parse(out)
}

// awaitListening reads what the server says until it says that it listens.
func awaitListening(lines *bufio.Scanner) error {
	for lines.Scan() {
		if strings.Contains(lines.Text(), "listening") {
			return nil
		}
	}
	return errors.Join(errors.New("iperf3 -s: does not listen"), lines.Err())
}

// parseIperf reads the client's JSON.
func parseIperf(text []byte) (measurement, error) {
	var out struct {
		Error string
		End   struct {
			Received struct {
				Bytes         uint64
				Seconds       float64
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sent struct {
				Retransmits uint64
			} `json:"sum_sent"`
		}
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return measurement{}, fmt.Errorf("iperf3: %w", err)
	}
	if out.Error != "" {
		return measurement{}, fmt.Errorf("iperf3: %s", out.Error)
	}
	got := out.End.Received
	if got.BitsPerSecond == 0 {
		return measurement{}, errNothing
	}
	return measurement{value: got.BitsPerSecond, workers: []worker.Report{{
		Bytes: got.Bytes, Seconds: got.Seconds, Mode: "iperf3",
		Counters: map[string]uint64{"retransmits": out.End.Sent.Retransmits},
	}}}, nil
}

// iperfMissing says why there is no kernel TCP here, or "".
func iperfMissing() string {
	if _, err := exec.LookPath("iperf3"); err != nil {
		return "needs iperf3"
	}
	return ""
}
