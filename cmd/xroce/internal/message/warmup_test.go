package message

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A script is a client about to make a test, and what it is connected to: a server that does what
// its test says.
type script struct {
	ctx     context.Context
	network *sim.Network
	run     *run
	server  *msg.Endpoint
	conns   []*msg.Conn // of the server
	ended   chan error  // the client
}

// newScript connects the client of a test.
func newScript(t *testing.T, c Config) *script {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	t.Cleanup(cancel)
	client, server := openNode(t, network, 1, rmsg.Config{}), openNode(t, network, 2, rmsg.Config{})
	must(t, c.Check())
	s := &script{
		ctx: ctx, network: network, server: server, ended: make(chan error, 1),
		run: &run{
			config: c, endpoint: client,
			out: newPattern(c.Size, false), in: newPattern(c.Reply, true),
		},
	}
	l, err := server.Listen(netip.MustParseAddrPort("192.0.2.2:7480"))
	must(t, err)
	defer l.Close()
	for range c.Peers {
		accepted := make(chan *msg.Conn, 1)
		go func() {
			conn, _ := l.Accept(ctx) // nil with an error
			accepted <- conn
		}()
		conn, err := client.Dial(ctx, netip.MustParseAddrPort("192.0.2.2:7480"))
		at := <-accepted
		if err != nil || at == nil {
			t.Fatal(errors.Join(err, errors.New("nobody is connected")))
		}
		s.conns = append(s.conns, at)
		s.run.links = append(s.run.links, &link{run: s.run, conn: conn})
	}
	return s
}

// begin has the client measure.
func (s *script) begin() {
	go func() { s.ended <- s.run.measure(s.ctx) }()
}

// done waits until the client has done with so many messages.
func (s *script) done(t *testing.T, n int64) {
	t.Helper()
	for s.run.done.Load() < n {
		if s.ctx.Err() != nil {
			t.Fatalf("the client has done with %d messages, not %d", s.run.done.Load(), n)
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
}

// receive takes the next message of a connection.
func (s *script) receive(conn, size int) error {
	v := &msg.Receive{
		Buffers: [][]byte{make([]byte, size)}, From: s.conns[conn], Mask: ^uint64(0),
	}
	if err := s.server.PostReceive(v); err != nil {
		return err
	}
	return v.Wait(s.ctx)
}

// answer takes the call with a number and answers it.
func (s *script) answer(conn, n int) error {
	c := &s.run.config
	if err := s.receive(conn, c.Size); err != nil {
		return err
	}
	reply := &msg.Send{Buffers: [][]byte{s.run.in.of(n)}}
	if err := s.conns[conn].PostSend(reply); err != nil {
		return err
	}
	return reply.Wait(s.ctx)
}

// began fails the test unless the client has ended well and measured from a moment on, or later.
func (s *script) began(t *testing.T, from time.Time) {
	t.Helper()
	must(t, <-s.ended)
	for i, l := range s.run.links {
		if l.begin.Before(from) {
			t.Errorf("connection %d: its time began %s before the warm-up was over", i+1,
				from.Sub(l.begin))
		}
		if n := len(l.samples); s.run.config.Test == RPC && n != s.run.config.Iters {
			t.Errorf("connection %d: %d samples", i+1, n)
		}
	}
}

// TestCallsBeginWarm: calls that count are made when all others are answered, of all connections.
func TestCallsBeginWarm(t *testing.T) {
	s := newScript(t, Config{
		Test: RPC, Size: 40, Reply: 30, Iters: 8, Warmup: 4, Depth: 4, Peers: 2,
	})
	total := s.run.config.total()
	s.begin()
	for n := range 4 {
		must(t, s.answer(0, n))
	}
	for n := range 3 {
		must(t, s.answer(1, n))
	}
	s.done(t, 2*(4+3)) // sent and answered
	over := time.Now()
	var rest sync.WaitGroup
	for conn, next := range []int{4, 3} {
		rest.Go(func() {
			for n := next; n < total; n++ {
				if err := s.answer(conn, n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rest.Wait()
	s.began(t, over)
}

// takeRest takes the messages of a stream from one on, and says so.
func (s *script) takeRest(next int) error {
	total := s.run.config.total()
	for ; next < total; next++ {
		if err := s.receive(0, s.run.config.Size); err != nil {
			return err
		}
	}
	peer := &link{run: s.run, conn: s.conns[0]}
	return peer.tellReport(s.ctx, report{Messages: total})
}

// TestStreamBeginsWarm: messages that count are sent when the peer has all others: those that it
// fetches.
func TestStreamBeginsWarm(t *testing.T) {
	s := newScript(t, Config{
		Test: Stream, Size: 200_000, Iters: 8, Warmup: 4, Depth: 4, Peers: 1,
	})
	s.begin()
	for range 3 {
		must(t, s.receive(0, s.run.config.Size))
	}
	s.done(t, 3)
	over := time.Now()
	must(t, s.takeRest(3))
	s.began(t, over)
}

// TestStreamBeginsArrived: those, too, whose memory may be used again before they have arrived.
func TestStreamBeginsArrived(t *testing.T) {
	s := newScript(t, Config{
		Test: Stream, Size: 40, Iters: 8, Warmup: 4, Depth: 4, Peers: 1,
	})
	client := [6]byte{2, 0, 0, 0, 0, 1}
	must(t, s.network.SetDirection(client, [6]byte{2, 0, 0, 0, 0, 2}, sim.Faults{Blocked: true}))
	again := make(chan struct{}) // closed when a packet was sent a second time
	seen, once := map[string]bool{}, sync.Once{}
	s.network.Observe(func(e *sim.Event) {
		var p wire.Packet
		if e.Kind != sim.Sent || e.From != client || p.Decode(e.Frame, nil) != wire.OK {
			return
		}
		key := fmt.Sprint(p.BTH.Opcode, p.BTH.DestQP, p.BTH.PSN)
		if seen[key] {
			once.Do(func() { close(again) })
		}
		seen[key] = true
	})
	s.begin()
	select {
	case <-again:
	case <-s.ctx.Done():
		t.Fatal("nothing was sent again")
	}
	over := time.Now()
	must(t, s.network.SetDirection(client, [6]byte{2, 0, 0, 0, 0, 2}, sim.Faults{}))
	must(t, s.takeRest(0))
	s.began(t, over)
}
