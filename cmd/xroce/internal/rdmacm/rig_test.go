package rdmacm

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	machine "xroce/roce/cm"
	"xroce/xsk/xsktest/timeout"
)

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}

// A party is one end of a rig: a station, its addresses and what it said.
type party struct {
	*Station
	network *sim.Network
	v4, v6  netip.Addr
	ready   chan struct{} // receives a value when it listens

	mu   sync.Mutex
	said strings.Builder
}

func (p *party) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.said, format, args...)
}

// lines is what the party said.
func (p *party) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// quick is a manager that asks again after 0.8 s, gives up after 12 s and forgets after 0.5 s.
// Its queue pairs send again after 0.5 s, for 4 s: for a wire that loses.
var quick = cm.Options{Machine: machine.Config{
	ResponseTimeout: 16, PacketLifeTime: 16, AckDelay: 1,
}}

// patient is a manager whose queue pairs wait 9 s for a peer, and itself 26 s, or 9 s where it
// looks one up: where nothing is lost, what is late is on a machine that is busy.
var patient = cm.Options{Machine: machine.Config{
	ResponseTimeout: 17, PacketLifeTime: 17, AckDelay: 1,
}}

// newRig makes a server and a client on a simulated network.
func newRig(t *testing.T, faults sim.Faults) (server, client *party) {
	t.Helper()
	if faults == (sim.Faults{}) {
		return newRigWith(t, faults, patient)
	}
	return newRigWith(t, faults, quick)
}

// newRigWith is newRig with managers of a kind.
func newRigWith(
	t *testing.T, faults sim.Faults, options cm.Options,
) (server, client *party) {
	t.Helper()
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(3, clock, faults)
	must(t, err)
	var parties [2]*party
	for i := range parties {
		n := byte(i + 1)
		p := &party{
			network: network,
			v4:      netip.AddrFrom4([4]byte{192, 0, 2, n}), ready: make(chan struct{}, 1),
			v6: netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n}),
		}
		port, err := network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 1500, Addrs: []netip.Addr{p.v4, p.v6},
		})
		must(t, err)
		dev, err := engine.OpenLink(port, port, engine.Options{Clock: clock})
		must(t, err)
		t.Cleanup(func() { must(t, dev.Close()) })
		manager, err := cm.Open(dev, options)
		must(t, err)
		t.Cleanup(func() { must(t, manager.Close()) })
		p.Station = &Station{
			Dev: dev, Manager: manager, Log: slog.New(slog.DiscardHandler), Say: p.say,
			Listening: func(netip.AddrPort) { p.ready <- struct{}{} },
		}
		parties[i] = p
	}
	return parties[0], parties[1]
}

// within is a context for what must not hang.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(
		peer.Stretch(t.Context(), timeout.Multiplier()), timeout.Scaled(time.Minute))
	t.Cleanup(cancel)
	return ctx
}

// An outcome is how an end ended.
type outcome struct {
	Result
	err error
}

// begin starts a server and waits until it listens.
func (p *party) begin(t *testing.T, serve func() (Result, error)) <-chan outcome {
	t.Helper()
	ended := make(chan outcome, 1)
	go func() {
		r, err := serve()
		ended <- outcome{r, err}
	}()
	select {
	case <-p.ready:
	case o := <-ended:
		t.Fatalf("the server ended before it listened: %v", o.err)
	}
	return ended
}

// anyAt is every address of a station, with a port.
func anyAt(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv6Unspecified(), port) }

// fails checks that an error is there and says what it must.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// at is an address of the party, with a port.
func (p *party) at(v6 bool, port uint16) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(p.v6, port)
	}
	return netip.AddrPortFrom(p.v4, port)
}

// logs has the party log, and returns what it logged.
func (p *party) logs() func() string {
	var mu sync.Mutex
	var log strings.Builder
	p.Log = slog.New(slog.NewTextHandler(tellingWriter(func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		log.Write(b)
	}), nil))
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
}

// frames is how many frames the party has received.
func (p *party) frames(t *testing.T) uint64 {
	t.Helper()
	counters, err := p.Dev.Counters()
	must(t, err)
	for _, c := range counters {
		if c.Name == "rx_packets" {
			return c.Value
		}
	}
	t.Fatal("nobody counts frames")
	return 0
}

// receives is how many a queue pair of the party has posted that nothing came to.
func (p *party) receives(qpn uint32) uint32 {
	for _, qp := range p.Dev.Resources(1000).QPs {
		if qp.LQPN == qpn {
			return qp.RecvQueue
		}
	}
	return 0
}
