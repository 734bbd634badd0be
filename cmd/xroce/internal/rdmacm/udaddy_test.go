package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/sim"
	"xroce/roce"
)

const udaddyServerSays = `udaddy: starting server
receiving data transfers
sending replies
data transfers complete
test complete
return status 0
`

const udaddyClientSays = `udaddy: starting client
udaddy: connecting
initiating data transfers
receiving data transfers
data transfers complete
test complete
return status 0
`

func TestUdaddy(t *testing.T) {
	for _, c := range []struct {
		connections, count, size int
		v6                       bool
		tclass                   uint8
	}{
		{connections: 1, count: DefaultCount, size: DefaultSize},
		{connections: 5, count: 7, size: 1, v6: true},
		{connections: 2, count: 50, size: 1024, tclass: 0x68},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			server, client := newRig(t, sim.Faults{})
			ctx := within(t)
			config := Udaddy{
				Addr: anyAt(UdaddyPort), Connections: c.connections, Count: c.count, Size: c.size,
				TClass: c.tclass,
			}
			ended := server.begin(t, func() (Result, error) {
				return server.ServeUdaddy(ctx, config)
			})
			config.Addr = server.at(c.v6, UdaddyPort)
			got, err := client.DialUdaddy(ctx, config)
			must(t, err)
			want := Result{Connections: c.connections, Messages: c.connections * c.count}
			if o := <-ended; o.err != nil || o.Result != want || got != want {
				t.Errorf("client %+v, server %+v, want %+v", got, o, want)
			}
			if client.lines() != udaddyClientSays || server.lines() != udaddyServerSays {
				t.Errorf("server:\n%s\nclient:\n%s", server.lines(), client.lines())
			}
		})
	}
}

func TestUdaddyNoMessages(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Udaddy{Addr: server.at(false, UdaddyPort), Connections: 3}
	ended := server.begin(t, func() (Result, error) { return server.ServeUdaddy(ctx, config) })
	got, err := client.DialUdaddy(ctx, config)
	must(t, err)
	if o := <-ended; o.err != nil || o.Result != got || got != (Result{Connections: 3}) {
		t.Errorf("client %+v, server %+v", got, o)
	}
	// It has all that it waits for.
	_, err = client.DialUdaddy(ctx, config)
	fails(t, err, "rejected: ")
}

// What is none of udaddy's is told of, and takes no place.
func TestUdaddyBadClient(t *testing.T) {
	for _, c := range []struct {
		name string
		send roce.SendWR
		size int
		want string
	}{
		{"short", roce.SendWR{Opcode: roce.OpSendImm, Imm: 0x100}, 99, "has 99 bytes, not 100"},
		{"no number", roce.SendWR{Opcode: roce.OpSend}, 100, "immediate data"},
		{"no QP", roce.SendWR{Opcode: roce.OpSendImm, Imm: 1 << 24}, 100, "immediate data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, client := newRig(t, sim.Faults{})
			ctx := within(t)
			log := server.logs()
			config := Udaddy{
				Addr: server.at(false, UdaddyPort), Connections: 1, Count: 3, Size: 100,
			}
			ended := server.begin(t, func() (Result, error) {
				return server.ServeUdaddy(ctx, config)
			})
			w, err := client.newWriter(ctx, &config)
			must(t, err)
			c.send.AH, c.send.RemoteQPN, c.send.RemoteQKey = w.to, w.qpn, w.qkey
			c.send.SGList = []roce.SGE{w.out.SGE(0, c.size)}
			const datagrams = 100 // more than there are receives
			frames, receives := server.frames(t), server.receives(w.qpn)
			for range datagrams {
				must(t, w.qp.PostSend(&c.send))
				w.posted++
				must(t, w.flush(ctx))
			}
			// What comes while there is no receive is lost, and nobody repeats it: the server has
			// to have looked at them before anything else comes.
			for server.frames(t) < frames+datagrams || server.receives(w.qpn) < receives {
				must(t, ctx.Err())
				time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
			}
			_, err = client.DialUdaddy(ctx, config)
			must(t, err)
			if o := <-ended; o.err != nil || o.Messages != 3 {
				t.Errorf("server %+v", o)
			}
			if said := log(); !strings.Contains(said, c.want) {
				t.Errorf("the log has %q", said)
			}
		})
	}
}

// Who looks a server up and is not there takes no place, however many do, and a connection too
// many is no part of the test.
func TestUdaddyAbsentClients(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	log := server.logs()
	config := Udaddy{Addr: server.at(false, UdaddyPort), Connections: 2, Count: 3, Size: 100}
	ended := server.begin(t, func() (Result, error) { return server.ServeUdaddy(ctx, config) })
	pd := client.Dev.AllocPD()
	for range 200 {
		_, err := client.lookup(ctx, pd, config.Addr)
		must(t, err)
	}
	w, err := client.newWriter(ctx, &config) // found before the others, and sends behind them
	must(t, err)
	writers := make([]writer, config.Connections)
	for i := range writers {
		writers[i], err = client.newWriter(ctx, &config)
		must(t, err)
		must(t, writers[i].send(ctx, writers[i].to, writers[i].qpn, writers[i].qkey, 1))
		must(t, writers[i].flush(ctx))
	}
	must(t, w.send(ctx, w.to, w.qpn, w.qkey, 3))
	must(t, w.flush(ctx))
	for i := range writers {
		must(t, writers[i].send(ctx, writers[i].to, writers[i].qpn, writers[i].qkey, 2))
	}
	for i := range writers {
		for range config.Count {
			must(t, writers[i].hear(ctx))
		}
	}
	if o := <-ended; o.err != nil || o.Messages != 6 {
		t.Errorf("server %+v", o)
	}
	if said := log(); !strings.Contains(said, "one connection more than the 2") {
		t.Errorf("the log has %q", said)
	}
}

// A client takes the answers of its server, and of nobody else.
func TestUdaddyAnswersOfOthers(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Udaddy{Addr: server.at(false, UdaddyPort), Connections: 1, Count: 2, Size: 100}
	ended := server.begin(t, func() (Result, error) { return server.ServeUdaddy(ctx, config) })
	w, err := client.newWriter(ctx, &config)
	must(t, err)
	stranger := server.strangerTo(ctx, t, client, &w, config.Size)
	must(t, stranger.send(ctx, stranger.to, stranger.qpn, stranger.qkey, 1))
	must(t, stranger.flush(ctx))
	must(t, client.converse(ctx, &config, []writer{w}))
	if o := <-ended; o.err != nil || o.Messages != 2 {
		t.Errorf("server %+v", o)
	}
}

func TestUdaddyTooLong(t *testing.T) {
	server, _ := newRig(t, sim.Faults{})
	config := Udaddy{Addr: anyAt(UdaddyPort), Connections: 1, Count: 1, Size: 1025}
	_, err := server.ServeUdaddy(within(t), config)
	fails(t, err, "larger than active mtu 1024")
}

func TestUdaddyInterrupted(t *testing.T) {
	server, _ := newRig(t, sim.Faults{})
	ctx, cancel := context.WithCancel(within(t))
	config := Udaddy{Addr: anyAt(UdaddyPort), Connections: 1, Count: 1, Size: 100}
	ended := server.begin(t, func() (Result, error) { return server.ServeUdaddy(ctx, config) })
	cancel()
	fails(t, (<-ended).err, "context canceled")
}

func TestUdaddyNobodyListens(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	config := Udaddy{Addr: server.at(false, UdaddyPort), Connections: 1}
	_, err := client.DialUdaddy(within(t), config)
	fails(t, err, "rejected: ")
}

// TestUdaddyLargeLost: that nothing comes may be for the size of it, where that is large.
func TestUdaddyLargeLost(t *testing.T) {
	silent := fmt.Errorf("%w for 2m0s", peer.ErrSilence)
	for _, tt := range []struct {
		size int
		err  error
		want bool
	}{{1024, silent, false}, {1028, silent, true}, {4096, io.ErrUnexpectedEOF, false}} {
		c := Udaddy{Size: tt.size}
		err := c.explain(tt.err)
		if !errors.Is(err, tt.err) || strings.Contains(err.Error(), "xroce check") != tt.want {
			t.Errorf("%d bytes: %v", tt.size, err)
		}
	}
}
