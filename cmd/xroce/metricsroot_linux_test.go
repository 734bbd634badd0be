package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// scrape reads the counters that a command of the other namespace shows.
func scrape(t *testing.T, p *vethpair.Pair, from vethpair.Side, i *invocation) string {
	t.Helper()
	at := metricsAt.FindStringSubmatch(i.errs.String())
	if at == nil {
		t.Fatal(i.errs)
	}
	var text []byte
	err := p.Do(from, func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(at[1], "http://"))
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(timeout.Scaled(10 * time.Second))); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		text, err = io.ReadAll(conn)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRootMetricsOfTraffic: a sink, a generator and a fuzzer show their counters while they run.
func TestRootMetricsOfTraffic(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	a, b := p.A.IPv4.Addr().String(), p.B.IPv4.Addr().String()
	sink := in(vethpair.B).start(t, "sink", "-d", "xr0", "--keep", "--metrics", b+":0")
	sink.awaitReady(t)
	gen := in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", b, "-n", few, "--rate", "20kpps")
	if gen.code != exitOK {
		t.Fatal(gen.stderr)
	}
	// The frames have left when the generator ends, and the sink may not have looked at all yet.
	text := scrape(t, p, vethpair.A, sink)
	late := time.Now().Add(timeout.Scaled(20 * time.Second))
	for !strings.Contains(text, `roce_sink_frames_total{device="xr0"} 200`) &&
		time.Now().Before(late) {
		text = scrape(t, p, vethpair.A, sink)
	}
	for _, want := range []string{
		`roce_sink_frames_total{device="xr0"} 200`, `roce_sink_lost_frames{device="xr0"} 0`,
		`roce_up{device="xr0"} 1`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for name, args := range map[string][]string{
		"pktgen": {"pktgen", "-d", "xr0", "--to", b, "--rate", "1kpps"},
		"fuzz":   {"fuzz", "-d", "xr0", b, "-n", "100000000"},
	} {
		i := in(vethpair.A).start(t, append(args, "--metrics", a+":0")...)
		i.awaitStderr(t, "metrics at")
		end := time.Now().Add(timeout.Scaled(20 * time.Second))
		for sent := 0; sent == 0; {
			text := scrape(t, p, vethpair.B, i)
			_, rest, ok := strings.Cut(text, "\nroce_tx_packets_total{device=\"xr0\"} ")
			if _, err := fmt.Sscan(rest, &sent); !ok || err != nil || time.Now().After(end) {
				t.Fatalf("%s: %v: %s", name, err, text)
			}
		}
		i.cancel()
		i.wait(t)
	}
	sink.cancel()
	sink.exited(t, exitOK)
}
