package msg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// wires are networks that two hosts are on, with a device each.
type wires struct {
	nets      []*sim.Network
	devices   [2][]*engine.Device
	endpoints [2]*msg.Endpoint
	at        []netip.AddrPort // of the second host
	ca, cb    *msg.Conn
}

// newWires connects two hosts by so many rails. Each rail is lost when a host is not scheduled for
// half a second, so a connection without one waits for the next, unless the options say how long.
func newWires(t *testing.T, rails int, o msg.Options) *wires {
	t.Helper()
	if o.Machine.Grace == 0 {
		o.Machine.Grace = roce.Time(timeout.Scaled(60 * time.Second))
	}
	w := &wires{}
	how := quick
	how.Linger = -1 // endpoints have waited, if there is anybody to wait for
	var devices [2][]msg.Rail
	for i := range rails {
		network, err := sim.NewNetwork(uint64(i), engine.NewSystemClock(), sim.Faults{})
		must(t, err)
		w.nets = append(w.nets, network)
		for host := range devices {
			addr := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(host + 1)})
			port, err := network.NewPort(sim.PortConfig{
				MAC: [6]byte{2, 0, 0, 0, byte(i), byte(host + 1)}, MTU: 4200,
				Addrs: []netip.Addr{addr},
			})
			must(t, err)
			dev, err := engine.OpenLink(port, port, engine.Options{})
			must(t, err)
			t.Cleanup(func() { must(t, dev.Close()) })
			manager, err := cm.Open(dev, how)
			must(t, err)
			t.Cleanup(func() { must(t, manager.Close()) })
			devices[host] = append(devices[host], msg.Rail{Device: dev, Manager: manager})
			w.devices[host] = append(w.devices[host], dev)
			if host == 1 {
				w.at = append(w.at, netip.AddrPortFrom(addr, 7471))
			}
		}
	}
	for host := range devices {
		e, err := msg.OpenRails(o, devices[host]...)
		must(t, err)
		t.Cleanup(func() { must(t, e.Close()) })
		w.endpoints[host] = e
	}
	l, err := w.endpoints[1].Listen(w.at[0], w.at[1:]...)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	accepted := make(chan error, 1)
	go func() {
		var err error
		w.cb, err = l.Accept(within(t))
		accepted <- err
	}()
	w.ca, err = w.endpoints[0].Dial(within(t), w.at[0], w.at[1:]...)
	must(t, err)
	must(t, <-accepted)
	return w
}

// cut has nothing pass on a wire any more, or all again.
func (w *wires) cut(t *testing.T, i int, cut bool) {
	t.Helper()
	must(t, w.nets[i].SetFaults(sim.Faults{Blocked: cut}))
}

// up waits until as many rails are up at both ends.
func (w *wires) up(t *testing.T, want int) {
	t.Helper()
	for _, c := range []*msg.Conn{w.ca, w.cb} {
		upAt(t, want, c.Rails)
	}
}

// upAt waits until as many rails are up at an end.
func upAt(t *testing.T, want int, rails func() []msg.RailState) {
	t.Helper()
	ctx := within(t)
	for {
		n := 0
		for _, r := range rails() {
			if r.Up {
				n++
			}
		}
		if n == want {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d rails, not %d", n, want)
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
}

// TestRails: messages of all lengths go both ways while one rail after the other is cut and heals.
// Each arrives once, whole, in its order.
func TestRails(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	stop := make(chan struct{})
	results := make(chan error, 4)
	for _, ends := range [2][2]*msg.Conn{{w.ca, w.cb}, {w.cb, w.ca}} {
		total := make(chan uint64, 1)
		go func() { results <- sayNumbered(t, ends[0], stop, total) }()
		go func() { results <- hearNumbered(t, ends[1], total) }()
	}
	for round := range 4 {
		w.cut(t, round%2, true)
		w.up(t, 1)
		w.cut(t, round%2, false)
		w.up(t, 2)
	}
	unused := func(r msg.RailState) bool {
		return r.Usage.Frames == 0 || r.Usage.FrameBytes == 0 || r.Usage.Read == 0
	}
	// On a machine that is busy few messages go between two cuts, and none of a kind.
	for ctx := within(t); slices.ContainsFunc(w.ca.Rails(), unused) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	close(stop)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for host, e := range w.endpoints {
		n := e.Counters()
		t.Logf("host %d: %d rails lost, %d changes, %d items and %d parts again", host,
			n[rmsg.RailsLost], n[rmsg.Resumed], n[rmsg.SentAgain], n[rmsg.ChunksAgain])
		if n[rmsg.RailsLost] < 4 || n[rmsg.Resumed] == 0 {
			t.Errorf("host %d: %d rails lost, %d changes", host, n[rmsg.RailsLost], n[rmsg.Resumed])
		}
	}
	for i, r := range w.ca.Rails() {
		t.Logf("rail %d: %+v", i, r)
		if unused(r) {
			t.Errorf("rail %d: %+v", i, r)
		}
	}
}

var lengths = []int{8, 64, 1000, 5000, 70_000, 300_000}

// sayNumbered sends messages that say their number, until it is told to stop, and tells how many.
func sayNumbered(t *testing.T, c *msg.Conn, stop chan struct{}, total chan uint64) error {
	defer close(total)
	for n := uint64(0); ; n++ {
		select {
		case <-stop:
			total <- n
			return c.Send(within(t), binary.BigEndian.AppendUint64(nil, ^uint64(0)))
		default:
		}
		if err := c.Send(within(t), numbered(n)); err != nil {
			return err
		}
	}
}

// numbered is the message of a number.
func numbered(n uint64) []byte {
	data := bytes.Repeat([]byte{byte(n)}, lengths[n%uint64(len(lengths))])
	binary.BigEndian.PutUint64(data, n)
	return data
}

// hearNumbered takes those messages.
func hearNumbered(t *testing.T, c *msg.Conn, total chan uint64) error {
	buf := make([]byte, 1<<20)
	for want := uint64(0); ; want++ {
		n, err := c.Receive(within(t), buf)
		switch {
		case err != nil:
			return err
		case n == 8 && binary.BigEndian.Uint64(buf) == ^uint64(0):
			if sent := <-total; sent != want {
				t.Errorf("%d messages came of %d", want, sent)
			}
			return nil
		case !bytes.Equal(buf[:n], numbered(want)):
			t.Errorf("message %d of %d bytes in the place of %d", binary.BigEndian.Uint64(buf), n,
				want)
			return nil
		}
	}
}

// TestRailOfNoSession: who does not know the token of a session gets no rail of it, is told, and
// is counted.
func TestRailOfNoSession(t *testing.T) {
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	before := w.endpoints[1].Counters()[rmsg.RailsRefused] // of who was too early
	h := hello()
	h.Capabilities |= rmsg.CapabilityRails
	h.Rails, h.Session = 2, rmsg.Token{1}
	private := make([]byte, rmsg.HelloLen)
	h.Put(private)
	addr := netip.AddrFrom4([4]byte{10, 0, 1, 3})
	port, err := w.nets[1].NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 1, 3}, MTU: 4200, Addrs: []netip.Addr{addr},
	})
	must(t, err)
	dev, err := engine.OpenLink(port, port, engine.Options{})
	must(t, err)
	defer func() { must(t, dev.Close()) }()
	manager, err := cm.Open(dev, quick)
	must(t, err)
	defer func() { must(t, manager.Close()) }()
	cq, err := dev.CreateCQ(64)
	must(t, err)
	pd := dev.AllocPD()
	_, err = manager.Dial(within(t), w.at[1], cm.Setup{
		PD: pd, Private: private,
		Init: engine.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4, MaxRecvWR: 4},
	})
	var rejected *cm.RejectedError
	if !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	theirs, err := rmsg.ParseHello(rejected.Private)
	if err != nil || theirs.Status != rmsg.StatusSession {
		t.Errorf("%v, %v", &theirs, err)
	}
	// A request that is answered late comes again, and is refused again.
	refused, again := w.endpoints[1].Counters()[rmsg.RailsRefused]-before, repeated(manager)
	if refused < 1 || refused > 1+again {
		t.Errorf("%d rails refused, %d requests came again", refused, again)
	}
	must(t, w.ca.Send(within(t), []byte("still here")))
}

// deadLinger is how long endpoints wait at their end in tests that leave one without an answer.
const deadLinger = 50 * time.Millisecond

// TestRailWithoutItsDevice: a device of one end is closed. Long messages go on by the other one, by
// the protocol that was chosen: memory needs no key of a device that is gone.
func TestRailWithoutItsDevice(t *testing.T) {
	w := newWires(t, 2, msg.Options{
		Linger: deadLinger, Machine: rmsg.Config{Policy: rmsg.EnlargeNever},
	})
	w.up(t, 2)
	must(t, w.devices[0][0].Close())
	w.up(t, 1)
	buf, ctx := make([]byte, 300_000), within(t)
	for _, ends := range [2][2]*msg.Conn{{w.ca, w.cb}, {w.cb, w.ca}} {
		for _, p := range []rmsg.Protocol{rmsg.Get, rmsg.Put} {
			s := &msg.Send{Buffers: [][]byte{numbered(5)}, Protocol: p}
			must(t, ends[0].PostSend(s))
			n, err := ends[1].Receive(ctx, buf)
			must(t, err)
			must(t, s.Wait(ctx))
			if !bytes.Equal(buf[:n], numbered(5)) || s.Choice.Protocol != p {
				t.Errorf("%d bytes by %v, not by %v", n, s.Choice, p)
			}
		}
	}
}

// TestDeviceEndsUnderTraffic: a device is closed while messages come by it. What its adapter has
// acknowledged, and nobody has looked at, is not lost with it: the peer does not send it again.
func TestDeviceEndsUnderTraffic(t *testing.T) {
	for range 3 {
		w := newWires(t, 2, msg.Options{Linger: deadLinger})
		w.up(t, 2)
		stop := make(chan struct{})
		results := make(chan error, 4)
		for _, ends := range [2][2]*msg.Conn{{w.ca, w.cb}, {w.cb, w.ca}} {
			total := make(chan uint64, 1)
			go func() { results <- sayNumbered(t, ends[0], stop, total) }()
			go func() { results <- hearNumbered(t, ends[1], total) }()
		}
		for ctx := within(t); w.cb.Rails()[0].Usage.Frames < 100; runtime.Gosched() {
			must(t, ctx.Err())
		}
		must(t, w.devices[1][0].Close())
		w.up(t, 1)
		close(stop)
		for range cap(results) {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	}
}

// TestClosedWithoutRails: an endpoint is closed while a connection has no rail and waits for one to
// come back. It is over then, who waits for its messages is told, and its memory is given back.
func TestClosedWithoutRails(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWires(t, 2, msg.Options{Linger: deadLinger})
	w.up(t, 2)
	must(t, w.ca.Send(within(t), numbered(3))) // so that there is memory for messages
	for i := range w.nets {
		w.cut(t, i, true)
	}
	w.up(t, 0)
	for _, dev := range w.devices[0] { // until only that of the connection manager is left
		for ctx := within(t); dev.Resources(0).Total.QP > 1; {
			must(t, ctx.Err())
			time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
		}
	}
	r := &msg.Receive{Buffers: [][]byte{make([]byte, 8)}, From: w.ca}
	must(t, w.endpoints[0].PostReceive(r))
	must(t, w.endpoints[0].Close())
	if err := w.ca.Err(); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("the connection of an endpoint that is closed: %v", err)
	}
	if err := r.Wait(within(t)); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("a receive: %v", err)
	}
	for i, dev := range w.devices[0] {
		if now := dev.Resources(0).Total; now.PD != 1 || now.MR != 1 {
			t.Errorf("device %d: %+v is left", i, now)
		}
	}
}

// TestOneDeviceDoesNotRegister: memory that one of several devices does not register is known to
// none of them.
func TestOneDeviceDoesNotRegister(t *testing.T) {
	devices := bareDevices(t, 2)
	before := [2]engine.ResourceCount{}
	var on []msg.Domain
	for i, dev := range devices {
		pd := dev.AllocPD()
		t.Cleanup(func() { must(t, pd.Close()) })
		on = append(on, msg.Domain{Device: dev, PD: pd})
		before[i] = dev.Resources(0).Total
	}
	machine, err := rmsg.New(rmsg.Config{Rails: 2, Rand: rand.New(rand.NewPCG(1, 1))})
	must(t, err)
	ours, theirs := hello(), hello()
	for _, h := range []*rmsg.Hello{ours, theirs} {
		h.Capabilities |= rmsg.CapabilityRails
		h.Rails = 2
	}
	theirs.Session = rmsg.Token{1}
	conn, err := machine.Open(devices[0].Now(), ours, theirs, 64)
	must(t, err)
	want := &rmsg.Request{
		Kind: rmsg.Expose, Conn: conn, Pieces: [][]byte{make([]byte, 100), make([]byte, 100)},
	}
	m, err := msg.Provide(on, want)
	must(t, err)
	if m.LKey == 0 || m.Further[0].LKey == 0 {
		t.Errorf("%+v", m)
	}
	_, err = msg.Provide(on, &rmsg.Request{Kind: rmsg.Release, Given: m})
	must(t, err)
	on[1].PD = on[0].PD // which is of another device
	if _, err := msg.Provide(on, want); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("registered: %v", err)
	}
	for i, dev := range devices {
		if now := dev.Resources(0).Total; now != before[i] {
			t.Errorf("device %d: %+v, before %+v", i, now, before[i])
		}
	}
}

// bareDevices opens devices that nobody else uses.
func bareDevices(t *testing.T, n int) (devices []*engine.Device) {
	t.Helper()
	for i := range n {
		network, err := sim.NewNetwork(uint64(i), engine.NewSystemClock(), sim.Faults{})
		must(t, err)
		port, err := network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, byte(i)}, MTU: 4200,
		})
		must(t, err)
		dev, err := engine.OpenLink(port, port, engine.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, dev.Close()) })
		devices = append(devices, dev)
	}
	return devices
}
