// Package metrics shows the counters of devices to Prometheus:
//
//	devices := metrics.New()
//	prometheus.MustRegister(devices)
//	devices.Add(device)
//
// A Source is collected like a device.
//
// Names are those of engine.Device.Counters, with roce_ before and, of what only grows, _total
// behind; drops are roce_drops_total with their cause, and verdicts of the XDP program
// roce_xdp_packets_total. Each metric has the device as label, and none a queue pair or a peer,
// of which there may be very many. docs/grafana.json is a dashboard of them.
//
// Counters are read when they are asked for and at no other time. The package is one of its own
// so that who does not import it does not build the client library.
package metrics
