package engine_test

import (
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// A world is some devices in direct mode on one network, which the test itself
// drives. Their GIDs are link-local, IPv4 and IPv6, in this order.
type world struct {
	t    *testing.T
	devs []*engine.Device
	// run drives the devices until done, or fails the test.
	run func(done func() bool)
	// clock and network are nil over veth, pair is on a simulated network.
	clock   *sim.VirtualClock
	network *sim.Network
	pair    *vethpair.Pair
}

// Where each GID is.
const (
	gidIPv4 = 1
	gidIPv6 = 2
)

// simWorld has n devices on a simulated network under virtual time.
func simWorld(t *testing.T, n int, f sim.Faults, o engine.Options) *world {
	t.Helper()
	return simWorldOf(t, f, slices.Repeat([]engine.Options{o}, n)...)
}

// simWorldOf is simWorld of devices with options each.
func simWorldOf(t *testing.T, f sim.Faults, options ...engine.Options) *world {
	t.Helper()
	w := &world{t: t, clock: &sim.VirtualClock{}}
	w.network = newNetwork(t, 1, w.clock, f)
	machines := make([]sim.Machine, len(options))
	for i, o := range options {
		o.Clock, o.Direct = w.clock, true
		port, err := w.network.NewPort(sim.PortConfig{
			Name: string(rune('a' + i)), MAC: [6]byte{2, 0, 0, 0, 0, byte(i + 1)}, MTU: 4200,
			Addrs: []netip.Addr{
				netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
				netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i + 1)}),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		dev, err := engine.OpenLink(port, port, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		w.devs, machines[i] = append(w.devs, dev), dev
	}
	w.run = func(done func() bool) {
		t.Helper()
		until := func() bool {
			over := done()
			if !over {
				w.awaitPages()
			}
			return over
		}
		err := w.network.Run(w.clock, w.clock.Now()+1000*roce.Second, until, machines...)
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// awaitPages waits until no pages are being brought in: threads do that in real time, while under
// virtual time all retries would pass at once.
func (w *world) awaitPages() {
	w.t.Helper()
	deadline := time.Now().Add(timeout.Scaled(20 * time.Second))
	for slices.ContainsFunc(w.devs, engine.PagesAwaited) {
		if time.Now().After(deadline) {
			w.t.Fatal("pages are not brought in")
		}
		time.Sleep(100 * time.Microsecond) // not to be right, but to leave others the CPU
	}
}

// vethWorld has two devices over AF_XDP on a veth pair.
func vethWorld(t *testing.T, v vethpair.Options, o engine.Options) *world {
	t.Helper()
	o.Direct = true
	pair, devs := vethPair(t, v, [2]engine.Options{o, o})
	w := &world{t: t, devs: devs[:], pair: pair}
	w.run = spinUntil(t, w)
	return w
}

// spinUntil drives the devices of a world in real time.
func spinUntil(t *testing.T, w *world) func(done func() bool) {
	return func(done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(timeout.Scaled(20 * time.Second)); !done(); {
			worked := false
			for _, d := range w.devs {
				worked = d.Progress() || worked
			}
			if time.Now().After(deadline) {
				t.Fatal("it hangs")
			}
			if !worked {
				runtime.Gosched()
			}
		}
	}
}

// inWorlds runs a test with two devices on the simulated wire and over AF_XDP.
func inWorlds(t *testing.T, o engine.Options, test func(*testing.T, *world)) {
	t.Helper()
	t.Run("sim", func(t *testing.T) { test(t, simWorld(t, 2, sim.Faults{}, o)) })
	t.Run("veth", func(t *testing.T) { test(t, vethWorld(t, vethpair.Options{MTU: 4200}, o)) })
}

// idle drives until there is nothing more to do on a simulated network.
func (w *world) idle() {
	w.t.Helper()
	err := w.network.Run(w.clock, w.clock.Now()+1000*roce.Second, func() bool { return false },
		machinesOf(w.devs)...)
	if !errors.Is(err, sim.ErrStuck) {
		w.t.Fatal(err)
	}
}

func machinesOf(devs []*engine.Device) []sim.Machine {
	machines := make([]sim.Machine, len(devs))
	for i, d := range devs {
		machines[i] = d
	}
	return machines
}

// take drives until n completions came to a CQ.
func (w *world) take(cq *engine.CQ, n int) []roce.Completion {
	w.t.Helper()
	wcs := make([]roce.Completion, n)
	got := 0
	w.run(func() bool {
		w.t.Helper()
		m, err := cq.Poll(wcs[got:])
		if err != nil {
			w.t.Fatal(err)
		}
		got += m
		return got == n
	})
	return wcs
}

// succeed is take of completions that must be of success.
func (w *world) succeed(cq *engine.CQ, n int) []roce.Completion {
	w.t.Helper()
	wcs := w.take(cq, n)
	for _, wc := range wcs {
		if wc.Status != roce.StatusSuccess {
			w.t.Fatalf("work request %d: %s", wc.WRID, wc.Status)
		}
	}
	return wcs
}

// event drives until a device has an event.
func (w *world) event(dev *engine.Device) (e engine.AsyncEvent) {
	w.t.Helper()
	w.run(func() bool {
		var ok bool
		e, ok = dev.PollEvent()
		return ok
	})
	return e
}

// rights are every right that a region or a QP can give.
const rights = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic |
	mem.FlushGlobal

// A seat is what one end of a test has on a device.
type seat struct {
	dev *engine.Device
	pd  *engine.PD
	cq  *engine.CQ
	mr  *engine.MR
	qp  *engine.QP
}

// seatOn makes a seat with a QP in RESET of what init asks for; what it leaves out
// is the seat's own.
func seatOn(t *testing.T, dev *engine.Device, init engine.QPInit) *seat {
	t.Helper()
	return seatIn(t, dev.AllocPD(), dev, init)
}

// seatIn is seatOn in a protection domain.
func seatIn(t *testing.T, pd *engine.PD, dev *engine.Device, init engine.QPInit) *seat {
	t.Helper()
	s := &seat{dev: dev, pd: pd}
	var err error
	if s.cq, err = dev.CreateCQ(1024); err != nil {
		t.Fatal(err)
	}
	if s.mr, err = dev.RegMR(s.pd, make([]byte, 1<<17), rights); err != nil {
		t.Fatal(err)
	}
	if init.SendCQ == nil {
		init.SendCQ = s.cq
	}
	if init.RecvCQ == nil {
		init.RecvCQ = s.cq
	}
	if s.qp, err = dev.CreateQP(s.pd, init); err != nil {
		t.Fatal(err)
	}
	return s
}

// join connects two seats from RESET.
func join(t *testing.T, a, b *seat, o engine.ConnectOptions) {
	t.Helper()
	if o.SGIDIndex == 0 {
		o.SGIDIndex = gidIPv4
	}
	if o.Timeout == 0 {
		o.Timeout = patientTimeout
	}
	ends := [2]engine.Endpoint{}
	for i, s := range []*seat{a, b} {
		var err error
		if ends[i], err = s.dev.Endpoint(s.qp, o.SGIDIndex); err != nil {
			t.Fatal(err)
		}
		if err := s.qp.Init(rights); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range []*seat{a, b} {
		if err := s.qp.Connect(t.Context(), ends[i], ends[1-i], o); err != nil {
			t.Fatal(err)
		}
	}
}

// send posts a send, or fails the test.
func (s *seat) send(t *testing.T, wr roce.SendWR) {
	t.Helper()
	if err := s.qp.PostSend(&wr); err != nil {
		t.Fatal(err)
	}
}

// recv posts a receive of n bytes at off.
func (s *seat) recv(t *testing.T, id uint64, off, n int) {
	t.Helper()
	err := s.qp.PostRecv(&roce.RecvWR{WRID: id, SGList: []roce.SGE{s.mr.SGE(off, n)}})
	if err != nil {
		t.Fatal(err)
	}
}

// counterOf reads one counter of a device.
func counterOf(t *testing.T, d *engine.Device, name string) uint64 {
	t.Helper()
	value, ok := counters(t, d)[name]
	if !ok {
		t.Fatalf("no counter %s", name)
	}
	return value
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}
