package msg_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/internal/pagertest"
	"xroce/engine/msg"
	"xroce/engine/pager"
	"xroce/engine/sim"
	"xroce/roce/clock"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// pagesFor is so many bytes of memory that nobody touched.
func pagesFor(t testing.TB, n int) []byte {
	page := os.Getpagesize()
	n = max(n, 1)
	return pagertest.Map(t, (n+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, nil)[:n]
}

// paged is memory with on-demand paging, of which some pages are absent.
func paged(t testing.TB, rng *rand.Rand) maker {
	return maker{
		allocate: func(n int) []byte { return pagesFor(t, n) },
		register: func(dev *engine.Device, pd *engine.PD, b []byte) (*engine.MR, error) {
			return dev.RegODP(pd, b, mem.LocalWrite)
		},
		drop: func(b []byte) (from, to int) {
			page := os.Getpagesize()
			pages := (len(b) + page - 1) / page
			from = rng.IntN(pages)
			to = from + 1 + rng.IntN(pages-from)
			must(t, unix.Madvise(b[:cap(b)][from*page:to*page], unix.MADV_DONTNEED))
			return from * page, min(to*page, len(b))
		},
	}
}

// TestPagedRegions: messages of layouts of memory with pages that are absent, at both ends, are
// what they should be, by each protocol, over one rail and over two.
func TestPagedRegions(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	ca, cb := connect(t, hosts)
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	rng, ctx := rand.New(rand.NewPCG(11, 12)), within(t)
	how := paged(t, rng)
	for round := range 120 {
		x := exchange{hosts[1].Endpoint, ca, cb}
		a, devs := hosts[0].Endpoint, [2][]*engine.Device{{hosts[0].dev}, {hosts[1].dev}}
		if round%2 == 1 {
			x, a, devs = exchange{w.endpoints[1], w.ca, w.cb}, w.endpoints[0], w.devices
		}
		by, size := rmsg.Protocol(round/2%6), regionSizes[rng.IntN(len(regionSizes))]
		from := newLaid(t, rng, how, a, devs[0], size)
		to := newLaid(t, rng, how, x.endpoint, devs[1], max(size, 1))
		passLaid(t, ctx, &x, rng, how, from, to, by)
		from.end(t)
		to.end(t)
	}
	for i, dev := range []*engine.Device{hosts[0].dev, hosts[1].dev} {
		if s, _ := dev.ODPStats(); s.PageFaults == 0 {
			t.Errorf("end %d: no page was brought in", i)
		}
	}
}

// implicit is a region of all memory of the process, and the span of some of it.
func implicit(t testing.TB, h *host) (region *msg.Region, span func(b []byte) msg.Span) {
	t.Helper()
	pd := h.dev.AllocPD()
	mr, err := h.dev.RegODPMemory(pd, engine.ODPMemory{Length: math.MaxUint64}, mem.LocalWrite)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(mr.Deregister(), pd.Close())) })
	region, err = h.Region(mr)
	must(t, err)
	return region, func(b []byte) msg.Span { return region.Span(pager.AddressOf(b), len(b)) }
}

// TestImplicitRegions: one key, made once, is for all messages, also of memory that was mapped
// later; the peer gets keys for the bytes of a message alone.
func TestImplicitRegions(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	_, spanA := implicit(t, hosts[0])
	_, spanB := implicit(t, hosts[1])
	ca, cb := connect(t, hosts)
	x, ctx := exchange{hosts[1].Endpoint, ca, cb}, within(t)
	for i, size := range regionSizes[1:] {
		for by := rmsg.Auto; by <= rmsg.Fragments; by++ {
			from, to := pagesFor(t, size), pagesFor(t, size)
			from[size/2] = byte(i + 1) // the other pages are absent
			r := &msg.Receive{Memory: spanB(to)}
			s := &msg.Send{Memory: spanA(from), Protocol: by}
			must(t, x.pass(ctx, s, r))
			if !bytes.Equal(from, to) || to[size/2] != byte(i+1) {
				t.Fatalf("%d bytes by %v are others", size, s.Choice)
			}
		}
	}
}

// TestMemoryIsUnmapped: memory that is not there any more when a message goes ends the message by
// name: before anything of it has left, it alone, else with its connection, at both ends; nobody
// receives anything else for it, and other connections go on.
func TestMemoryIsUnmapped(t *testing.T) {
	for _, c := range []struct {
		by   rmsg.Protocol
		size int
		ends bool
	}{
		{rmsg.Eager, 1000, false},
		{rmsg.Provisioned, 60_000, false},
		{rmsg.Get, 300_000, true},
		{rmsg.Put, 300_000, true},
		{rmsg.Fragments, 60_000, true},
	} {
		t.Run(c.by.String(), func(t *testing.T) {
			// Slots that are late are waited for: there is no other way then.
			network, hosts := newNetwork(t, msg.Options{
				Machine: rmsg.Config{Patience: clock.Time(timeout.Scaled(60 * time.Second))},
			})
			ca, cb := connect(t, hosts)
			third := newHost(t, network, 3, quick, msg.Options{})
			other, theirs := connect(t, [2]*host{hosts[0], third})
			_, span := implicit(t, hosts[0])
			ctx := within(t)
			b := pagesFor(t, c.size)
			s := &msg.Send{Memory: span(b), Protocol: c.by}
			pagertest.Unmap(t, b[len(b)/2/os.Getpagesize()*os.Getpagesize():cap(b)])
			buf := bytes.Repeat([]byte{0xee}, c.size)
			r := &msg.Receive{Buffers: [][]byte{buf}, From: cb}
			must(t, hosts[1].PostReceive(r))
			must(t, ca.PostSend(s))
			err := s.Wait(ctx)
			if err == nil || c.by != rmsg.Put && !errors.Is(err, msg.ErrMemory) {
				t.Errorf("it was sent: %v", err)
			}
			t.Logf("%v, and by the peer %v", err, cb.Err())
			if c.ends {
				if err := r.Wait(ctx); err == nil || r.Length == c.size || ca.Err() == nil {
					t.Errorf("it was received: %v, %d bytes", err, r.Length)
				}
			} else {
				must(t, ca.Send(ctx, []byte("next")))
				if err := r.Wait(ctx); err != nil || string(buf[:r.Length]) != "next" {
					t.Errorf("the next message: %v, %q", err, buf[:r.Length])
				}
			}
			must(t, other.Send(ctx, []byte("beside")))
			_, err = theirs.Receive(ctx, buf)
			must(t, err)
		})
	}
}

// TestReceiveIsUnmapped: memory that is not there any more when a message comes: the receive says
// so.
func TestReceiveIsUnmapped(t *testing.T) {
	for _, by := range []rmsg.Protocol{rmsg.Eager, rmsg.Get, rmsg.Put, rmsg.Fragments} {
		t.Run(by.String(), func(t *testing.T) {
			_, hosts := newNetwork(t, msg.Options{})
			ca, cb := connect(t, hosts)
			_, span := implicit(t, hosts[1])
			ctx := within(t)
			b := pagesFor(t, 1000)
			r := &msg.Receive{Memory: span(b), From: cb}
			pagertest.Unmap(t, b[:cap(b)])
			must(t, hosts[1].PostReceive(r))
			s := &msg.Send{Buffers: [][]byte{make([]byte, 1000)}, Protocol: by}
			must(t, ca.PostSend(s))
			if err := r.Wait(ctx); err == nil || by != rmsg.Get && !errors.Is(err, msg.ErrMemory) {
				t.Errorf("received: %v", err)
			}
			if err := s.Wait(ctx); (err == nil) != (by == rmsg.Eager) {
				t.Errorf("sent: %v", err)
			}
			t.Log(r.Err, s.Err)
		})
	}
}

// TestPagesBesideAPeer: while a long message waits for its pages again and again, at both ends, an
// other peer is answered.
func TestPagesBesideAPeer(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	var hosts [3]*host
	for i := range hosts {
		hosts[i] = newHost(t, network, byte(1+i), quick, msg.Options{})
	}
	ca, cb := connect(t, [2]*host{hosts[0], hosts[1]})
	ping, pong := connect(t, [2]*host{hosts[0], hosts[2]})
	_, spanA := implicit(t, hosts[0])
	_, spanB := implicit(t, hosts[1])
	ctx, stop := context.WithCancel(within(t))
	var g errgroup.Group
	g.Go(func() error {
		for buf := make([]byte, 8); ; {
			if _, err := pong.Receive(ctx, buf); err != nil {
				return nil // it is over
			}
			if err := pong.Send(ctx, buf); err != nil {
				return err
			}
		}
	})
	const size = 8 << 20
	buf := make([]byte, 8)
	beside := 0
	for round := 0; beside < 20; round++ {
		from, to := pagesFor(t, size), pagesFor(t, size)
		r := &msg.Receive{Memory: spanB(to), From: cb}
		s := &msg.Send{Memory: spanA(from), Protocol: []rmsg.Protocol{rmsg.Get, rmsg.Put}[round%2]}
		must(t, hosts[1].PostReceive(r))
		must(t, ca.PostSend(s))
		for over := false; !over; {
			must(t, ping.Send(ctx, buf))
			_, err := ping.Receive(ctx, buf)
			must(t, err)
			select {
			case <-r.Done():
				over = true
			default:
				beside++
			}
		}
		must(t, errors.Join(r.Wait(ctx), s.Wait(ctx)))
		if !bytes.Equal(from, to) {
			t.Fatal("other bytes came")
		}
	}
	stop()
	must(t, g.Wait())
	if s, _ := hosts[1].dev.ODPStats(); s.PageFaults == 0 {
		t.Error("no page was brought in")
	}
}

// TestRegionsInNamespaces: layouts and paged memory over AF_XDP between two hosts.
func TestRegionsInNamespaces(t *testing.T) {
	hosts := newVeth(t)
	ca, cb := connect(t, hosts)
	x := exchange{hosts[1].Endpoint, ca, cb}
	rng, ctx := rand.New(rand.NewPCG(13, 14)), within(t)
	for round := range 60 {
		how := plain
		if round%2 == 1 {
			how = paged(t, rng)
		}
		size := regionSizes[rng.IntN(len(regionSizes))]
		from := newLaid(t, rng, how, hosts[0].Endpoint, []*engine.Device{hosts[0].dev}, size)
		to := newLaid(t, rng, how, hosts[1].Endpoint, []*engine.Device{hosts[1].dev}, max(size, 1))
		passLaid(t, ctx, &x, rng, how, from, to, rmsg.Protocol(round/2%6))
		from.end(t)
		to.end(t)
	}
}
