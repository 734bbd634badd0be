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

	"xroce/xsk/xsktest/timeout"
)

// TestMetrics: a server shows its counters to Prometheus while it runs.
func TestMetrics(t *testing.T) {
	b, _ := simBench(t)
	var stderr lockedBuffer
	b.change = func(a *app) { a.stderr = &stderr }
	server := b.start(t, "pingpong", "-d", "xr1", "-p", "0", "-n", "3", "--metrics", "0")
	server.awaitReady(t)
	at := regexp.MustCompile(`metrics at (http://127\.0\.0\.1:\d+)/`).FindStringSubmatch(
		stderr.String())
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

// TestMetricsUsage: what is wrong with the address is said.
func TestMetricsUsage(t *testing.T) {
	b, _ := simBench(t)
	for _, address := range []string{"99999", "localhost", "192.0.2.1:"} {
		i := b.run(t, "pingpong", "-d", "xr1", "--metrics", address)
		if i.code != exitUsage || !strings.Contains(i.stderr, "want a port") {
			t.Errorf("%s: code %d, %s", address, i.code, i.stderr)
		}
	}
	i := b.run(t, "pingpong", "-d", "xr1", "-p", "0", "--metrics", "192.0.2.77:9400")
	if i.code != exitFailure || !strings.Contains(i.stderr, "--metrics: listen tcp") {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
}

// TestFewConns: so many connections at once; others wait until one ends.
func TestFewConns(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newFewConns(inner, 1)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	dial()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
		}
		second <- err
	}()
	select {
	case <-second:
		t.Error("two at once")
	default:
	}
	for range 2 { // once more is nothing
		first.Close()
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
