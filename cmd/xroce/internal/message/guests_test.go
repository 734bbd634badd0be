package message

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// A party is a server that waits for a client, and a host of strangers.
type party struct {
	at      netip.AddrPort
	network *sim.Network
	ended   chan error
	refused chan error // of guests
}

// host has a server wait for a test.
func host(t *testing.T, c Config) (p *party, strangers *msg.Endpoint) {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	p = &party{
		at: netip.MustParseAddrPort("192.0.2.1:7480"), network: network,
		ended: make(chan error, 1), refused: make(chan error, 100),
	}
	server := openNode(t, network, 1, rmsg.Config{})
	c.Server, c.Addr = true, p.at
	listening := make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := Run(ctx, server, c, Hooks{
			Listening: func(netip.AddrPort) { close(listening) },
			Refused:   func(_ string, why error) { p.refused <- why },
		})
		p.ended <- err
		close(p.ended)
	}()
	t.Cleanup(func() {
		cancel()
		for range p.ended { // its endpoint is closed after that
		}
	})
	<-listening
	return p, openNode(t, network, 3, rmsg.Config{})
}

// dial connects a stranger.
func (p *party) dial(t *testing.T, from *msg.Endpoint) *msg.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(10*time.Second))
	defer cancel()
	c, err := from.Dial(ctx, p.at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// measured has a client make the test of the server.
func (p *party) measured(t *testing.T, c Config) {
	t.Helper()
	c.Addr = p.at
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	if _, err := Run(ctx, openNode(t, p.network, 2, rmsg.Config{}), c, Hooks{}); err != nil {
		t.Errorf("the client: %v", err)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("the server: %v", err)
	}
}

// guestTest is a test of a few messages.
func guestTest(peers int) Config {
	return Config{Test: Pingpong, Size: 64, Iters: 10, Peers: peers, Depth: 1}
}

// TestStrangersAreNotTheClient: who connects to a server and says nothing, says something else, or
// hangs up, is no client, and the client that comes behind them has its test.
func TestStrangersAreNotTheClient(t *testing.T) {
	p, strangers := host(t, guestTest(2))
	p.dial(t, strangers) // and says nothing
	for _, says := range []string{
		"hello", "{}", `{"tool":"xroce msg","version":99}`, string(make([]byte, maxTerms+1)),
	} {
		c := p.dial(t, strangers)
		s := &msg.Send{Buffers: [][]byte{[]byte(says)}, Tag: termsTag}
		if err := c.PostSend(s); err != nil {
			t.Fatal(err)
		}
		if err := <-p.refused; !errors.Is(err, ErrForeign) {
			t.Errorf("%.30q: refused with %v", says, err)
		}
	}
	p.dial(t, strangers).Abort()
	if err := <-p.refused; err == nil || errors.Is(err, ErrForeign) {
		t.Errorf("one that hangs up: %v", err)
	}
	p.measured(t, guestTest(2))
}

// TestSilentStrangersDriveOutTheirOwn: as many as a host may connect and say nothing, those that
// came first give way.
func TestSilentStrangersDriveOutTheirOwn(t *testing.T) {
	p, strangers := host(t, guestTest(1))
	var all []*msg.Conn
	for n := range maxGuests + 5 {
		all = append(all, p.dial(t, strangers))
		if n >= maxGuests {
			if err := <-p.refused; !errors.Is(err, errOthers) {
				t.Errorf("refused with %v", err)
			}
		}
	}
	over := func(c *msg.Conn) bool {
		select {
		case <-c.Done():
			return true
		default:
			return false
		}
	}
	for _, c := range all[:4] {
		<-c.Done()
	}
	select { // of two that come at once, either may be the earlier one
	case <-all[4].Done():
	case <-all[5].Done():
	}
	if over(all[4]) && over(all[5]) || slices.ContainsFunc(all[6:], over) {
		t.Error("others than the first are gone")
	}
	p.measured(t, guestTest(1))
}

// TestStrangersDoNotProlong: a client that makes one connection of two and no other is given up
// when it was to have made it, however many strangers come meanwhile.
func TestStrangersDoNotProlong(t *testing.T) {
	c := guestTest(2)
	c.Setup = timeout.Scaled(2 * time.Second)
	p, strangers := host(t, c)
	client := openNode(t, p.network, 2, rmsg.Config{})
	must(t, (&run{config: c, endpoint: client}).agree(t.Context(), p.dial(t, client)))
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(30*time.Second))
	defer cancel()
	for {
		if s, err := strangers.Dial(ctx, p.at); err == nil {
			// It may be hung up on before it has said it.
			_ = s.PostSend(&msg.Send{Buffers: [][]byte{[]byte("hello")}, Tag: termsTag})
		}
		select {
		case <-p.refused:
		case err := <-p.ended:
			if !errors.Is(err, errSetup) || !strings.Contains(err.Error(), "connection 2 of 2") {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-ctx.Done():
			t.Fatal("it still waits for the other connection")
		}
	}
}
