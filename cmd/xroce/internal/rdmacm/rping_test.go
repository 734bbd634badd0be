package rdmacm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

func TestInfo(t *testing.T) {
	// The first of a capture of rping.
	b := []byte{0, 0, 0x55, 0x7e, 0x8b, 2, 0x7a, 0xb0, 0, 0, 5, 0xc8, 0, 0, 1, 0xf4}
	want := info{buf: 0x557e8b027ab0, rkey: 0x5c8, size: 500}
	if got := parseInfo(b); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		i := info{
			rapid.Uint64().Draw(t, "buf"), rapid.Uint32().Draw(t, "rkey"),
			rapid.Uint32().Draw(t, "size"),
		}
		var b [infoLen]byte
		if i.put(b[:]); parseInfo(b[:]) != i {
			t.Fatalf("%+v becomes %+v", i, parseInfo(b[:]))
		}
	})
}

func TestPingText(t *testing.T) {
	for _, c := range []struct {
		round, size int
		want        string
	}{
		// What rping prints with -v.
		{0, 100, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz" +
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\"},
		{2, 64, "rdma-ping-2: CDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrst"},
		{57, 23, "rdma-ping-57: zABCDEFG"},
		{58, 23, "rdma-ping-58: ABCDEFGH"},
		{1<<31 - 1, RpingMinSize, "rdma-ping-2147483647: "},
	} {
		b := bytes.Repeat([]byte{0xa5}, c.size)
		putPing(b, c.round)
		if got := string(b); got != c.want+"\x00" {
			t.Errorf("round %d, %d bytes:\n%q, want\n%q", c.round, c.size, got, c.want)
		}
	}
}

func TestRping(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		size, count int
		v6          bool
		faults      sim.Faults
	}{
		{size: RpingMinSize, count: 1},
		{size: RpingDefaultSize, count: 100},
		{size: RpingMaxSize, count: 20},
		{size: 5000, count: 20, v6: true},
		{size: 5000, count: 20, faults: sim.Faults{Drop: 0.02, Dup: 0.02}},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			server, client := newRig(t, c.faults)
			ctx := within(t)
			config := Rping{Addr: anyAt(RpingPort), Size: c.size, Verbose: true}
			ended := server.begin(t, func() (Result, error) {
				return server.ServeRping(ctx, config)
			})
			config.Count, config.Validate = c.count, true
			config.Addr = server.at(c.v6, RpingPort)
			got, err := client.DialRping(ctx, config)
			must(t, err)
			if trip := got.RoundTrip; trip == nil || trip.Min > trip.Mean || trip.Mean > trip.Max {
				t.Errorf("round trip %+v", trip)
			}
			got.RoundTrip = nil
			want := Result{Connections: 1, Messages: c.count}
			if o := <-ended; o.err != nil || o.Result != want || got != want {
				t.Errorf("client %+v, server %+v, want %+v", got, o, want)
			}
			pings := strings.ReplaceAll(client.lines(), "ping data", "server ping data")
			if n := strings.Count(pings, "\n"); n != c.count || pings != server.lines() {
				t.Errorf("%d lines of the client; server:\n%s\nclient:\n%s", n, server.lines(),
					client.lines())
			}
		})
	}
}

// A persistent server has several clients at once, outlives one that goes wrong, and
// ends with its context.
func TestRpingPersistent(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	ended := server.begin(t, func() (Result, error) {
		return Result{}, server.ServeRpings(ctx, Rping{Addr: anyAt(RpingPort), Size: 100})
	})
	config := Rping{Addr: server.at(false, RpingPort), Count: 20, Size: 100, Validate: true}
	errs := make(chan error)
	for range 5 {
		go func() {
			_, err := client.DialRping(ctx, config)
			errs <- err
		}()
	}
	for range 5 {
		must(t, <-errs)
	}
	wrong := config
	wrong.Size = 1000
	_, err := client.DialRping(ctx, wrong)
	fails(t, err, "hung up")
	_, err = client.DialRping(ctx, config)
	must(t, err)
	cancel()
	if o := <-ended; !errors.Is(o.err, context.Canceled) {
		t.Errorf("ends with %v", o.err)
	}
	if n := server.Dev.Resources(0).Total.MR; n > 1+2 {
		t.Errorf("%d regions are left", n) // of the manager, and of a client that just went
	}
}

// What a client says that is none of rping ends the server with an error; who says it first of all
// was no client.
func TestRpingBadClient(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		name     string
		stranger bool
		do       func(ctx context.Context, p *pinger) error
		want     string
	}{
		{"no size", false, func(_ context.Context, p *pinger) error {
			return p.tell(info{buf: p.start.Addr(), rkey: p.start.RKey()})
		}, "buffer has 0 bytes"},
		{"long", false, func(_ context.Context, p *pinger) error {
			return p.tell(info{p.start.Addr(), p.start.RKey(), 1 << 31})
		}, "same -S"},
		{"key", false, func(_ context.Context, p *pinger) error {
			return p.tell(info{p.start.Addr(), p.start.RKey() ^ 0xff00, 64})
		}, "remote access error"},
		{"address", false, func(_ context.Context, p *pinger) error {
			return p.tell(info{p.start.Addr() + 1, p.start.RKey(), 64})
		}, "remote access error"},
		{"no text", false, func(_ context.Context, p *pinger) error {
			copy(p.start.Bytes(), bytes.Repeat([]byte{'x'}, 64))
			return p.tell(info{p.start.Addr(), p.start.RKey(), 64})
		}, "no text"},
		{"short message", true, func(_ context.Context, p *pinger) error {
			return p.conn.QP().PostSend(&roce.SendWR{
				Opcode: roce.OpSend, SGList: []roce.SGE{p.control.SGE(infoLen, 5)},
			})
		}, "bogus data, size 5"},
		{"long message", true, func(_ context.Context, p *pinger) error {
			return p.conn.QP().PostSend(&roce.SendWR{
				Opcode: roce.OpSend, SGList: []roce.SGE{p.start.SGE(0, 60)},
			})
		}, "local length error"},
		{"short sink", false, func(ctx context.Context, p *pinger) error {
			putPing(p.start.Bytes(), 0)
			err := p.tell(info{p.start.Addr(), p.start.RKey(), 64})
			if err != nil {
				return err
			}
			if _, err := p.hear(ctx); err != nil {
				return err
			}
			return p.tell(info{p.data.Addr(), p.data.RKey(), 63})
		}, "64 bytes back in 63"},
		{"gone in mid-round", false, func(ctx context.Context, p *pinger) error {
			putPing(p.start.Bytes(), 0)
			err := p.tell(info{p.start.Addr(), p.start.RKey(), 64})
			if err != nil {
				return err
			}
			_, err = p.hear(ctx)
			p.conn.Close()
			return err
		}, "hung up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, client := newRig(t, sim.Faults{})
			ctx := within(t)
			config := Rping{Addr: server.at(false, RpingPort), Size: 64}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			logged := server.logs()
			ended := server.begin(t, func() (Result, error) {
				return server.ServeRping(ctx, config)
			})
			p, err := client.newPinger(config, true)
			must(t, err)
			p.conn, err = client.Manager.Dial(ctx, config.Addr, p.setup())
			must(t, err)
			must(t, c.do(ctx, p))
			if c.stranger {
				outlived(ctx, t, logged, c.want)
				cancel()
				c.want = context.Canceled.Error()
			}
			fails(t, (<-ended).err, c.want)
		})
	}
}

// Clients that connect and say nothing are let go, and keep nobody out: who comes to a server that
// has as many as it takes gets the place of one of them.
func TestRpingSilentClients(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	config := Rping{Addr: anyAt(RpingPort), Size: 64}
	ended := server.begin(t, func() (Result, error) {
		return Result{}, server.ServeRpings(ctx, config)
	})
	dial := func() (*pinger, error) {
		p, err := client.newPinger(config, true)
		must(t, err)
		p.conn, err = client.Manager.Dial(ctx, config.Addr, p.setup())
		return p, err
	}
	for _, v6 := range []bool{false, true} { // as two hosts are
		config.Addr = server.at(v6, RpingPort)
		for range MaxPingers / 2 {
			_, err := dial()
			must(t, err)
		}
	}
	for {
		_, err := client.DialRping(ctx, Rping{Addr: config.Addr, Size: 64, Count: 1})
		var refused *cm.RejectedError
		if errors.As(err, &refused) || errors.Is(err, cm.ErrHungUp) {
			continue // they have not been silent for a second
		}
		must(t, err)
		break
	}
	cancel()
	if o := <-ended; !errors.Is(o.err, context.Canceled) {
		t.Errorf("ends with %v", o.err)
	}
	server, client = newRig(t, sim.Faults{})
	ctx = within(t)
	config = Rping{Addr: server.at(false, RpingPort), Size: 64}
	server.Silence = 50 * time.Millisecond
	logged := server.logs()
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	ended = server.begin(t, func() (Result, error) { return server.ServeRping(ctx, config) })
	const want = "it did not ping: nothing came from the peer for 50ms"
	// The server waits so long for the connection, too, which may take longer: then another one
	// comes.
	for !strings.Contains(logged(), want) {
		before := strings.Count(logged(), "client failed")
		_, err := dial()
		for err == nil && strings.Count(logged(), "client failed") == before && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
		}
		if ctx.Err() != nil {
			t.Fatalf("dial: %v; logged is %q, want %q", err, logged(), want)
		}
	}
	cancel()
	fails(t, (<-ended).err, context.Canceled.Error())
}

// The text of a client is shown, and does not command the terminal.
func TestRpingTextIsSpelledOut(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Rping{Addr: server.at(false, RpingPort), Size: 64, Verbose: true}
	ended := server.begin(t, func() (Result, error) { return server.ServeRping(ctx, config) })
	p, err := client.newPinger(config, true)
	must(t, err)
	p.conn, err = client.Manager.Dial(ctx, config.Addr, p.setup())
	must(t, err)
	copy(p.start.Bytes(), "\x1b[2J\n\u009bowned")
	must(t, p.tell(info{p.start.Addr(), p.start.RKey(), 64}))
	_, err = p.hear(ctx)
	must(t, err)
	p.conn.Close()
	fails(t, (<-ended).err, "hung up")
	if got := server.lines(); !strings.Contains(got, `: \x1b[2J\n\u009bowned`) {
		t.Errorf("%q", got)
	}
}

// A client that lets nobody READ is refused, and another one is waited for.
func TestRpingNoReads(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Rping{Addr: server.at(false, RpingPort), Size: 64}
	ended := server.begin(t, func() (Result, error) { return server.ServeRping(ctx, config) })
	p, err := client.newPinger(config, true)
	must(t, err)
	setup := p.setup()
	setup.Exact, setup.ResponderRes, setup.RetryCount = true, 0, 7
	_, err = client.Manager.Dial(ctx, config.Addr, setup)
	var refused *cm.RejectedError
	if !errors.As(err, &refused) {
		t.Errorf("the client gets %v", err)
	}
	config.Count = 1
	_, err = client.DialRping(ctx, config)
	must(t, err)
	if o := <-ended; o.err != nil || o.Messages != 1 {
		t.Errorf("%+v", o)
	}
}

// What a server does that is none of rping ends the client with an error.
func TestRpingBadServer(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, p *pinger, source info) error
		want string
	}{
		{"gone", func(_ context.Context, p *pinger, _ info) error {
			p.conn.Close()
			return nil
		}, "hung up"},
		{"short go-ahead", func(_ context.Context, p *pinger, _ info) error {
			return p.conn.QP().PostSend(&roce.SendWR{
				Opcode: roce.OpSend, SGList: []roce.SGE{p.control.SGE(infoLen, 3)},
			})
		}, "bogus data, size 3"},
		{"other text", func(ctx context.Context, p *pinger, _ info) error {
			if err := p.tell(info{}); err != nil {
				return err
			}
			if _, err := p.hear(ctx); err != nil {
				return err
			}
			return p.tell(info{}) // without having written
		}, "data mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, client := newRig(t, sim.Faults{})
			ctx := within(t)
			config := Rping{
				Addr: server.at(false, RpingPort), Size: 64, Count: 1, Validate: true,
			}
			ended := server.begin(t, func() (Result, error) {
				l, err := server.listen(config.Addr)
				if err != nil {
					return Result{}, err
				}
				defer l.close()
				request, err := l.accept(ctx)
				if err != nil {
					return Result{}, err
				}
				p, err := server.newPinger(config, false)
				if err != nil {
					return Result{}, err
				}
				if p.conn, err = request.Accept(ctx, p.setup()); err != nil {
					return Result{}, err
				}
				source, err := p.hear(ctx)
				if err != nil {
					return Result{}, err
				}
				if err := c.do(ctx, p, source); err != nil {
					return Result{}, err
				}
				for err == nil { // until the client is gone, or this end is
					_, err = p.await(ctx, roce.WCSend)
				}
				p.hangUp(ctx)
				return Result{}, nil
			})
			_, err := client.DialRping(ctx, config)
			fails(t, err, c.want)
			must(t, (<-ended).err)
		})
	}
}

func TestRpingNobodyListens(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	config := Rping{Addr: server.at(false, RpingPort), Count: 1, Size: 64}
	_, err := client.DialRping(within(t), config)
	fails(t, err, "rejected: ")
	fails(t, err, "start the server first")
}
