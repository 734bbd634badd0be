package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// metricsAt finds where metrics are shown.
var metricsAt = regexp.MustCompile(`metrics at (http://[\d.]+:\d+)/`)

// TestMetrics: a server shows its counters to Prometheus while it runs.
func TestMetrics(t *testing.T) {
	b, _ := simBench(t)
	var stderr lockedBuffer
	b.change = func(a *app) { a.stderr = &stderr }
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-n", "3", "--metrics", "0")
	server.awaitReady(t)
	at := metricsAt.FindStringSubmatch(stderr.String())
	if at == nil {
		t.Fatal(stderr.String())
	}
	client := &http.Client{Timeout: timeout.Scaled(20 * time.Second)}
	defer client.CloseIdleConnections()
	get := func(path string) (int, string) {
		t.Helper()
		r, err := client.Get(at[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	code, body := get("/metrics")
	if code != http.StatusOK || !strings.Contains(body, "\nroce_up{device=\"xr1\"} 1\n") ||
		!strings.Contains(body, "\nroce_objects{device=\"xr1\",kind=\"qp\"} ") ||
		!strings.Contains(body, "\nroce_drops_total{cause=\"bad_icrc\",device=\"xr1\"} 0\n") {
		t.Errorf("code %d: %s", code, body)
	}
	if code, body := get("/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("code %d: %s", code, body)
	}
	if code, _ := get("/debug/pprof"); code != http.StatusNotFound {
		t.Errorf("code %d", code)
	}
	server.cancel()
	server.wait(t)
	if _, err := client.Get(at[1] + "/metrics"); err == nil {
		t.Error("it answers after the end")
	}
}

// TestMetricsOfChecks: a host that answers checks shows its counters, too.
func TestMetricsOfChecks(t *testing.T) {
	b, _ := simBench(t)
	server := b.start(t, "check", "xr1", "--serve", "-p", "0", "--metrics", "0")
	server.awaitReady(t)
	at := metricsAt.FindStringSubmatch(server.errs.String())
	if at == nil {
		t.Fatal(server.errs)
	}
	r, err := (&http.Client{Timeout: timeout.Scaled(20 * time.Second)}).Get(at[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(body), "\nroce_up{device=\"xr1\"} 1\n") {
		t.Errorf("%v: %s", err, body)
	}
	server.cancel()
	server.exited(t, exitOK)
}

// TestMetricsUsage: what is wrong with the address is said.
func TestMetricsUsage(t *testing.T) {
	b, _ := simBench(t)
	for _, address := range []string{"99999", "localhost", "192.0.2.1:"} {
		i := b.run(t, "pingpong", "-d", "xr1", "--metrics", address)
		if i.code != exitUsage || !strings.Contains(i.stderr, "want a port") {
			t.Errorf("%s: code %d, %s", address, i.code, i.stderr)
		}
	}
	for _, args := range [][]string{
		{"pktgen", "-d", "xr1", "--to", "192.0.2.2"},
		{"sink", "-d", "xr1"},
		{"fuzz", "-d", "xr1", "192.0.2.2"},
		{"check", "xr1", "--serve"},
	} {
		i := b.run(t, append(args, "--metrics", "localhost")...)
		if i.code != exitUsage || !strings.Contains(i.stderr, "want a port") {
			t.Errorf("%v: code %d, %s", args, i.code, i.stderr)
		}
	}
	i := b.run(t, "check", "xr1", "192.0.2.1", "--metrics", "0")
	if i.code != exitUsage || !strings.Contains(i.stderr, "--metrics is for --serve") {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
	i = b.run(t, "pingpong", "-d", "xr1", "-p", "0", "--metrics", "192.0.2.77:9400")
	if i.code != exitFailure || !strings.Contains(i.stderr, "--metrics: listen tcp") {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
}

// A scraper reads what is shown as soon as it is told where.
type scraper struct{ body []byte }

// Write implements io.Writer.
func (s *scraper) Write(b []byte) (int, error) {
	at := metricsAt.FindSubmatch(b)
	if at == nil {
		return len(b), nil
	}
	client := &http.Client{Timeout: timeout.Scaled(20 * time.Second)}
	defer client.CloseIdleConnections()
	r, err := client.Get(string(at[1]) + "/metrics")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	s.body, err = io.ReadAll(r.Body)
	return len(b), err
}

// An idleLink has moved no frames.
type idleLink struct{ xsk.Link }

// Stats implements xsk.Link.
func (idleLink) Stats() (xsk.Stats, error) { return xsk.Stats{}, nil }

// TestMetricsAreThere: who is told where metrics are finds those of the device there.
func TestMetricsAreThere(t *testing.T) {
	var s scraper
	a := &app{stderr: &s, metricsAddr: "127.0.0.1:0"}
	if _, err := a.meterLinks("xr7", []xsk.Link{idleLink{}}); err != nil {
		t.Fatal(err)
	}
	defer a.hideMetrics()
	want := "\nroce_tx_packets_total{device=\"xr7\"} 0\n"
	if !strings.Contains(string(s.body), want) {
		t.Errorf("%s", s.body)
	}
}

// TestMetricsAmongStrangers: who holds as many connections as there may be keeps nobody from
// reading the counters.
func TestMetricsAmongStrangers(t *testing.T) {
	m, err := serveMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer m.server.Close()
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 2 * metricsClients {
		conn, err := stranger.DialContext(t.Context(), "tcp", m.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// He is served, so that he may be idle for as long as anybody.
		if err := conn.SetDeadline(time.Now().Add(timeout.Scaled(20 * time.Second))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 12)); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Timeout: timeout.Scaled(20 * time.Second)}
	defer client.CloseIdleConnections()
	for range 2 { // the second by the same connection
		r, err := client.Get("http://" + m.addr.String() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		r.Body.Close()
	}
}

// TestFewConns: so many connections at once; the oldest of the host that has most gives way.
func TestFewConns(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newFewConns(inner, 3)
	accept := func(host byte) net.Conn {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
		c, err := dialer.DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if c, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	open := func(c net.Conn) bool {
		return c.SetDeadline(time.Time{}) == nil
	}
	conns := []net.Conn{accept(1), accept(2), accept(2), accept(3), accept(1), accept(1)}
	for i, want := range []bool{false, false, true, true, false, true} {
		if got := open(conns[i]); got != want {
			t.Errorf("connection %d is open: %t", i, got)
		}
	}
	for range 2 { // once more is nothing
		conns[3].Close()
	}
	if accept(4); len(l.open) != 3 || !open(conns[2]) {
		t.Errorf("%d are open", len(l.open))
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
