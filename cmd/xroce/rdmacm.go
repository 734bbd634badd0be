package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/rdmacm"
	"xroce/engine/cm"
)

// A conversationReport is what the commands that are examples of rdma_cm print with
// --json.
type conversationReport struct {
	Tool        string  `json:"tool"`
	Role        string  `json:"role"` // server or client
	Device      string  `json:"device"`
	Backend     string  `json:"backend"`
	Address     string  `json:"address"` // of the server
	Size        int     `json:"size"`    // bytes of a message
	Connections int     `json:"connections"`
	Messages    int     `json:"messages"` // each way, or rounds
	Seconds     float64 `json:"seconds"`  // of a server with the time that it waited
	// RoundTrip is of a client of rping, in microseconds.
	RoundTrip *roundTripJSON `json:"round_trip_usec,omitempty"`
}

// A roundTripJSON is how long the rounds of rping took.
type roundTripJSON struct {
	Min    float64 `json:"min"`
	Avg    float64 `json:"avg"`
	Max    float64 `json:"max"`
	Stddev float64 `json:"stddev"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p99.9"`
}

// conversationFlags are those of all commands that are examples of rdma_cm.
type conversationFlags struct {
	device deviceFlags
	iface  string
}

func (f *conversationFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.iface, "device", "d", "", "interface (default: the only one)")
	f.device.register(flags)
}

// converse opens a device and its connection manager for a conversation, and prints
// what came of it. The report says what is known before.
func (a *app) converse(
	ctx context.Context, f *conversationFlags, report conversationReport,
	do func(*rdmacm.Station) (rdmacm.Result, error),
) (err error) {
	options, err := f.device.options(a)
	if err != nil {
		return err
	}
	iface, err := a.chooseInterface(f.iface, netip.Addr{})
	if err != nil {
		return err
	}
	dev, err := a.openDevice(iface, options)
	if err != nil {
		return err
	}
	defer dev.Close()
	manager, err := cm.Open(dev, cm.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	s := &rdmacm.Station{Dev: dev, Manager: manager, Log: a.logger, Say: a.printf}
	if a.json {
		s.Say = func(string, ...any) {}
	}
	s.Met = a.met
	s.Listening = func(at netip.AddrPort) {
		a.tellWaiting(net.TCPAddrFromAddrPort(at))
		if a.listening != nil {
			a.listening(net.TCPAddrFromAddrPort(at))
		}
	}
	start := time.Now()
	result, err := do(s)
	if !a.json {
		a.sayPings(report, result, err)
	}
	if !a.json || err != nil && result.RoundTrip == nil {
		return err
	}
	report.Device, report.Backend = dev.Name(), dev.Link().Backend
	report.Connections, report.Messages = result.Connections, result.Messages
	if t := result.RoundTrip; t != nil {
		report.RoundTrip = &roundTripJSON{
			Min: usec(t.Min), Avg: usec(t.Mean), Max: usec(t.Max), Stddev: usec(t.Stddev),
			P50: usec(t.P50), P90: usec(t.P90), P99: usec(t.P99), P999: usec(t.P999),
		}
	}
	report.Seconds = time.Since(start).Seconds()
	return errors.Join(err, a.printJSON(report)) // of a client that failed, what it has measured
}

// sayPings tells how rping ended, as ping(8) does: the original says nothing at all. Of a
// client that failed the rounds before are told.
func (a *app) sayPings(report conversationReport, result rdmacm.Result, err error) {
	switch t := result.RoundTrip; {
	case t != nil:
		a.printf("%d pings of %s, round trip min/avg/max/stddev %.1f/%.1f/%.1f/%.1f us\n",
			result.Messages, report.Address, usec(t.Min), usec(t.Mean), usec(t.Max),
			usec(t.Stddev))
		a.printf("50/90/99/99.9%% of them within %.1f/%.1f/%.1f/%.1f us\n",
			usec(t.P50), usec(t.P90), usec(t.P99), usec(t.P999))
	case err == nil && report.Tool == "rping" && report.Role == role(true):
		a.printf("%d pings answered\n", result.Messages)
	}
}

// usec is a time in microseconds.
func usec(d time.Duration) float64 { return float64(d) / 1e3 }

// role names an end in a report.
func role(server bool) string {
	if server {
		return "server"
	}
	return "client"
}

// anywhere is the address of a server that listens at all addresses of its device,
// those of IPv4 too.
const anywhere = "::"

// addressOf turns a host, by name or address, and a port into an address. No host is
// the zero Addr.
func addressOf(ctx context.Context, host string, port int) (netip.AddrPort, error) {
	return addressIn(ctx, "ip", host, port)
}

// addressIn is addressOf for a name that may have addresses of several families, of which one is
// wanted: ip4, ip6, or ip for any.
func addressIn(ctx context.Context, family, host string, port int) (netip.AddrPort, error) {
	if port < 1 || port > 65535 {
		return netip.AddrPort{}, usagef("port %d is not in 1..65535", port)
	}
	if host == "" {
		return netip.AddrPortFrom(netip.Addr{}, uint16(port)), nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		list, err := net.DefaultResolver.LookupNetIP(ctx, family, host)
		if err != nil {
			return netip.AddrPort{}, err
		}
		addr = list[0]
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}
