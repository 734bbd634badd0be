package perf

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"xroce/cmd/perfdump"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

type systemClock struct{ start time.Time }

func (c systemClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// device makes one of two hosts on a simulated wire.
func device(t *testing.T, network *sim.Network, n byte, o engine.Options) *engine.Device {
	t.Helper()
	port, err := network.NewPort(sim.PortConfig{
		Name: "xr" + string('0'+n), MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
		Yield: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := engine.OpenLink(port, port, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// tcpPair is a TCP connection of this host with itself.
func tcpPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return a, b
}

// play runs a test between two ends and returns how many allocations both made.
func play(t *testing.T, c Config) uint64 {
	t.Helper()
	return playWith(t, c, nil)
}

// playWith is play with the memory of both ends, the client's first, unless dumps is
// nil.
func playWith(t *testing.T, c Config, dumps *[2]perfdump.Dump) uint64 {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	a, b := tcpPair(t)
	failed := make(chan error, 2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, conn := range []net.Conn{a, b} {
		own := c
		own.Dial = i == 0
		if _, err := own.Settle(true); err != nil {
			t.Fatal(err)
		}
		direct := own.Direct()
		own.OtherDrives = !direct
		dev := device(t, network, byte(i+1), engine.Options{Direct: direct})
		o := Options{Config: own, Tell: &Record{}}
		if dumps != nil {
			o.Dump = &dumps[i]
		}
		go func() {
			_, err := Run(ctx, dev, NewSocket(dev, conn, own.Dial), o)
			failed <- err
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// TestMessagesDoNotAllocate compares a short run with a long one: what one costs
// more than the other is what messages cost.
func TestMessagesDoNotAllocate(t *testing.T) {
	const short = 200
	for _, test := range Tests {
		c := Config{
			Test: test, Type: roce.TypeRC, QPs: 1, Size: 8, TxDepth: 16, RxDepth: 64, CQMod: 4,
			PostList: 1, RecvPostList: 1, Timeout: 20, GIDIndex: AutoGID, Atomic: FetchAndAdd,
			NoPeak: true,
		}
		long := short + 4000
		if test.Latency {
			c.TxDepth, c.CQMod = 1, 1
			long = short + 500 // each waits for the other end
		}
		c.Iters = short
		few := play(t, c)
		c.Iters = long
		many := play(t, c)
		if each := (float64(many) - float64(few)) / float64(long-short); each > 0.2 {
			t.Errorf("%s: %d allocations for %d messages, %d for %d: %.2f each", test.Name(),
				few, short, many, long, each)
		}
	}
}
