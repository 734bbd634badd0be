package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine"
	"xroce/engine/metrics"
	"xroce/xsk"
)

// This file is about --metrics, which commands have that open a device.

const metricsUsage = "show counters to Prometheus at this port of 127.0.0.1, " +
	"or this address and port"

// Bounds of what a stranger can ask of the metrics.
const (
	metricsClients = 16 // connections at once
	metricsTime    = 10 * time.Second
	metricsHeader  = 8 << 10 // bytes
)

// A metricsServer shows the counters of this process to Prometheus.
type metricsServer struct {
	devices *metrics.Collector
	server  *http.Server
	addr    net.Addr
}

// metricsAddress is where to listen: a mere port is one of the loopback interface, since
// anybody who reaches it can read.
func metricsAddress(s string) (string, error) {
	if _, err := strconv.ParseUint(s, 10, 16); err == nil {
		s = "127.0.0.1:" + s
	}
	if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
		return "", usagef("--metrics %q: want a port, or an address as 192.0.2.1:9400", s)
	}
	return s, nil
}

// serveMetrics begins to show counters.
func serveMetrics(address string) (*metricsServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	m := &metricsServer{devices: metrics.New(), addr: listener.Addr()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.devices)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 2, Timeout: metricsTime,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n")) // whom it does not reach knows that
	})
	m.server = &http.Server{
		Handler: mux, ReadTimeout: metricsTime, WriteTimeout: 2 * metricsTime,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: metricsHeader,
	}
	go func() {
		// It ends with Close, and what else may end it has no reader.
		_ = m.server.Serve(newFewConns(listener, metricsClients))
	}()
	return m, nil
}

// setMetrics takes what --metrics says, "" for nothing.
func (a *app) setMetrics(address string) (err error) {
	if address != "" {
		a.metricsAddr, err = metricsAddress(address)
	}
	return err
}

// showing has add say what is to be shown, if that was asked for. Who is told where counters are
// finds the first of them there.
func (a *app) showing(add func(*metrics.Collector)) error {
	if a.metricsAddr == "" {
		return nil
	}
	if a.metrics != nil {
		add(a.metrics.devices)
		return nil
	}
	m, err := serveMetrics(a.metricsAddr)
	if err != nil {
		return err
	}
	a.metrics = m
	add(m.devices)
	fmt.Fprintf(a.stderr, "xroce: metrics at http://%s/metrics\n", m.addr)
	return nil
}

// showMetrics has the counters of a device shown, if that was asked for.
func (a *app) showMetrics(d *engine.Device) error {
	return a.showing(func(c *metrics.Collector) { c.Add(d) })
}

// meterLinks has the frames of links counted and shown, which are those of one interface, if that
// was asked for. The meter is nil where it was not.
func (a *app) meterLinks(iface string, links []xsk.Link) (meter *traffic.Meter, err error) {
	err = a.showing(func(c *metrics.Collector) {
		meter = traffic.NewMeter(iface)
		for i, link := range links {
			links[i] = meter.Link(link)
		}
		c.AddSource(meter)
	})
	return meter, err
}

// hideMetrics ends what showMetrics began.
func (a *app) hideMetrics() {
	if a.metrics == nil {
		return
	}
	if err := a.metrics.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		a.logger.Info("metrics", "error", err.Error())
	}
	a.metrics = nil
}
