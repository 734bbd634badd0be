package engine_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// A shrinking pair is two devices on cards of four queues in memory, the first of which can be
// given fewer while it is open: no kernel does that to a socket, but the reset of a card may.
type shrinkingPair struct {
	script
	have    atomic.Int64 // queues of the first
	kernels [2]*xsktest.Kernel
	devs    [2]*engine.Device
	log     lockedBuffer
}

// A lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newShrinkingPair(t *testing.T, o engine.Options) *shrinkingPair {
	t.Helper()
	const queues = 4
	p := &shrinkingPair{}
	p.have.Store(queues)
	p.kernels[0], p.kernels[1] = xsktest.NewWire(
		xsktest.KernelOptions{Queues: queues, Hook: p.hook}, xsktest.KernelOptions{Queues: queues})
	log := slog.New(slog.NewTextHandler(&p.log, nil))
	o.Logger = log
	for i, o := range []engine.Options{o, o} {
		have := func() int { return int(p.have.Load()) }
		if i == 1 {
			have = func() int { return queues } // of the peer nobody takes any
		}
		links, err := engine.OpenShares(p.kernels[i], o, have, log)
		must(t, err)
		h := &plainHost{
			port: engine.Port{
				Name: "fake0", Index: 1, MTU: 1500, Up: true, MAC: [6]byte{2, 5: byte(1 + i)},
				Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})},
			},
			peer: [6]byte{2, 5: byte(2 - i)},
		}
		p.devs[i], err = engine.OpenLinks(links, h, o)
		must(t, err)
		t.Cleanup(func() {
			must(t, p.devs[i].Close())
			if left := p.kernels[i].Leaks(); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	return p
}

// shrink resets the first card, which has so many queues from then on: whoever sends next is told.
func (p *shrinkingPair) shrink(queues int) {
	p.have.Store(int64(queues))
	p.kernels[0].SetQueues(queues)
}

// says waits until the log has a text.
func (p *shrinkingPair) says(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(timeout.Scaled(20 * time.Second)); ; runtime.Gosched() {
		switch said := p.log.String(); {
		case strings.Contains(said, text):
			return
		case time.Now().After(end):
			t.Fatalf("%q is not said: %s", text, said)
		}
	}
}

// TestQueuesVanish takes queues away while the device is open: a device of all queues goes on with
// those that are left, and says which are gone.
func TestQueuesVanish(t *testing.T) {
	t.Parallel() // it waits most of the time
	p := newShrinkingPair(t, engine.Options{})
	a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
	connectWith(t, a, b, outlasting)
	exchange(t, a, b, 8192)
	p.shrink(2)
	p.add("Send", unix.ENXIO)
	exchange(t, a, b, 8192)
	exchange(t, b, a, 8192)
	p.says(t, "gone=2-3 left=0-1")
	if got := p.devs[0].Link().Queues; got != 2 {
		t.Errorf("%d queues, want 2", got)
	}
	if n := counterOf(t, p.devs[0], "link_error_recovery"); n == 0 {
		t.Error("it is not counted")
	}
	// They come back with the next reset.
	p.shrink(4)
	p.add("Send", unix.ENXIO)
	exchange(t, a, b, 8192)
	awaitCount(t, p.devs[0], "link_error_recovery", 2)
	if got := p.devs[0].Link().Queues; got != 4 {
		t.Errorf("%d queues, want 4", got)
	}
}

// TestQueueOfDriverVanishes takes the queue of a driver away that has no other: its queue pairs go
// on at another one, those of which it was not are not touched, and what is gone is named, be it
// that the queues were named or not.
func TestQueueOfDriverVanishes(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, tt := range map[string]struct {
		o     engine.Options
		have  int // queues that are left
		names string
	}{
		"all": {
			engine.Options{Drivers: 2}, 1, "is left: 1, 3, which 'ethtool -L fake0 combined 4'",
		},
		"named": {
			engine.Options{Drivers: 2, Queues: []int{0, 3}, Partial: true},
			3,
			"is left: 3, which 'ethtool -L fake0 combined 4'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newShrinkingPair(t, tt.o)
			var ends [2][2]*side // two connections, one at each driver
			for i := range ends {
				a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
				connectWith(t, a, b, outlasting)
				exchange(t, a, b, 8192)
				ends[i] = [2]*side{a, b}
			}
			if engine.QueueOf(ends[0][0].qp) == engine.QueueOf(ends[1][0].qp) {
				t.Fatal("both live on one queue")
			}
			p.shrink(tt.have)
			p.add("Send", unix.ENXIO)
			lost, other := ends[1], ends[0] // lost is the connection of the second driver
			if engine.QueueOf(lost[0].qp) == 0 {
				lost, other = other, lost
			}
			exchange(t, lost[0], lost[1], 8192)
			exchange(t, lost[1], lost[0], 8192)
			exchange(t, other[0], other[1], 8192)
			p.says(t, tt.names)
			if got := engine.QueueOf(lost[0].qp); got != 0 {
				t.Errorf("the queue pair lives on queue %d", got)
			}
			if c := newSide(t, p.devs[0]); engine.QueueOf(c.qp) != 0 {
				t.Error("a new queue pair has no link")
			}
			if err := p.devs[0].Err(); err != nil {
				t.Error(err)
			}
			for _, e := range ends {
				if s := e[0].qp.State(); s != roce.StateRTS {
					t.Errorf("a queue pair is in %s", s)
				}
			}
		})
	}
}
