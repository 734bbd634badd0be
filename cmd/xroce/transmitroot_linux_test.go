package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// This file is about live frames, pktgen --transmit xdp: how they end, and what they are told of.

// keptSink starts a sink in namespace B that goes on, without which nothing takes live frames.
func keptSink(t *testing.T, p *vethpair.Pair, in func(vethpair.Side) bench) *invocation {
	t.Helper()
	sink := in(vethpair.B).start(t, "sink", "-d", "xr0", "--keep", "--json", "--metrics",
		p.B.IPv4.Addr().String()+":0")
	sink.awaitReady(t)
	return sink
}

// endSink ends the sink when so many frames have come; some may be missing there.
func endSink(t *testing.T, p *vethpair.Pair, sink *invocation, frames uint64) (s sinkReport) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(5 * time.Second)); time.Now().Before(end); {
		if shown(t, p, vethpair.A, sink, "roce_sink_frames_total") >= frames {
			break
		}
	}
	sink.cancel()
	if sink.wait(t); sink.code != exitOK {
		t.Fatalf("sink: %d, %s", sink.code, sink.stderr)
	}
	if err := json.Unmarshal([]byte(sink.stdout), &s); err != nil {
		t.Fatalf("%v: %s", err, sink.stdout)
	}
	return s
}

// shown is the value of a metric of interface xr0 that a command of the other namespace shows.
func shown(
	t *testing.T, p *vethpair.Pair, from vethpair.Side, i *invocation, name string,
) (n uint64) {
	t.Helper()
	text := scrape(t, p, from, i)
	_, rest, ok := strings.Cut(text, "\n"+name+"{device=\"xr0\"} ")
	if _, err := fmt.Sscan(rest, &n); !ok || err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
	return n
}

// awaitMore waits until a generator in namespace A shows that it has sent more than n frames, and
// returns how many.
func awaitMore(t *testing.T, p *vethpair.Pair, gen *invocation, n uint64) uint64 {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); ; {
		now := shown(t, p, vethpair.B, gen, "roce_tx_packets_total")
		if now > n {
			return now
		}
		if now < n || time.Now().After(end) {
			t.Fatalf("%d frames after %d", now, n)
		}
	}
}

// received is how many frames came to interface xr0 of namespace B, as the kernel counts them.
func received(t *testing.T, p *vethpair.Pair) (n uint64) {
	t.Helper()
	err := p.Do(vethpair.B, func() error {
		out, err := exec.Command("ip", "-s", "-j", "link", "show", "dev", "xr0").Output()
		if err != nil {
			return err
		}
		var links []struct {
			Stats struct {
				Rx struct {
					Packets uint64 `json:"packets"`
					Dropped uint64 `json:"dropped"`
				} `json:"rx"`
			} `json:"stats64"`
		}
		if err := json.Unmarshal(out, &links); err != nil {
			return err
		}
		n = links[0].Stats.Rx.Packets + links[0].Stats.Rx.Dropped
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRootTransmitSignal: a generator of live frames that is told to end in the middle ends with
// the status of that, says what it sent, which is what came, and leaves nothing behind; its
// metrics grow while it runs.
func TestRootTransmitSignal(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			sink := keptSink(t, p, in)
			cmd := child(t, 0, "pktgen", "-d", "xr0", "--to", p.B.IPv4.Addr().String(), "--json",
				"--transmit", "xdp", "--rate", "5kpps", "--flows", "3", "--metrics",
				p.A.IPv4.Addr().String()+":0")
			var stdout, stderr lockedBuffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := p.Do(vethpair.A, cmd.Start); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			gen := &invocation{errs: &stderr, done: make(chan struct{})}
			gen.awaitStderr(t, "metrics at")
			first := awaitMore(t, p, gen, 0)
			seen := awaitMore(t, p, gen, first)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
				t.Fatalf("it ends with %v: %s", err, stderr.String())
			}
			var g pktgenReport
			if err := json.Unmarshal([]byte(stdout.String()), &g); err != nil {
				t.Fatalf("%v: %s", err, stdout.String())
			}
			s := endSink(t, p, sink, g.Sent)
			if g.Transmit != "xdp" || g.Sent < seen || g.Dropped != 0 || g.Flows != 3 ||
				g.Bytes != 64*g.Sent || s.Flows != 3 {
				t.Errorf("%+v\n%+v", g, s)
			}
			// A frame for which the fill ring has no place is dropped, and counted as both
			// (v6.18 net/xdp/xsk.c, __xsk_rcv).
			missed := s.Kernel.Dropped + s.Kernel.RingFull
			if g.Sent != s.Received+missed || s.Lost > missed || s.Duplicates+s.Reordered > 0 {
				t.Errorf("sent %d, and %+v", g.Sent, s)
			}
			leavesNothing(t, p, cmd)
		})
	}
}

// leavesNothing looks for what a generator in namespace A may have left.
func leavesNothing(t *testing.T, p *vethpair.Pair, cmd *exec.Cmd) {
	t.Helper()
	var links []byte
	err := p.Do(vethpair.A, func() (err error) {
		links, err = exec.Command("ip", "-details", "link", "show").Output()
		return err
	})
	if err != nil || bytes.Contains(links, []byte("prog/xdp")) {
		t.Errorf("%v: %s", err, links)
	}
	for _, entry := range cmd.Env {
		if dir, ok := strings.CutPrefix(entry, childRuntime+"="); ok {
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("files %q", left)
			}
		}
	}
}

// TestRootTransmitSoMany: live frames are as many as were asked for, by number or by time, and
// none is told of that does not leave.
func TestRootTransmitSoMany(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	keptSink(t, p, in)
	to := p.B.IPv4.Addr().String()
	for name, tt := range map[string]struct {
		args []string
		want uint64
	}{
		"count":            {[]string{"-n", "3333", "--rate", "20kpps"}, 3333},
		"count, unlimited": {[]string{"-n", "20001"}, 20001},
		"count of bursts":  {[]string{"-n", "1010", "--burst", "100", "--rate", "10kpps"}, 1010},
		"duration":         {[]string{"--duration", "400ms", "--rate", "10kpps"}, 4000},
		"whole bursts": {
			[]string{"--duration", "400ms", "--rate", "10kpps", "--burst", "50"}, 4000,
		},
		"ramp": {[]string{"--duration", "400ms", "--rate", "500pps..9500pps"}, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{
				"pktgen", "-d", "xr0", "--to", to, "--transmit", "xdp", "--json",
			}, tt.args...)
			for try := 1; ; try++ {
				before := received(t, p)
				gen := in(vethpair.A).run(t, args...)
				var g pktgenReport
				if err := json.Unmarshal([]byte(gen.stdout), &g); err != nil || gen.code != exitOK {
					t.Fatalf("%d, %v: %s", gen.code, err, gen.stderr)
				}
				if g.Transmit != "xdp" || g.Dropped != 0 || g.Bytes != 64*g.Sent ||
					g.Sent > tt.want {
					t.Fatalf("%+v", g)
				}
				// The last frame of a flow, which tells the sink, is beside them, and told again.
				if came := received(t, p) - before; came < g.Sent {
					t.Fatalf("sent %d, and %d came", g.Sent, came)
				}
				if g.Sent == tt.want {
					break
				}
				// Who is late sends less in the time that it has, and says that it was late.
				if g.Behind == 0 || tt.args[0] == "-n" {
					t.Fatalf("sent %d, want %d; %+v", g.Sent, tt.want, g)
				}
				if try == 5 {
					t.Logf("late in each of %d tries", try)
					break
				}
			}
		})
	}
}

// TestRootTransmitShape: live frames leave when it is their time: bursts together, and with a ramp
// ever more.
func TestRootTransmitShape(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	keptSink(t, p, in)
	file := filepath.Join(t.TempDir(), "x.pcapng")
	// times are when frames left, in nanoseconds since the first.
	times := func(t *testing.T, args ...string) (at []int64) {
		t.Helper()
		gen := in(vethpair.A).run(t, append([]string{
			"pktgen", "-d", "xr0", "--to", p.B.IPv4.Addr().String(), "--transmit", "xdp",
			"--capture", file,
		}, args...)...)
		if gen.code != exitOK {
			t.Fatal(gen.stderr)
		}
		packets, _ := readCapture(t, file)
		for i := range packets {
			if len(packets[i].Head) == 200 { // what tells the sink is shorter
				at = append(at, packets[i].At-packets[0].At)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		return at
	}
	// A generator that is not scheduled for a while has another shape. It may try again.
	const tries = 10
	bursts := func() error {
		at := times(t, "-n", "800", "--burst", "40", "--rate", "2kpps", "--size", "200")
		together := 0
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < (250 * time.Microsecond).Nanoseconds() { // half of one by one
				together++
			}
		}
		if len(at) < 800 || together < len(at)*9/10 ||
			at[799] < (350*time.Millisecond).Nanoseconds() {
			return fmt.Errorf("of %d frames %d left with others: %v", len(at), together, at)
		}
		return nil
	}
	ramp := func() error {
		at := times(t, "--duration", "600ms", "--rate", "1pps..4kpps", "--size", "200")
		early := 0
		for _, t := range at {
			if t < (300 * time.Millisecond).Nanoseconds() {
				early++
			}
		}
		// In the first half of a ramp from nothing is a quarter.
		if len(at) < 1000 || early < len(at)/10 || early > len(at)*4/10 {
			return fmt.Errorf("%d of %d frames in the first half", early, len(at))
		}
		return nil
	}
	for name, shape := range map[string]func() error{"bursts": bursts, "ramp": ramp} {
		err := shape()
		for again := 1; again < tries && err != nil; again++ {
			t.Logf("%s: tried again: %v", name, err)
			err = shape()
		}
		if err != nil {
			t.Errorf("%s, in %d tries: %v", name, tries, err)
		}
	}
}

// TestRootTransmitRows: the rows of live frames have all of them, and so has the total.
func TestRootTransmitRows(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	keptSink(t, p, in)
	gen := in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", p.B.IPv4.Addr().String(),
		"--transmit", "xdp", "-n", "5000", "--rate", "10kpps", "-i", "0.1")
	if gen.code != exitOK {
		t.Fatal(gen.stderr)
	}
	sum, rows, last := 0, 0, 0.0
	for line := range strings.Lines(gen.stdout) {
		var from, to float64
		var n int
		if k, _ := fmt.Sscanf(line, "%f-%f %d", &from, &to, &n); k == 3 {
			if from != last {
				t.Errorf("a row begins at %.2f and the one before ends at %.2f", from, last)
			}
			sum, rows, last = sum+n, rows+1, to
		}
	}
	if sum != 5000 || rows < 2 { // how many more says how often the generator was scheduled
		t.Errorf("%d frames in %d rows: %s", sum, rows, gen.stdout)
	}
	contains(t, gen.stdout, ": 5000 frames, 320000 bytes in ", " by xdp\n")
}
