package cm_test

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/roce/mem"
	"xroce/xsk/xsktest/leaktest"
	"xroce/xsk/xsktest/timeout"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// testTimeout is longer than anything takes that does not hang.
var testTimeout = timeout.Scaled(60 * time.Second)

// must ends a test.
func must(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}

// A host is a device on the simulated wire, under real time, with its manager.
type host struct {
	dev     *engine.Device
	pd      *engine.PD
	cq      *engine.CQ
	mr      *engine.MR
	manager *cm.Manager
	v4, v6  netip.Addr
	far     netip.Addr // in the second network
	mac     [6]byte
	around  *surroundings
}

// surroundings are the host of a device, with an MTU that changes.
type surroundings struct {
	engine.Host
	mtu      atomic.Int64
	resolved atomic.Int64 // neighbours that were asked for
}

func (s *surroundings) Resolve(ctx context.Context, src, dst netip.Addr) ([6]byte, error) {
	s.resolved.Add(1)
	return s.Host.Resolve(ctx, src, dst)
}

func (s *surroundings) Port() engine.Port {
	p := s.Host.Port()
	p.MTU = int(s.mtu.Load())
	return p
}

// quick is a machine that asks again after 0.5 s and forgets after 3 ms: who says nothing for 9 s
// is given up, and a machine that is busy stops nobody for so long.
var quick = cm.Options{Machine: rcm.Config{
	ResponseTimeout: 17, PacketLifeTime: 8, AckDelay: 1,
}}

// hasty is a machine that asks again after 34 ms: it is for peers that never answer.
var hasty = cm.Options{Machine: rcm.Config{
	ResponseTimeout: 13, PacketLifeTime: 8, AckDelay: 1,
}}

// newWorld makes two hosts.
func newWorld(t testing.TB, o cm.Options, e engine.Options) (*sim.Network, [2]*host) {
	t.Helper()
	return newWorldAround(t, o, e, func(s *surroundings) engine.Host { return s })
}

// newWorldAround makes two hosts with surroundings of a kind. Each has an address in a
// second network, which comes after that in the first.
func newWorldAround(
	t testing.TB, o cm.Options, e engine.Options, kind func(*surroundings) engine.Host,
) (*sim.Network, [2]*host) {
	t.Helper()
	return newWorldOf(t, o, [2]engine.Options{e, e}, kind)
}

// newWorldOf is newWorldAround with options of each device.
func newWorldOf(
	t testing.TB, o cm.Options, options [2]engine.Options, kind func(*surroundings) engine.Host,
) (*sim.Network, [2]*host) {
	t.Helper()
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	must(t, err)
	var hosts [2]*host
	for i := range hosts {
		h := &host{
			mac: [6]byte{2, 0, 0, 0, 0, byte(i + 1)},
			v4:  netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}),
			v6:  netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i + 1)}),
			far: netip.AddrFrom4([4]byte{198, 51, 100, byte(i + 1)}),
		}
		port, err := network.NewPort(sim.PortConfig{
			MAC: h.mac, MTU: 1500, Addrs: []netip.Addr{h.v4, h.far, h.v6},
		})
		must(t, err)
		h.around = &surroundings{Host: port}
		h.around.mtu.Store(1500)
		e := options[i]
		e.Clock = clock
		h.dev, err = engine.OpenLink(port, kind(h.around), e)
		must(t, err)
		t.Cleanup(func() { must(t, h.dev.Close()) })
		h.equip(t, o)
		hosts[i] = h
	}
	return network, hosts
}

// equip gives the device of a host what connections need, and a manager.
func (h *host) equip(t testing.TB, o cm.Options) {
	t.Helper()
	var err error
	h.pd = h.dev.AllocPD()
	h.cq, err = h.dev.CreateCQ(1 << 14)
	must(t, err)
	h.mr, err = h.dev.RegMR(h.pd, make([]byte, 1<<12),
		mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead)
	must(t, err)
	h.manager, err = cm.Open(h.dev, o)
	must(t, err)
	t.Cleanup(func() { must(t, h.manager.Close()) })
}

// setup is what an end of a connection is.
func (h *host) setup() cm.Setup {
	return cm.Setup{
		PD: h.pd, Init: engine.QPInit{
			SendCQ: h.cq, RecvCQ: h.cq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1,
		},
		Access: mem.RemoteWrite | mem.RemoteRead,
		Prepare: func(qp *engine.QP) error {
			return qp.PostRecv(&roce.RecvWR{WRID: 7, SGList: []roce.SGE{h.mr.SGE(2048, 1024)}})
		},
	}
}

// within is a context for what must not hang.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// A server accepts all requests to a port until it is closed.
type server struct {
	*cm.Listener
	running sync.WaitGroup
	conns   chan *cm.Conn
	refused chan error
}

// serve begins a server.
func (h *host) serve(t testing.TB, at netip.AddrPort) *server {
	t.Helper()
	l, err := h.manager.Listen(at)
	must(t, err)
	s := &server{
		Listener: l, conns: make(chan *cm.Conn, 1<<14), refused: make(chan error, 1<<14),
	}
	ctx := within(t, 10*testTimeout)
	s.running.Go(func() {
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			s.running.Go(func() {
				setup := h.setup()
				setup.Private = r.Private()[:4]
				if c, err := r.Accept(ctx, setup); err != nil {
					s.refused <- err
				} else {
					s.conns <- c
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); s.running.Wait() })
	return s
}

// conn takes the next connection of a server.
func (s *server) conn(t testing.TB) *cm.Conn {
	t.Helper()
	select {
	case c := <-s.conns:
		return c
	case err := <-s.refused:
		t.Fatal("not accepted:", err)
	case <-time.After(testTimeout):
		t.Fatal("no connection comes")
	}
	return nil
}

// over waits until a channel is closed.
func over(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Fatal("it does not end")
	}
}

// forgotten waits until a manager holds no connection, and tests that nothing of
// the device is held either.
func (h *host) forgotten(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	for {
		held := h.manager.Usage()
		held.Listeners = 0
		if held == (rcm.Usage{}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still held: %+v", held)
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
}
