package rdmacm

import (
	"context"
	"testing"

	"xroce/engine/cm"
	"xroce/engine/sim"
)

func TestSimple(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, v6 := range []bool{false, true} {
		server, client := newRig(t, sim.Faults{})
		ctx := within(t)
		ended := server.begin(t, func() (Result, error) {
			return server.ServeSimple(ctx, anyAt(SimplePort))
		})
		got, err := client.DialSimple(ctx, server.at(v6, SimplePort))
		must(t, err)
		want := Result{Connections: 1, Messages: 1}
		if o := <-ended; o.err != nil || o.Result != got || got != want {
			t.Errorf("client %+v, server %+v", got, o)
		}
		if s := server.lines(); s != "rdma_server: start\nrdma_server: end 0\n" {
			t.Errorf("server: %q", s)
		}
		if s := client.lines(); s != "rdma_client: start\nrdma_client: end 0\n" {
			t.Errorf("client: %q", s)
		}
	}
}

// A client that hangs up without a word, or says too little, is none: the server says so and goes
// on waiting.
func TestSimpleBadClient(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, c := range []struct {
		size int
		want string
	}{{0, "hung up"}, {15, "has 15 bytes, not 16"}, {17, "local length error"}} {
		server, client := newRig(t, sim.Faults{})
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		logged := server.logs()
		at := server.at(false, SimplePort)
		ended := server.begin(t, func() (Result, error) { return server.ServeSimple(ctx, at) })
		config := simple(at)
		config.Size = c.size
		p, err := client.newTalker(config, func(s cm.Setup) (*cm.Conn, error) {
			return client.Manager.Dial(ctx, at, s)
		})
		must(t, err)
		if c.size > 0 {
			must(t, p.send())
		} else {
			p.hangUp(ctx)
		}
		outlived(ctx, t, logged, c.want)
		cancel()
		fails(t, (<-ended).err, context.Canceled.Error())
	}
}

func TestSimpleNobodyListens(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	_, err := client.DialSimple(within(t), server.at(false, SimplePort))
	fails(t, err, "rejected: ")
}
