package msg_test

import (
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// setup is our end of a connection that is made without an endpoint.
func (h *host) setup(t *testing.T, private []byte) cm.Setup {
	t.Helper()
	cq, err := h.dev.CreateCQ(16)
	must(t, err)
	return cm.Setup{
		PD: h.dev.AllocPD(), Private: private,
		Init: engine.QPInit{SendCQ: cq, RecvCQ: cq},
	}
}

// changedHello is what a peer says that this end understands, but for what a test changes.
func changedHello(change func(h *rmsg.Hello)) []byte {
	h := rmsg.Hello{
		Version: rmsg.Version, MinVersion: rmsg.MinVersion, Service: rmsg.ServiceEndpoint,
	}
	change(&h)
	b := make([]byte, rmsg.HelloLen)
	h.Put(b)
	return b
}

// refusal is what a peer says that refuses.
func refusal(why rmsg.Status) []byte {
	return changedHello(func(h *rmsg.Hello) { h.Status = why })
}

// TestRefusals: who does not speak messages, or not so that this end understands it, is told why.
func TestRefusals(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	at := netip.AddrPortFrom(hosts[1].addr, 7471)
	l, err := hosts[1].Listen(at)
	must(t, err)
	defer l.Close()
	for _, c := range []struct {
		private []byte
		want    rmsg.Status
	}{
		{[]byte("hello"), rmsg.StatusService},
		{changedHello(func(h *rmsg.Hello) { h.Version, h.MinVersion = 9, 8 }), rmsg.StatusVersion},
		{changedHello(func(h *rmsg.Hello) { h.Version, h.MinVersion = 0, 0 }), rmsg.StatusVersion},
		{changedHello(func(h *rmsg.Hello) { h.Required = 1 << 15 }), rmsg.StatusCapability},
		{changedHello(func(h *rmsg.Hello) { h.Service = rmsg.ServiceStream }), rmsg.StatusService},
	} {
		_, err := hosts[0].manager.Dial(within(t), at, hosts[0].setup(t, c.private))
		var rejected *cm.RejectedError
		if !errors.As(err, &rejected) {
			t.Fatalf("%q: %v", c.private, err)
		}
		says, err := rmsg.ParseHello(rejected.Private)
		must(t, err)
		if says.Status != c.want || says.Version != rmsg.Version {
			t.Errorf("%q: %v", c.private, &says)
		}
	}
}

// TestDialNamesTheRefusal: Dial says why a peer refuses, if it says so in a way that is known, and
// that alone.
func TestDialNamesTheRefusal(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	hosts := [2]*host{
		newHost(t, network, 1, asksOnce, msg.Options{}),
		newHost(t, network, 2, asksOnce, msg.Options{}),
	}
	at := netip.AddrPortFrom(hosts[1].addr, 7471)
	l, err := hosts[1].manager.Listen(at)
	must(t, err)
	defer l.Close()
	for _, c := range []struct {
		private []byte
		want    error
		says    rmsg.Status
	}{
		{refusal(rmsg.StatusVersion), rmsg.ErrVersion, rmsg.StatusVersion},
		{refusal(rmsg.StatusCapability), rmsg.ErrCapability, rmsg.StatusCapability},
		{refusal(rmsg.StatusService), rmsg.ErrService, rmsg.StatusService},
		{refusal(200), nil, 200},
		{refusal(rmsg.StatusOK), nil, rmsg.StatusOK},
		{[]byte("no"), nil, rmsg.StatusOK},
		{nil, nil, rmsg.StatusOK},
	} {
		done := make(chan error, 1)
		go func() {
			r, err := l.Accept(within(t))
			if err == nil {
				err = r.Reject(c.private)
			}
			done <- err
		}()
		_, err := hosts[0].Dial(within(t), at)
		must(t, <-done)
		var rejected *cm.RejectedError
		var status *rmsg.StatusError
		if !errors.As(err, &rejected) || c.want != nil && !errors.Is(err, c.want) ||
			errors.As(err, &status) != (c.says != rmsg.StatusOK) ||
			status != nil && status.Status != c.says {
			t.Errorf("%q: %v", c.private, err)
		}
	}
}

// asked is how many requests have come to a manager.
func asked(m *cm.Manager) uint64 {
	counts := m.Counters()
	for id := range rcm.CounterCount {
		if id.String() == "cm_rx_msgs_req" {
			return counts[id]
		}
	}
	panic("no such counter")
}

// TestStrangersHoldUpNobody: peers that ask for connections, more than there are places, and are
// never ready, do not keep others from one.
func TestStrangersHoldUpNobody(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	patient := cm.Options{Linger: -1} // they are asked for a minute
	o := msg.Options{Linger: time.Millisecond}
	server := newHost(t, network, 1, patient, o)
	good := newHost(t, network, 2, patient, o)
	slow := newHost(t, network, 3, patient, o)
	at := netip.AddrPortFrom(server.addr, 7471)
	l, err := server.Listen(at)
	must(t, err)
	must(t, network.SetDirection([6]byte{2, 0, 0, 0, 0, 1}, [6]byte{2, 0, 0, 0, 0, 3},
		sim.Faults{Blocked: true}))
	const strangers = 120 // by turns they would have the places for 7 s
	dialled := make(chan error, strangers)
	for range strangers {
		go func() {
			_, err := slow.Dial(t.Context(), at)
			dialled <- err
		}()
	}
	for ctx := within(t); asked(server.manager) < strangers; runtime.Gosched() {
		must(t, ctx.Err())
	}
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(within(t))
		accepted <- err
	}()
	begin := time.Now()
	_, err = good.Dial(within(t), at)
	must(t, err)
	must(t, <-accepted)
	if took := time.Since(begin); took > timeout.Scaled(3*time.Second) {
		t.Errorf("it took %v to connect", took)
	}
	must(t, l.Close())
	must(t, slow.Close())
	for range strangers {
		if <-dialled == nil {
			t.Error("a stranger is connected")
		}
	}
}

// TestCloseOfDeadPeers: Close waits for peers that are gone as long as it was told.
func TestCloseOfDeadPeers(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	patient := cm.Options{Linger: -1}
	o := msg.Options{Linger: 10 * time.Millisecond}
	hosts := [2]*host{newHost(t, network, 1, patient, o), newHost(t, network, 2, patient, o)}
	ca, cb := connect(t, hosts)
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	closed := make(chan error, 2)
	for _, h := range hosts {
		go func() { closed <- h.Close() }()
	}
	for range hosts {
		select {
		case err := <-closed:
			must(t, err)
		case <-time.After(timeout.Scaled(20 * time.Second)):
			t.Fatal("it waits")
		}
	}
	for _, c := range []*msg.Conn{ca, cb} {
		<-c.Done()
		if !errors.Is(c.Err(), msg.ErrClosed) {
			t.Error(c.Err())
		}
	}
}

// TestIdlePeerThatDies is noticed by who sends nothing.
func TestIdlePeerThatDies(t *testing.T) {
	t.Parallel() // it waits most of the time
	const soon = 50_000_000
	network, hosts := newNetwork(t, msg.Options{Machine: rmsg.Config{Keepalive: soon}})
	ca, _ := connect(t, hosts)
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	_, err := ca.Receive(within(t), nil)
	if err == nil || !errors.Is(err, ca.Err()) || hosts[0].Snapshot()[rmsg.KeepaliveProbes] == 0 {
		t.Errorf("%v, connection: %v", err, ca.Err())
	}
	must(t, network.SetFaults(sim.Faults{}))
	for _, c := range []struct{ given, want int64 }{{0, 10_000_000_000}, {-1, 0}, {soon, soon}} {
		e, err := msg.Open(hosts[0].dev, hosts[0].manager, msg.Options{
			Machine: rmsg.Config{Keepalive: roce.Time(c.given)},
		})
		must(t, err)
		if got := e.Config().Keepalive; got != roce.Time(c.want) {
			t.Errorf("keepalive %v: %v", c.given, got)
		}
		must(t, e.Close())
	}
}

// TestAbort ends what is under way at both ends.
func TestAbort(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	ca, cb := connect(t, hosts)
	other := &msg.Receive{From: cb, Tag: 2, Mask: ^uint64(0)}
	must(t, hosts[1].PostReceive(other))
	s := &msg.Send{Buffers: [][]byte{make([]byte, 1<<20)}, Tag: 1, Level: rmsg.Matched}
	must(t, ca.PostSend(s))
	ca.Abort()
	ca.Abort()
	<-ca.Done()
	if err := s.Wait(within(t)); !errors.Is(err, msg.ErrClosed) || !errors.Is(ca.Err(), err) {
		t.Errorf("%v, connection: %v", err, ca.Err())
	}
	<-cb.Done()
	if err := other.Wait(within(t)); err == nil || cb.Err() == nil {
		t.Error("the peer was not told")
	}
}
