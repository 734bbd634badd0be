package rdmacm

import (
	"context"
	"errors"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// briefSilence is how long an end is to wait for a peer that is gone.
func briefSilence() time.Duration { return timeout.Scaled(500 * time.Millisecond) }

// strangerTo is one at this host who sends to the queue pair of a client, whose number he knows.
func (p *party) strangerTo(
	ctx context.Context, t *testing.T, client *party, w *writer, size int,
) *writer {
	t.Helper()
	pd := p.Dev.AllocPD()
	box, err := p.newMailbox(pd, 1, size)
	must(t, err)
	index, err := p.Dev.SourceGID(client.v4)
	must(t, err)
	ah, err := p.Dev.CreateAH(ctx, pd, engine.AddressVector{
		DGID: wire.GIDFromAddr(client.v4), SGIDIndex: index,
	})
	must(t, err)
	return &writer{mailbox: box, to: ah, qpn: w.qp.QPN(), qkey: w.qkey}
}

// strays sends datagrams that are none of udaddy's, four in the time that an end is to wait, until
// it has ended, with peer.ErrSilence. Many times that is enough.
func (w *writer) strays(ctx context.Context, t *testing.T, ended <-chan error) {
	t.Helper()
	for range 100 {
		select {
		case err := <-ended:
			if !errors.Is(err, peer.ErrSilence) {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-ctx.Done():
			t.Fatal("it did not end")
		case <-time.After(briefSilence() / 4):
		}
		must(t, w.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, SGList: []roce.SGE{w.out.SGE(0, 1)}, AH: w.to,
			RemoteQPN: w.qpn, RemoteQKey: w.qkey,
		}))
		w.posted++
		must(t, w.flush(ctx))
	}
	t.Error("strays keep it waiting")
}

// TestUdaddyStrays: what is no message of a connection is no reason to wait longer for one, for a
// server.
func TestUdaddyStrays(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	met := make(chan struct{})
	server.Silence, server.Met = briefSilence(), func() { close(met) }
	config := Udaddy{Addr: server.at(false, UdaddyPort), Connections: 1, Count: 2, Size: 100}
	served := server.begin(t, func() (Result, error) { return server.ServeUdaddy(ctx, config) })
	w, err := client.newWriter(ctx, &config)
	must(t, err)
	must(t, w.send(ctx, w.to, w.qpn, w.qkey, 1))
	must(t, w.flush(ctx))
	select {
	case <-met:
	case <-ctx.Done():
		t.Fatal("the server has no message")
	}
	ended := make(chan error, 1)
	go func() { ended <- (<-served).err }()
	w.strays(ctx, t, ended)
}

// TestUdaddyStraysOfClient is the same for a client that waits for an answer.
func TestUdaddyStraysOfClient(t *testing.T) {
	t.Parallel() // it waits most of the time
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	config := Udaddy{Addr: server.at(false, UdaddyPort), Connections: 1, Count: 1, Size: 100}
	listening, leave := context.WithCancel(ctx)
	served := server.begin(t, func() (Result, error) {
		return server.ServeUdaddy(listening, config)
	})
	w, err := client.newWriter(ctx, &config)
	must(t, err)
	stranger := server.strangerTo(ctx, t, client, &w, config.Size)
	client.Silence = briefSilence()
	ended := make(chan error, 1)
	go func() { ended <- w.hear(ctx) }()
	stranger.strays(ctx, t, ended)
	leave()
	<-served
}
