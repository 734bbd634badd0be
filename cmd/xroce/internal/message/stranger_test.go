package message

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// TestServerOutlivesStrangers: who speaks messages and hangs up, says something else than this tool
// does, or nothing, also as often as there are places, is told of and keeps no client away.
func TestServerOutlivesStrangers(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	server, client, stranger := openNode(t, network, 1, rmsg.Config{}),
		openNode(t, network, 2, rmsg.Config{}), openNode(t, network, 3, rmsg.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	c := Config{
		Test: Pingpong, Size: 9, Reply: 9, Iters: 5, Depth: 1, Peers: 2, Server: true,
		Addr: netip.MustParseAddrPort("192.0.2.1:7480"),
	}
	listening := make(chan struct{})
	strange := make(chan error, 3*maxGuests)
	met := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, server, c, Hooks{
			Listening: func(netip.AddrPort) { close(listening) },
			Met:       func() { met <- struct{}{} },
			Refused: func(addr string, err error) {
				if !strings.HasPrefix(addr, "192.0.2.3:") {
					err = errors.New(addr)
				}
				strange <- err
			},
		})
		ended <- err
	}()
	select {
	case <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	told := func(want error) {
		t.Helper()
		select {
		case err := <-strange:
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		case err := <-ended:
			t.Fatal("the server has ended:", err)
		case <-ctx.Done():
			t.Fatal("nobody is told of")
		}
	}
	gone, err := stranger.Dial(ctx, c.Addr)
	must(t, err)
	gone.Abort()
	told(nil) // with whatever its endpoint says
	other, err := stranger.Dial(ctx, c.Addr)
	must(t, err)
	must(t, other.PostSend(&msg.Send{Buffers: [][]byte{[]byte("hello\x1b")}, Tag: termsTag}))
	told(ErrForeign)
	for range maxGuests + 1 {
		_, err := stranger.Dial(ctx, c.Addr)
		must(t, err)
	}
	told(errOthers)
	if len(met) > 0 {
		t.Error("a stranger was met")
	}
	c.Server = false
	_, err = Run(ctx, client, c, Hooks{})
	must(t, err)
	must(t, <-ended)
	if len(met) != 1 {
		t.Error("the client was not met")
	}
}
