package cm_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce/mem"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/heap"
	"xroce/xsk/xsktest/timeout"
)

// BenchmarkFlood measures how long a peer takes to connect while a stranger sends requests in the
// names of others, beside the same without them: over a veth pair, through the kernel's routes and
// neighbours.
//
//	go test ./engine/cm -run '^$' -bench Flood -benchtime 20x
//
// It prints the median and the longest of both, their ratio, and what the flood left
// behind at its target: goroutines, bytes of heap, entries of the neighbour table.
//
// A sequential accept loop takes what cannot be a request of anybody there. Requests in the names
// of hosts that are there, or that a router leads to, have to be answered, and nobody confirms the
// answer: there a Meeting accepts.
func BenchmarkFlood(b *testing.B) {
	for _, from := range []origin{absent, unrouted, routed, named} {
		for _, listens := range []bool{true, false} {
			for _, rate := range []int{50, 2000, 20_000} {
				name := fmt.Sprintf("from=%s/listener=%v/rate=%d", from, listens, rate)
				b.Run(name, func(b *testing.B) { flood(b, from, listens, rate) })
			}
		}
	}
}

const goodPort, otherPort = 7174, 7175

// An origin is where requests claim to come from.
type origin string

const (
	absent   origin = "absent"   // addresses on the link that nobody has
	unrouted origin = "unrouted" // those that the target has no route to
	routed   origin = "routed"   // those behind its router, which sends them
	named    origin = "named"    // that of the peer itself
)

// stationOf is the station that sends such requests.
func (o origin) stationOf(b *testing.B, pair *vethpair.Pair) (mac [6]byte) {
	router := [6]byte{2, 0, 0, 0, 0, 0xfe}
	switch o {
	case absent, unrouted:
		return [6]byte(pair.B.MAC)
	case routed:
		must(b, pair.Do(vethpair.A, func() error { return routeAll(pair, router) }))
	}
	return router
}

// addr is the address of a request, by its number.
func (o origin) addr(pair *vethpair.Pair, n int) netip.Addr {
	switch o {
	case absent:
		return numbered(pair.A.IPv4.Addr(), 16+uint32(n%200))
	case named:
		return pair.B.IPv4.Addr()
	}
	return numbered(netip.AddrFrom4([4]byte{203}), uint32(n)%(1<<24))
}

// routeAll routes everything by a router.
func routeAll(pair *vethpair.Pair, mac [6]byte) error {
	link, err := netlink.LinkByName(vethpair.IfName)
	if err != nil {
		return err
	}
	index, gateway := link.Attrs().Index, numbered(pair.A.IPv4.Addr(), 8).AsSlice()
	return errors.Join(
		netlink.NeighSet(&netlink.Neigh{
			LinkIndex: index, IP: gateway, HardwareAddr: mac[:], State: netlink.NUD_PERMANENT,
		}),
		netlink.RouteAdd(&netlink.Route{LinkIndex: index, Gw: gateway}),
	)
}

func flood(b *testing.B, from origin, listens bool, rate int) {
	xsktest.NeedRoot(b)
	pair, err := vethpair.New(vethpair.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, pair.Close()) })
	target, peer := openHost(b, pair, vethpair.A), openHost(b, pair, vethpair.B)
	at := netip.AddrPortFrom(pair.A.IPv4.Addr(), goodPort)
	l, err := target.manager.Listen(at)
	must(b, err)
	var serving sync.WaitGroup
	if from == absent || from == unrouted {
		serving.Go(func() { acceptAll(l, target) })
	} else {
		serving.Go(func() { meetAll(l, target) })
	}
	b.Cleanup(func() { l.Close(); serving.Wait() })

	before := connectTimes(b, peer, at)
	goroutines, held := runtime.NumGoroutine(), heap.Live()
	port := uint16(otherPort)
	if listens {
		port = goodPort
	}
	s := newStranger(b, peer.dev, at.Addr(), [6]byte(pair.A.MAC), port)
	s.from = from.stationOf(b, pair)
	var stop atomic.Bool
	var flooding sync.WaitGroup
	most, sent := 0, 0
	begin, second := time.Now(), make(chan struct{}) // closed when a second's worth was sent
	tell := sync.OnceFunc(func() { close(second) })
	flooding.Go(func() {
		beat := time.NewTicker(time.Millisecond)
		defer beat.Stop()
		for !stop.Load() {
			due := int(time.Since(begin).Seconds()*float64(rate)) - sent
			s.burst(b, min(due, strangersAt), func() netip.Addr {
				sent++
				return from.addr(pair, sent)
			})
			if due > strangersAt {
				continue
			}
			most = max(most, runtime.NumGoroutine())
			if sent >= rate {
				tell()
			}
			<-beat.C
		}
	})
	<-second
	during := connectTimes(b, peer, at)
	stop.Store(true)
	flooding.Wait()
	b.ReportMetric(float64(sent)/time.Since(begin).Seconds(), "REQ/s")
	entries := neighbourEntries(b, pair)
	report := func(name string, d []time.Duration) time.Duration {
		slices.Sort(d)
		median := d[len(d)/2]
		b.ReportMetric(float64(median.Microseconds())/1000, name+"-median-ms")
		b.ReportMetric(float64(d[len(d)-1].Microseconds())/1000, name+"-longest-ms")
		return median
	}
	quiet, flooded := report("quiet", before), report("flood", during)
	b.ReportMetric(float64(flooded)/float64(quiet), "ratio")
	b.ReportMetric(float64(most-goroutines), "more-goroutines")
	b.ReportMetric(float64(heap.Live()-held)/1e6, "more-MB")
	b.ReportMetric(float64(entries), "neighbours")
	b.ReportMetric(0, "ns/op")
}

// acceptAll is a sequential accept loop.
func acceptAll(l *cm.Listener, h *host) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout.Scaled(15*time.Second))
		if c, err := r.Accept(ctx, h.setup()); err == nil {
			go func() { <-c.Done(); c.Close() }()
		}
		cancel()
	}
}

// meetAll is an accept loop that answers several at a time.
func meetAll(l *cm.Listener, h *host) {
	_ = cm.Meeting[*cm.Conn]{ // it ends with the listener
		Next: l.Accept,
		Accept: func(ctx context.Context, r *cm.Request) (*cm.Conn, error) {
			return r.Accept(ctx, h.setup())
		},
		Leave: func(c *cm.Conn) { c.Close() },
	}.Each(context.Background(), func(c *cm.Conn) { go func() { <-c.Done(); c.Close() }() })
}

// connectTimes connects again and again, one after the other.
func connectTimes(b *testing.B, h *host, to netip.AddrPort) (times []time.Duration) {
	for range b.N {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), timeout.Scaled(10*time.Second))
		c, err := h.manager.Dial(ctx, to, h.setup())
		cancel()
		times = append(times, time.Since(begin))
		if err != nil {
			b.Log(err)
			continue
		}
		c.Close()
	}
	return times
}

func neighbourEntries(b *testing.B, pair *vethpair.Pair) (n int) {
	must(b, pair.Do(vethpair.A, func() error {
		list, err := netlink.NeighList(0, netlink.FAMILY_V4)
		n = len(list)
		return err
	}))
	return n
}

// openHost opens the device of an end of a pair, with a manager.
func openHost(b *testing.B, pair *vethpair.Pair, side vethpair.Side) *host {
	h := &host{v4: pair.End(side).IPv4.Addr(), mac: [6]byte(pair.End(side).MAC)}
	must(b, pair.Do(side, func() (err error) {
		h.dev, err = engine.Open(vethpair.IfName, engine.Options{RawPackets: true})
		return err
	}))
	b.Cleanup(func() { must(b, h.dev.Close()) })
	h.pd = h.dev.AllocPD()
	var err error
	h.cq, err = h.dev.CreateCQ(1 << 14)
	must(b, err)
	h.mr, err = h.dev.RegMR(h.pd, make([]byte, 1<<12),
		mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead)
	must(b, err)
	h.manager, err = cm.Open(h.dev, cm.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, h.manager.Close()) })
	return h
}
