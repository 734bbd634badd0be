package tunnel

import (
	"context"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce/clock"
	rcm "xroce/roce/cm"
	"xroce/xsk/xsktest/timeout"
)

// A fakeQueue is a queue of an inside whose kernel is the test.
type fakeQueue struct {
	in, out chan []byte
	closed  chan struct{}
	once    sync.Once
	woken   atomic.Pointer[func()] // of one that is polled
}

func newFakeQueue() *fakeQueue {
	return &fakeQueue{
		in: make(chan []byte, 256), out: make(chan []byte, 256), closed: make(chan struct{}),
	}
}

func (q *fakeQueue) Read(b []byte) (int, error) {
	select {
	case d := <-q.in:
		return copy(b, d), nil
	case <-q.closed:
		return 0, os.ErrClosed
	}
}

func (q *fakeQueue) Write(b []byte) (int, error) {
	select {
	case q.out <- append([]byte{}, b...):
		return len(b), nil
	case <-q.closed:
		return 0, os.ErrClosed
	}
}

func (q *fakeQueue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// A polledFake is a fakeQueue that makes nobody wait.
type polledFake struct{ *fakeQueue }

func (q *polledFake) Poll(wake func()) int {
	q.woken.Store(&wake)
	return -1
}

// wake wakes who is to be told of a datagram. A loop that has not begun yet reads before it sleeps.
func (q *fakeQueue) wake() {
	if wake := q.woken.Load(); wake != nil {
		(*wake)()
	}
}

func (q *polledFake) Read(b []byte) (int, error) {
	select {
	case d := <-q.in:
		return copy(b, d), nil
	default:
		return 0, syscall.EAGAIN
	}
}

// A site is one end of a tunnel.
type site struct {
	*Tunnel
	t     *testing.T
	queue *fakeQueue
	end   func() // ends the tunnel and waits for that
	kill  func() // takes the device away, of one that is killable
}

// A lan is a simulated network with sites.
type lan struct {
	t       *testing.T
	network *sim.Network
	inside  int // MTU of insides
	// response is the code of how long managers wait for an answer before they ask again: a quarter
	// of a second, and 4 s until they give up, unless a test says otherwise.
	response uint8
}

// patient is a response of 4 s: where nothing is lost nobody asks twice, however busy the machine.
const patient = 20

func newLAN(t *testing.T, f sim.Faults) *lan {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), f)
	if err != nil {
		t.Fatal(err)
	}
	return &lan{t, network, 1500, 16}
}

// addr is the address of a host.
func addr(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }

// prefixes parses them.
func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

// device opens a device and a manager.
func (l *lan) device(n byte, mtu int) (*engine.Device, *cm.Manager) {
	l.t.Helper()
	return l.deviceIn(n, mtu, engine.Options{})
}

// deviceIn is device with options.
func (l *lan) deviceIn(n byte, mtu int, o engine.Options) (*engine.Device, *cm.Manager) {
	l.t.Helper()
	return l.deviceAt(n, mtu, o, addr(n))
}

// deviceAt is deviceIn of a host with another address.
func (l *lan) deviceAt(
	n byte, mtu int, o engine.Options, a netip.Addr,
) (*engine.Device, *cm.Manager) {
	l.t.Helper()
	port, err := l.network.NewPort(sim.PortConfig{
		Name: "xr0", MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: mtu, Addrs: []netip.Addr{a},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return l.deviceOn(port, port, o)
}

// deviceOn is deviceIn of a host on a port.
func (l *lan) deviceOn(
	port *sim.Port, host engine.Host, o engine.Options,
) (*engine.Device, *cm.Manager) {
	l.t.Helper()
	dev, err := engine.OpenLink(port, host, o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { dev.Close() })
	m, err := cm.Open(dev, cm.Options{Linger: -1, Machine: rcm.Config{
		ResponseTimeout: l.response, PacketLifeTime: 13, AckDelay: 1,
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { m.Close() })
	return dev, m
}

// site makes one end on a new host; peers are numbers of hosts.
func (l *lan) site(n byte, mtu int, kind InsideKind, c Config, peers ...byte) *site {
	l.t.Helper()
	dev, m := l.device(n, mtu)
	return l.siteOn(dev, m, kind, c, peers...)
}

func (l *lan) siteOn(
	dev *engine.Device, m *cm.Manager, kind InsideKind, c Config, peers ...byte,
) *site {
	l.t.Helper()
	q := newFakeQueue()
	inside := &Inside{Name: kind.String() + "0", Kind: kind, MTU: l.inside, Queues: []Queue{q}}
	if dev.Direct() {
		inside.Queues[0] = &polledFake{q}
	}
	s := l.siteIn(dev, m, inside, c, peers...)
	s.queue = q
	return s
}

// siteIn is siteOn with an inside of the caller's.
func (l *lan) siteIn(
	dev *engine.Device, m *cm.Manager, inside *Inside, c Config, peers ...byte,
) *site {
	l.t.Helper()
	t := l.openTunnel(dev, m, inside, c, peers...)
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- t.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(end)
	return &site{Tunnel: t, t: l.t, end: end}
}

// openTunnel opens a tunnel that nobody runs yet.
func (l *lan) openTunnel(
	dev *engine.Device, m *cm.Manager, inside *Inside, c Config, peers ...byte,
) *Tunnel {
	l.t.Helper()
	for _, p := range peers {
		c.Peers = append(c.Peers, Peer{Addr: addr(p)})
	}
	c.life = clock.Time(time.Hour) // so that a host which is stopped loses nothing
	if c.ackTimeout == 0 {
		c.ackTimeout = 18 // so does a connection: it ends after 8.6 s without an answer
	}
	t, err := Open(dev, m, inside, c)
	if err != nil {
		l.t.Fatal(err)
	}
	return t
}

// still is one end that does nothing by itself.
func (l *lan) still(n byte, c Config, peers ...byte) *site {
	l.t.Helper()
	dev, m := l.device(n, 1500)
	inside := &Inside{Name: "tap0", Kind: TAP, MTU: l.inside, Queues: []Queue{newFakeQueue()}}
	t := l.openTunnel(dev, m, inside, c, peers...)
	l.t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := t.Run(over); err != nil { // which closes it
			l.t.Error(err)
		}
	})
	return &site{Tunnel: t, t: l.t}
}

// killable is a site whose device may go, after which nothing is said to anybody.
func (l *lan) killable(n byte, c Config, peers ...byte) *site {
	l.t.Helper()
	dev, m := l.device(n, 1500)
	for _, p := range peers {
		c.Peers = append(c.Peers, Peer{Addr: addr(p)})
	}
	q := newFakeQueue()
	inside := &Inside{Name: "tap0", Kind: TAP, MTU: 1500, Queues: []Queue{q}}
	t, err := Open(dev, m, inside, c)
	if err != nil {
		l.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = t.Run(l.t.Context()) // it fails when the device goes
	}()
	kill := sync.OnceFunc(func() {
		dev.Close()
		<-done
	})
	l.t.Cleanup(kill)
	return &site{Tunnel: t, t: l.t, queue: q, kill: kill}
}

// idle is how long a peer may say nothing until it is forgotten, where a test waits for that: long
// enough for one to connect on a machine that is busy.
func idle() time.Duration {
	return max(2*time.Second, timeout.Scaled(300*time.Millisecond))
}

// awaitUp waits until all peers are there.
func (s *site) awaitUp() {
	s.t.Helper()
	s.await("a peer is not found", func(st Stats) bool {
		for _, p := range st.Peers {
			if !p.Up {
				return false
			}
		}
		return true
	})
}

// await waits until the counters are as they should be.
func (s *site) await(failure string, ok func(Stats) bool) {
	s.t.Helper()
	end := time.Now().Add(timeout.Scaled(20 * time.Second))
	for !ok(s.Stats()) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: %+v", failure, s.Stats())
		}
		time.Sleep(time.Millisecond)
	}
}

// send has the kernel send a datagram.
func (s *site) send(v inner.VNet, datagram []byte) {
	s.t.Helper()
	b := make([]byte, inner.VNetLen+len(datagram))
	v.Put(b)
	copy(b[inner.VNetLen:], datagram)
	select {
	case s.queue.in <- b:
	case <-time.After(timeout.Scaled(20 * time.Second)):
		s.t.Fatalf("the inside is not read: %+v", s.Stats())
	}
	s.queue.wake()
}

// receive is what the kernel is given next.
func (s *site) receive() (inner.VNet, []byte) {
	s.t.Helper()
	select {
	case b := <-s.queue.out:
		return inner.ParseVNet(b), b[inner.VNetLen:]
	case <-time.After(timeout.Scaled(20 * time.Second)):
		s.t.Fatalf("nothing comes: %+v", s.Stats())
		return inner.VNet{}, nil
	}
}
