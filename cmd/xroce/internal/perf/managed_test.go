package perf

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// TestManagedSilence: where a host is but nobody who speaks rdma_cm, a client gives up.
func TestManagedSilence(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	client := device(t, network, 1, engine.Options{})
	defer client.Close()
	server := device(t, network, 2, engine.Options{})
	defer server.Close()
	manager, err := cm.Open(client, cm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	cq, err := client.CreateCQ(2)
	if err != nil {
		t.Fatal(err)
	}
	m := &Managed{
		manager: manager, at: netip.MustParseAddrPort("192.0.2.2:18515"), dial: true,
		patience: time.Millisecond,
	}
	setup := cm.Setup{PD: client.AllocPD(), Init: engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
	}}
	_, err = m.ask(t.Context(), setup)
	if !errors.Is(err, cm.ErrTimeout) || !strings.Contains(err.Error(), "Does it run with -R") {
		t.Errorf("%v, want ErrTimeout and a question", err)
	}
	deaf, err := cm.Open(server, cm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	m.patience = time.Minute
	_, err = m.ask(t.Context(), setup)
	if err == nil || !strings.Contains(err.Error(), "start the server first") {
		t.Errorf("%v, want advice", err)
	}
}

// TestManagedPeerSaysNothing: a peer that connects by rdma_cm and says nothing but its version is
// not waited for for ever, by either end.
func TestManagedPeerSaysNothing(t *testing.T) {
	for _, dial := range []bool{false, true} {
		network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
		if err != nil {
			t.Fatal(err)
		}
		at := netip.MustParseAddrPort("192.0.2.1:18515")
		var devs [2]*engine.Device
		ends := [2]chan *Managed{make(chan *Managed, 1), make(chan *Managed, 1)}
		listening := make(chan struct{})
		for i := range devs {
			devs[i] = device(t, network, byte(i+1), engine.Options{})
			manager, err := cm.Open(devs[i], cm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			go func() {
				if i == 1 {
					<-listening
				}
				m, err := NewManaged(t.Context(), devs[i], manager, at, netip.Addr{}, i == 1,
					func() { close(listening) }, nil)
				if err != nil {
					t.Error(err)
				} else if i == 1 {
					b := make([]byte, 16)
					copy(b, perftest.OurVersion)
					if err := m.write(b); err != nil { // its first word, and its last
						t.Error(err)
					}
				}
				ends[i] <- m
			}()
		}
		server, client := <-ends[0], <-ends[1]
		if server == nil || client == nil {
			t.FailNow()
		}
		ours, dev := server, devs[0]
		if dial {
			ours, dev = client, devs[1]
		}
		o := Options{Config: brief(Test{Verb: Send}), Tell: &Record{}}
		o.hurry.setup = time.Second
		o.Dial, o.Managed, o.OtherDrives = dial, true, true
		if _, err := Run(t.Context(), dev, ours, o); !errors.Is(err, errSetup) {
			t.Errorf("dial %v: %v", dial, err)
		}
		var parting sync.WaitGroup
		parting.Go(client.Close)
		parting.Go(server.Close)
		parting.Wait()
	}
}

// TestManagedAbsentClients: who asks a server, and does not confirm its answer, keeps no client
// from it.
func TestManagedAbsentClients(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort("192.0.2.1:18515")
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	var devs [3]*engine.Device
	var managers [3]*cm.Manager
	for i := range managers {
		devs[i] = device(t, network, byte(i+1), engine.Options{})
		if managers[i], err = cm.Open(devs[i], cm.Options{Linger: -1}); err != nil {
			t.Fatal(err)
		}
		defer managers[i].Close()
	}
	answered := make(chan struct{}, 1)
	network.Observe(func(e *sim.Event) {
		if e.To == [6]byte{2, 0, 0, 0, 0, 3} && e.From == [6]byte{2, 0, 0, 0, 0, 1} {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	err = network.SetDirection([6]byte{2, 0, 0, 0, 0, 1}, [6]byte{2, 0, 0, 0, 0, 3},
		sim.Faults{Blocked: true})
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	var ends [2]*Managed
	var meeting, parting sync.WaitGroup
	meeting.Go(func() {
		ends[0], err = NewManaged(ctx, devs[0], managers[0], at, netip.Addr{}, false,
			func() { close(listening) }, nil)
	})
	<-listening
	cq, cqErr := devs[2].CreateCQ(4)
	if cqErr != nil {
		t.Fatal(cqErr)
	}
	parting.Go(func() {
		_, _ = managers[2].Dial(ctx, at, cm.Setup{PD: devs[2].AllocPD(), Init: engine.QPInit{
			SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
		}})
	})
	<-answered
	var clientErr error
	ends[1], clientErr = NewManaged(ctx, devs[1], managers[1], at, netip.Addr{}, true, nil, nil)
	must(t, clientErr)
	b := make([]byte, 16)
	copy(b, perftest.OurVersion)
	must(t, ends[1].write(b))
	if meeting.Wait(); err != nil || clientErr != nil {
		t.Fatalf("server: %v, client: %v", err, clientErr)
	}
	if got := ends[0].talk.RemoteAddr(); got != ends[1].talk.LocalAddr() {
		t.Errorf("the server is connected to %s", got)
	}
	for _, m := range ends {
		parting.Go(m.Close)
	}
	managers[2].Close() // who dials gives up
	parting.Wait()
}

// TestManagedLastWord: who is told of the last word and of the end at once, because it was
// not scheduled when the one came before the other, has both.
func TestManagedLastWord(t *testing.T) {
	for range 64 { // a select of two that are ready takes any
		m := &Managed{
			inbox: make(chan []byte, 1), sent: make(chan struct{}, 1), over: make(chan struct{}),
			err: errSetup,
		}
		m.inbox <- []byte("keys")
		m.sent <- struct{}{}
		close(m.over)
		if _, err := await(m, m.sent); err != nil {
			t.Fatalf("a message that was acknowledged: %v", err)
		}
		if b, err := m.read(); err != nil || string(b) != "keys" {
			t.Fatalf("a message that came: %q, %v", b, err)
		}
		if b, err := m.read(); !errors.Is(err, errSetup) {
			t.Fatalf("no message: %q, %v", b, err)
		}
	}
}

// TestManagedStrangers: who connects to a server and hangs up, or says something else than a client
// of perftest does, or nothing, is told of, and keeps no client from it.
func TestManagedStrangers(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	at := netip.MustParseAddrPort("192.0.2.1:18515")
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	var devs [3]*engine.Device
	var managers [3]*cm.Manager
	for i := range managers {
		devs[i] = device(t, network, byte(i+1), engine.Options{})
		managers[i], err = cm.Open(devs[i], cm.Options{Linger: -1})
		must(t, err)
		defer managers[i].Close()
	}
	listening, strange := make(chan struct{}), make(chan error, 9)
	var server, client *Managed
	var meeting, parting sync.WaitGroup
	meeting.Go(func() {
		server, err = NewManaged(ctx, devs[0], managers[0], at, netip.Addr{}, false,
			func() { close(listening) }, func(_ *cm.Request, err error) { strange <- err })
	})
	<-listening
	for _, says := range []string{"", "hello", "no version, no!"} {
		m := &Managed{dev: devs[2], manager: managers[2], at: at, dial: true, patience: time.Minute}
		talk, err := m.meet(ctx)
		must(t, err)
		if says != "" {
			copy(talk.mr.Bytes()[messageLen:], says)
			must(t, talk.QP().PostSend(&roce.SendWR{
				Opcode: roce.OpSend, SGList: []roce.SGE{talk.mr.SGE(messageLen, len(says))},
			}))
		} else {
			talk.drop()
		}
		why := <-strange
		if said := errors.Is(why, ErrNoClient); said != (says != "") {
			t.Errorf("%q: %v", says, why)
		}
	}
	silent := &Managed{
		dev: devs[2], manager: managers[2], at: at, dial: true, patience: time.Minute,
	}
	_, dialErr := silent.meet(ctx)
	must(t, dialErr)
	client, dialErr = NewManaged(ctx, devs[1], managers[1], at, netip.Addr{}, true, nil, nil)
	must(t, dialErr)
	b := make([]byte, 16)
	copy(b, perftest.OurVersion)
	must(t, client.write(b))
	meeting.Wait()
	must(t, err)
	if got := server.talk.RemoteAddr(); got != client.talk.LocalAddr() {
		t.Errorf("the server is connected to %s", got)
	}
	if got, err := server.read(); err != nil || string(got) != string(b) {
		t.Errorf("the first word is %q: %v", got, err)
	}
	for _, m := range []*Managed{server, client} {
		parting.Go(m.Close)
	}
	parting.Wait()
}
