package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestSilentServer: where a host is but nobody who speaks rdma_cm, a client gives up, and
// says what may be wrong.
func TestSilentServer(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	must(t, server.Manager.Close())
	client.Patience = time.Millisecond
	to := netip.AddrPortFrom(server.v4, 7174)
	for name, dial := range map[string]func(context.Context) error{
		"rping": func(ctx context.Context) error {
			_, err := client.DialRping(ctx, Rping{Addr: to, Size: 64})
			return err
		},
		"cmatose": func(ctx context.Context) error {
			_, err := client.DialCmatose(ctx, Cmatose{Addr: to, Connections: 1, Count: 1, Size: 8})
			return err
		},
		"udaddy": func(ctx context.Context) error {
			_, err := client.DialUdaddy(ctx, Udaddy{Addr: to, Connections: 1, Count: 1, Size: 8})
			return err
		},
		"rdma_client": func(ctx context.Context) error {
			_, err := client.DialSimple(ctx, to)
			return err
		},
	} {
		err := dial(within(t))
		if !errors.Is(err, cm.ErrTimeout) {
			t.Errorf("%s: %v, want ErrTimeout", name, err)
			continue
		}
		fails(t, err, fmt.Sprintf("connect to 192.0.2.1:7174: cm: no answer from the peer "+
			"within %v: ", timeout.Scaled(client.Patience)))
		fails(t, err, "does it run, and do UDP packets to port 4791 get there?")
	}
	// Who is interrupted is told that, and nothing of the server.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	client.Patience = 0
	_, err := client.DialRping(ended, Rping{Addr: to, Size: 64})
	if !errors.Is(err, context.Canceled) || errors.Is(err, cm.ErrTimeout) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestRoundTrips adds up what the rounds took.
func TestRoundTrips(t *testing.T) {
	times := newRoundTrips()
	if got := times.result(); got != nil {
		t.Errorf("no round: %+v", got)
	}
	for _, d := range []time.Duration{30, 10, 20, 60} {
		times.add(d)
	}
	want := RoundTrip{
		Min: 10, Mean: 30, Max: 60, Stddev: 19, P50: 20, P90: 60, P99: 60, P999: 60,
	}
	if got := *times.result(); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	// Many of the same, and one that is out of any range.
	times = newRoundTrips()
	for range 998 {
		times.add(10 * time.Microsecond)
	}
	times.add(12 * time.Microsecond)
	times.add(2 * longestRound)
	got := *times.result()
	near := func(d, want time.Duration) bool { return want <= d && d <= want+want/1000 }
	if !near(got.P50, 10*time.Microsecond) || !near(got.P99, 10*time.Microsecond) ||
		!near(got.P999, 12*time.Microsecond) || got.Max != 2*longestRound {
		t.Errorf("%+v", got)
	}
}
