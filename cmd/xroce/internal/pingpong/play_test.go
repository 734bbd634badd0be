package pingpong

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

type systemClock struct{ start time.Time }

func (c systemClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// device makes one of two hosts on a simulated wire, driven by who polls.
func device(t *testing.T, network *sim.Network, n byte) *engine.Device {
	t.Helper()
	port, err := network.NewPort(sim.PortConfig{
		Name: "xr" + string('0'+n), MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
		Yield: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := engine.OpenLink(port, port, engine.Options{Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// converse plays a game of two ends, the client's configuration first, and returns how
// each ended. after, if not nil, is called when both are connected.
func converse(t *testing.T, configs [2]Config, after func(*sim.Network)) (errs [2]error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	errs = converseUnder(ctx, t, configs, after)
	if ctx.Err() != nil {
		t.Errorf("not over in time: client %v, server %v", errs[0], errs[1])
	}
	return errs
}

// converseUnder is converse under a context.
func converseUnder(
	ctx context.Context, t *testing.T, configs [2]Config, after func(*sim.Network),
) (errs [2]error) {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var connected, running sync.WaitGroup
	connected.Add(2)
	for i, conn := range []net.Conn{client, server} {
		c := configs[i]
		c.Connected = func(_, _ engine.Endpoint) {
			connected.Done()
			connected.Wait()
			if after != nil {
				after(network)
			}
		}
		play := Dial
		if i == 1 {
			play = Serve
		}
		dev := device(t, network, byte(i+1))
		running.Go(func() {
			defer conn.Close()
			_, errs[i] = play(ctx, dev, conn, c)
		})
	}
	running.Wait()
	return errs
}

// testConfig is a configuration of few messages, which waits for half a second.
func testConfig(k Kind) Config {
	return Config{
		Kind: k, Size: 100, MTU: wire.MTU1024, RxDepth: 50, Iters: 20, QPs: 1,
		GIDIndex: peer.AutoGID, Silence: 500 * time.Millisecond,
	}
}

// TestNothingComes: what never comes is not waited for for ever, and a reliable end that
// sent says which work failed.
func TestNothingComes(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, k := range Kinds() {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprint(k, " events ", events), func(t *testing.T) {
				t.Parallel()
				nothingComes(t, k, events)
			})
		}
	}
}

func nothingComes(t *testing.T, k Kind, events bool) {
	t.Helper()
	c := testConfig(k)
	c.Events = events
	client := c
	if k == RC || k == SRQ {
		client.Silence = 30 * time.Second // its retries run out before
	}
	errs := converse(t, [2]Config{client, c}, func(n *sim.Network) {
		if err := n.SetFaults(sim.Faults{Drop: 1}); err != nil {
			t.Error(err)
		}
	})
	var failed *roce.WorkError
	if reliable := k == RC || k == SRQ; reliable != errors.As(errs[0], &failed) ||
		!reliable && !errors.Is(errs[0], peer.ErrSilence) {
		t.Errorf("client %v", errs[0])
	}
	if !errors.Is(errs[1], peer.ErrSilence) {
		t.Errorf("server %v", errs[1])
	}
}

// TestFewerRounds: a server that was told of more rounds than its client gives up.
func TestFewerRounds(t *testing.T) {
	c, more := testConfig(RC), testConfig(RC)
	c.Silence = 0 // as the commands have it: who ends by itself may be late
	c.Timeout, more.Timeout = 20, 20
	more.Iters *= 2
	more.Silence = timeout.Scaled(2 * time.Second)
	if errs := converse(t, [2]Config{c, more}, nil); errs[0] != nil ||
		!errors.Is(errs[1], peer.ErrSilence) {
		t.Errorf("client %v, server %v", errs[0], errs[1])
	}
	if errs := converse(t, [2]Config{c, c}, nil); errs != [2]error{} {
		t.Errorf("client %v, server %v", errs[0], errs[1])
	}
}

// TestODP: memory is paged on demand where that was asked for, and nowhere else.
func TestODP(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1)
	for _, k := range []Kind{RC, SRQ} {
		for _, odp := range []bool{false, true} {
			c := testConfig(k)
			c.ODP = odp
			g, err := newGame(dev, c, true)
			if err != nil {
				t.Fatal(err)
			}
			for name, mr := range map[string]*engine.MR{"sent": g.out, "received": g.in} {
				if got := mr.Access()&mem.OnDemand != 0; got != odp {
					t.Errorf("%s, ODP %v: of what is %s it is %v", k, odp, name, got)
				}
			}
			g.close()
		}
	}
}

// TestFailedWork: work that failed ends a run where completions are polled, and where they are
// waited for.
func TestFailedWork(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1)
	for _, events := range []bool{false, true} {
		c := testConfig(RC)
		c.Events = events
		g, err := newGame(dev, c, true)
		if err != nil {
			t.Fatal(err)
		}
		p := g.players[0]
		if err := p.QP.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState); err != nil {
			t.Fatal(err)
		}
		if err := g.postSend(p); err != nil { // which is flushed at once
			t.Fatal(err)
		}
		var wcs [2]roce.Completion
		var failed *roce.WorkError
		n, err := g.wait(t.Context(), wcs[:])
		if n != 0 || !errors.As(err, &failed) || failed.Status != roce.StatusWRFlushErr {
			t.Errorf("events %v: %d completions, %v", events, n, err)
		}
		g.close()
	}
}

// TestStray: datagrams of others, of any length, neither end a game nor count in it.
func TestStray(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGame(device(t, network, 1), testConfig(UD), true)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if err := g.postReceives(); err != nil {
		t.Fatal(err)
	}
	p := g.players[0]
	p.remote.QPN, p.pending = 0x111, recvID|sendID
	wc := roce.Completion{QPN: p.QP.QPN(), SrcQP: 0x222}
	for place := range 10 {
		// Each lands where no message is that has not been looked at.
		wc.WRID = recvID | uint64(place)<<placeShift
		wc.ByteLen++
		if err := g.completed(&wc); err != nil {
			t.Fatal(err)
		}
	}
	if g.rcnt != 0 || p.pending != recvID|sendID || g.routs != g.RxDepth-10 {
		t.Errorf("%d messages, pending %d, %d receives", g.rcnt, p.pending, g.routs)
	}
	if g.in == g.out || len(g.in.Bytes()) != g.RxDepth*g.room() || len(g.free) != 10 {
		t.Errorf("%d bytes of places for %d receives, %d free; what is sent is there: %t",
			len(g.in.Bytes()), g.RxDepth, len(g.free), g.in == g.out)
	}
	wc.SrcQP, wc.ByteLen = 0x111, uint32(g.room())
	if err := g.completed(&wc); err != nil || g.rcnt != 1 || p.pending != sendID {
		t.Errorf("%d messages, pending %d, %v", g.rcnt, p.pending, err)
	}
}

// TestMoreThanAll: a peer that sends more messages than the game has, and takes none of ours, does
// not keep us for ever.
func TestMoreThanAll(t *testing.T) {
	for _, k := range []Kind{RC, UC, SRQ} {
		network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
		if err != nil {
			t.Fatal(err)
		}
		c := testConfig(k)
		c.Iters = 3
		g, err := newGame(device(t, network, 1), c, true)
		if err == nil {
			err = g.postReceives()
		}
		if err != nil {
			t.Fatal(err)
		}
		p := g.players[0]
		p.pending = recvID | sendID
		wc := roce.Completion{QPN: p.QP.QPN(), WRID: recvID, ByteLen: uint32(c.Size)}
		for n := range c.Iters + 1 { // as of one whose -n is greater
			if err := g.completed(&wc); err != nil {
				t.Fatalf("%s: message %d: %v", k, n, err)
			}
		}
		err = g.completed(&wc)
		if err == nil || !strings.Contains(err.Error(), "start both ends with the same -n") {
			t.Errorf("%s: %v", k, err)
		}
		g.close()
	}
}

// TestInterruptedGame: a game in which no end ever has to wait can be interrupted.
func TestInterruptedGame(t *testing.T) {
	for _, k := range Kinds() {
		c := testConfig(k)
		c.Iters = 1 << 30
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		errs := converseUnder(ctx, t, [2]Config{c, c}, func(*sim.Network) { cancel() })
		if !errors.Is(errs[0], context.Canceled) && !errors.Is(errs[1], context.Canceled) {
			t.Errorf("%s: client %v, server %v", k, errs[0], errs[1])
		}
	}
}

// TestWaitSeesTheEnd: also where there is always a completion, of strangers for one, a game ends
// with its context, whether it polls or sleeps.
func TestWaitSeesTheEnd(t *testing.T) {
	for _, events := range []bool{false, true} {
		network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
		if err != nil {
			t.Fatal(err)
		}
		c := testConfig(UD)
		c.Events = events
		g, err := newGame(device(t, network, 1), c, true)
		if err == nil {
			err = g.postReceives()
		}
		if err != nil {
			t.Fatal(err)
		}
		// Each receive is a completion.
		err = g.players[0].QP.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.waits = 1023
		var wcs [1]roce.Completion
		if n, err := g.wait(ctx, wcs[:]); !errors.Is(err, context.Canceled) {
			t.Errorf("events %t: %d completions, %v", events, n, err)
		}
		g.close()
	}
}
