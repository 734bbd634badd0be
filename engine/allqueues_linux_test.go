package engine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestAllQueues has connections whose packets the wire scatters over four receive queues, as a
// card with RSS does, in each mode of progress.
func TestAllQueues(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    engine.Options
	}{
		{"one driver", engine.Options{}},
		{"two drivers", engine.Options{Drivers: 2, CPUs: []int{0, 1}}},
		{"four drivers", engine.Options{Drivers: 4}},
		{"direct", engine.Options{Direct: true}},
		{"busy", engine.Options{Busy: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			xsktest.NeedRoot(t)
			before := xsktest.Overruns(t)
			_, devs := vethPair(t, vethpair.Options{
				MTU: 4200, Queues: 4, Scatter: vethpair.ScatterFlows,
			}, [2]engine.Options{tt.o, {Drivers: 1}})
			if i := devs[1].Link(); i.Queues != 4 || i.Queue != 0 {
				t.Errorf("link %+v", i)
			}
			connections := 8
			if tt.o.Busy {
				connections = 2 // a processor is taken
			}
			for range connections {
				a, b := newSide(t, devs[0]), newSide(t, devs[1])
				connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
				for _, size := range []int{1, 4097, 1 << 16} {
					exchange(t, a, b, size)
					if !tt.o.Direct { // else nobody drives the one that answers
						exchange(t, b, a, size)
					}
				}
			}
			expectNoLossSince(t, before, devs[:]...)
			for _, d := range devs {
				if n := counterOf(t, d, "xdp_pass_no_socket"); n != 0 {
					t.Errorf("%d packets went to the kernel", n)
				}
			}
		})
	}
}

// TestFramesOnAnyQueue has each frame come on any queue, so that packets of a connection overtake
// each other on the way, with as many drivers as queues and with one.
func TestFramesOnAnyQueue(t *testing.T) {
	_, devs := vethPair(t, vethpair.Options{
		MTU: 1500, Queues: 4, Scatter: vethpair.ScatterFrames,
	}, [2]engine.Options{{Drivers: 4}, {}})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 17})
	for _, size := range []int{0, 4097, 1 << 15} {
		exchange(t, a, b, size)
		exchange(t, b, a, size)
	}
}

func TestQueuesLeftOut(t *testing.T) {
	pair := xsktest.NewPair(t, vethpair.Options{Queues: 4})
	open := func(o engine.Options) (err error) {
		return pair.Pair.Do(vethpair.A, func() error {
			d, err := engine.Open(vethpair.IfName, o)
			if err == nil {
				err = d.Close()
			}
			return err
		})
	}
	for _, tt := range []struct {
		o    engine.Options
		left bool
		text []string
	}{
		{engine.Options{Queues: []int{1, 0}}, true, []string{
			"2-3 of 4", "ethtool -L xr0 combined 2", "--queues all", "--force",
		}},
		{engine.Options{Queues: []int{2}}, true, []string{"0-1, 3 of 4"}},
		{engine.Options{Queues: []int{0, 4}, Partial: true}, false, []string{
			"no receive queue 4, only 0 to 3",
		}},
		{engine.Options{Queues: []int{3, 3}, Partial: true}, false, []string{"named twice"}},
		{engine.Options{Queues: []int{}}, false, []string{"needs a queue"}},
		{engine.Options{Drivers: 5}, false, []string{"5 drivers for 4 queues"}},
		{engine.Options{Backend: engine.BackendAsavie}, false, []string{"drives one queue"}},
	} {
		err := open(tt.o)
		if err == nil || errors.Is(err, engine.ErrQueuesLeftOut) != tt.left {
			t.Errorf("%v: %v", tt.o.Queues, err)
			continue
		}
		for _, text := range tt.text {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v: %v, not with %q", tt.o.Queues, err, text)
			}
		}
	}
	for _, o := range []engine.Options{
		{Queues: []int{2}, Partial: true},
		{Queues: []int{3, 1}, Partial: true, Drivers: 2},
		{Queues: []int{3, 1, 0, 2}},
	} {
		if err := open(o); err != nil {
			t.Errorf("%v: %v", o.Queues, err)
		}
	}
}

// TestTwoDevicesOfAnInterface: a process opens an interface twice, on other queues each, and what
// one of them does ends with that one alone.
func TestTwoDevicesOfAnInterface(t *testing.T) {
	halves := [2]engine.Options{
		{Queues: []int{0, 1}, Partial: true}, {Queues: []int{2, 3}, Partial: true},
	}
	xsktest.NeedRoot(t)
	before := xsktest.Overruns(t)
	// What is sent on a queue comes to the one with its number.
	pair, first := vethPair(t, vethpair.Options{Queues: 4}, [2]engine.Options{halves[0], halves[0]})
	second := [2]*engine.Device{
		openIn(t, pair, vethpair.A, halves[1]), openIn(t, pair, vethpair.B, halves[1]),
	}
	err := pair.Do(vethpair.A, func() error {
		_, err := engine.Open(vethpair.IfName, engine.Options{Queues: []int{1, 2}, Partial: true})
		return err
	})
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "queue 1 of xr0") {
		t.Errorf("queues of another device: %v", err)
	}
	c, d := newSide(t, second[0]), newSide(t, second[1])
	unhurried := engine.ConnectOptions{SGIDIndex: 1, Timeout: 20} // nothing is sent twice
	connectWith(t, c, d, unhurried)
	a, b := newSide(t, first[0]), newSide(t, first[1])
	connectWith(t, a, b, unhurried)
	exchange(t, a, b, 4097)
	exchange(t, c, d, 4097)
	for _, dev := range first {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	exchange(t, d, c, 1<<16)
	expectNoLossSince(t, before, second[:]...)
}

// TestMissedQueue: packets on a queue that was left out raise an event and are logged, once until
// they are twice as many.
func TestMissedQueue(t *testing.T) {
	var log bytes.Buffer
	_, devs := vethPair(t, vethpair.Options{
		Queues: 2, Scatter: vethpair.ScatterFrames,
	}, [2]engine.Options{
		{}, {Queues: []int{0}, Partial: true, Logger: slog.New(slog.NewTextHandler(&log, nil))},
	})
	look := engine.LookForMissed(devs[1])
	look()
	uc := engine.QPInit{Type: roce.TypeUC}
	a, b := newSideOf(t, devs[0], uc), newSideOf(t, devs[1], uc)
	connect(t, a, b)
	for counterOf(t, devs[1], "xdp_pass_no_socket") == 0 {
		postWrites(t, a, b, 8, 4097)
		a.wait(t, 8)
	}
	look()
	var events []roce.Event
	for e, ok := devs[1].PollEvent(); ok; e, ok = devs[1].PollEvent() {
		events = append(events, e.Type)
	}
	if !slices.Contains(events, roce.EventQueueMissed) {
		t.Errorf("events %v", events)
	}
	for range 50 {
		look()
	}
	packets := counterOf(t, devs[1], "xdp_pass_no_socket")
	if err := devs[1].Close(); err != nil { // nobody logs any more
		t.Error(err)
	}
	// They may come one after the other, and the device looks, too.
	n, most := strings.Count(log.String(), "receive queue without a socket"), 2*bits.Len64(packets)
	if n < 1 || n > most {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// TestQueuesOfTheProgram: a device has the receive queues that a driver adds when the XDP program
// is attached.
func TestQueuesOfTheProgram(t *testing.T) {
	pair := xsktest.NewPair(t, vethpair.Options{Queues: 2})
	for _, tt := range []struct {
		queues []int
		err    error
	}{{nil, nil}, {[]int{0}, engine.ErrQueuesLeftOut}} {
		asked := 0
		o := engine.Options{Queues: tt.queues}
		engine.CountQueues(&o, func(string) (int, error) {
			asked++
			return min(asked, 2), nil
		})
		err := pair.Pair.Do(vethpair.A, func() error {
			d, err := engine.Open(vethpair.IfName, o)
			if err != nil {
				return err
			}
			if got := d.Link().Queues; got != 2 {
				t.Errorf("%d queues", got)
			}
			return d.Close()
		})
		if !errors.Is(err, tt.err) {
			t.Errorf("queues %v: %v", tt.queues, err)
		}
	}
}

// TestQueuesAreCountedOneWay: a device that is open learns how many receive queues there are in the
// way in which it learned that at first.
func TestQueuesAreCountedOneWay(t *testing.T) {
	pair := xsktest.NewPair(t, vethpair.Options{Queues: 2})
	var have atomic.Int64
	have.Store(2)
	var o engine.Options
	engine.CountQueues(&o, func(string) (int, error) { return int(have.Load()), nil })
	d := openIn(t, pair.Pair, vethpair.A, o)
	have.Store(1)
	setMTU(t, pair.Pair, 1400) // so that it looks
	comesAbout(t, func() bool { return d.Link().Queues == 1 })
}
