package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"xroce/bench/stage"
	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// UCX as it is installed, over kernel TCP, measured by its own program ucx_perftest. It counts
// messages, not time, so it is told how many it is likely to move in a window.

// A ucxTest is a test of ucx_perftest.
type ucxTest struct {
	name string // for -t
	few  int    // messages of the look at how fast it goes
	// value reads the row's value off what the client says.
	value func(ucxLine) float64
}

// ucxLimit is how much longer than its window a test may take.
var ucxLimit = timeout.Scaled(20 * time.Second)

// run measures messages of so many bytes, one way or there and back. A few of them tell how many
// are a warm-up and a window.
func (t ucxTest) run(size int) runFunc {
	return func(ctx context.Context, p *place) (m measurement, err error) {
		ctx, cancel := context.WithTimeout(ctx, p.warmup+p.window+ucxLimit)
		defer cancel()
		look, err := t.measure(ctx, p, size, t.few, t.few/10)
		if err != nil {
			return m, gaveUp(ctx, err)
		}
		n := func(d time.Duration) int { return max(t.few/10, int(look.perSecond*d.Seconds())) }
		line, err := t.measure(ctx, p, size, n(p.window), n(p.warmup))
		if err != nil {
			return m, gaveUp(ctx, err)
		}
		m.value = t.value(line)
		m.workers = []worker.Report{{
			Packets: uint64(line.iterations), Bytes: uint64(line.iterations) * uint64(size),
			Seconds: line.iterations / line.perSecond, Total: uint64(line.iterations),
			Mode: "UCX over TCP",
		}}
		return m, nil
	}
}

// gaveUp is an error of a program that was ended because it took too long.
func gaveUp(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errGaveUp, err)
	}
	return err
}

// measure runs both ends for n messages behind some that do not count.
func (t ucxTest) measure(ctx context.Context, p *place, size, n, warmup int) (ucxLine, error) {
	ctx, cancel := context.WithCancel(ctx)
	args := []string{
		"-t", t.name, "-s", strconv.Itoa(size), "-n", strconv.Itoa(n), "-w", strconv.Itoa(warmup),
		"-f", "-v",
	}
	server := p.ucx(ctx, stage.B, args...)
	if err := server.Start(); err != nil {
		cancel()
		return ucxLine{}, fmt.Errorf("ucx_perftest: %w", err)
	}
	defer func() {
		cancel()
		_ = server.Wait() // ended by itself, or just now by us
	}()
	if err := awaitUCX(ctx, server.Process.Pid); err != nil {
		return ucxLine{}, err
	}
	client := p.ucx(ctx, stage.A, append([]string{p.Address(stage.B).String()}, args...)...)
	out, err := client.CombinedOutput()
	if err != nil {
		return ucxLine{}, fmt.Errorf("ucx_perftest: %w: %s", err, out)
	}
	return parseUCX(string(out))
}

// ucx is the program on a side, over TCP on its interface alone.
func (p *place) ucx(ctx context.Context, side stage.Side, args ...string) *exec.Cmd {
	cmd := p.Command(ctx, side, append([]string{ucxProgram}, args...)...)
	cmd.Env = append(os.Environ(), "UCX_TLS=tcp", "UCX_NET_DEVICES="+p.Interface(side),
		"UCX_WARN_UNUSED_ENV_VARS=n")
	cmd.WaitDelay = time.Second
	return cmd
}

const ucxProgram = "ucx_perftest"

// awaitUCX waits until the server listens. It would say so, if anybody saw it: its standard output
// waits in a buffer until it ends. So we look at the sockets of its namespace.
func awaitUCX(ctx context.Context, pid int) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
		if err != nil {
			return fmt.Errorf("ucx_perftest: the server is gone: %w", err)
		}
		if listens(string(text), ucxPort) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("ucx_perftest: the server does not listen: %w", ctx.Err())
		}
	}
}

// ucxPort is where the server waits when nobody says otherwise.
const ucxPort = 13337

// listens reports whether /proc/net/tcp has a socket in state LISTEN at a port.
func listens(table string, port int) bool {
	const localAddress, state, listen = 1, 3, "0A"
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > state && f[state] == listen && strings.HasSuffix(f[localAddress], suffix) {
			return true
		}
	}
	return false
}

// A ucxLine is the last line of a client with -f -v.
type ucxLine struct {
	iterations float64
	median     float64 // microseconds: of tag_lat half a round trip
	perSecond  float64 // messages
}

// ucxFields is how many fields that line has: iterations; latency, 50th percentile, average,
// overall; MB/s, average, overall; messages/s, average, overall.
const ucxFields = 8

// parseUCX finds that line.
func parseUCX(text string) (line ucxLine, err error) {
	found := false
	for one := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(one), ",")
		if len(fields) != ucxFields {
			continue
		}
		var v [ucxFields]float64
		ok := true
		for i, f := range fields {
			var err error
			v[i], err = strconv.ParseFloat(strings.TrimSpace(f), 64)
			ok = ok && err == nil && v[i] >= 0 && !math.IsInf(v[i], 0)
		}
		if ok && v[0] >= 1 && v[7] > 0 {
			line, found = ucxLine{iterations: v[0], median: v[1], perSecond: v[7]}, true
		}
	}
	if !found {
		return line, fmt.Errorf("ucx_perftest: no result in %q", text)
	}
	return line, nil
}

// ucxMissing says why there is no UCX here, or "".
func ucxMissing() string {
	if _, err := exec.LookPath(ucxProgram); err != nil {
		return "needs ucx_perftest (Debian: apt-get install ucx-utils)"
	}
	return ""
}
