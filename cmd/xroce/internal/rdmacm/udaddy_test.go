package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

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

// What is none of udaddy's ends the server with an error.
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
			must(t, w.qp.PostSend(&c.send))
			fails(t, (<-ended).err, c.want)
		})
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
