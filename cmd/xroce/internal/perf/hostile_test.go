package perf

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// against runs a server with a client that meets it as every other and then does what a
// function does, and returns what came of the server.
func against(t *testing.T, c Config, do func(ctx context.Context, r *run)) (*Record, error) {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	theirs, ours := tcpPair(t)
	if _, err := c.Settle(true); err != nil {
		t.Fatal(err)
	}
	record, failed := &Record{}, make(chan error, 1)
	server := c
	server.OtherDrives = true
	host := device(t, network, 2, engine.Options{})
	go func() {
		_, err := Run(ctx, host, NewSocket(host, ours, false),
			Options{Config: server, Tell: record})
		ours.Close()
		failed <- err
	}()
	c.Dial, c.OtherDrives = true, true
	dev := device(t, network, 1, engine.Options{})
	r := &run{info: Info{Config: c}, via: NewSocket(dev, theirs, true), tell: &Record{}}
	r.dog.patience = patience{setupTime, silence, throughTime}
	if err := r.setup(ctx, dev); err != nil {
		t.Fatal(err)
	}
	do(ctx, r)
	theirs.Close()
	err = <-failed
	r.close()
	return record, err
}

// drain posts the sends of a flow, one after the other, and takes what completes, whatever
// that is.
func (r *run) drain(ctx context.Context, n int) {
	for range n {
		if r.flows[0].post(true) != nil {
			return
		}
		for n := 0; n == 0 && ctx.Err() == nil; {
			var err error
			if n, err = r.await(ctx); err != nil {
				return
			}
		}
	}
}

// TestPeerSaysNothingFailed: an end whose queue pair refused a request has no result, whatever
// its peer says.
func TestPeerSaysNothingFailed(t *testing.T) {
	for _, verb := range []Verb{Write, Read, Atomic} {
		c := brief(Test{Verb: verb})
		record, err := against(t, c, func(ctx context.Context, r *run) {
			r.prepare(c.Size)
			r.flows[0].remote += 1 << 40
			r.drain(ctx, 1)
			r.last = perftest.Report{Size: 4096, Iters: 200, Average: 1e6, MsgRate: 1e6}
			_ = r.farewell(ctx)
		})
		if len(record.Rows) > 0 || err == nil ||
			!strings.Contains(err.Error(), "refused a request of the peer") {
			t.Errorf("%s: error %v, results %+v", c.Test.Name(), err, record.Rows)
		}
	}
}

// TestPeerSendsSomethingElse: what takes a receive and is no message of the test is no
// progress of it.
func TestPeerSendsSomethingElse(t *testing.T) {
	for _, test := range []Test{{Send, false}, {Send, true}} {
		c := brief(test)
		c.Timeout = 10 // nobody answers when the server has gone
		record, err := against(t, c, func(ctx context.Context, r *run) {
			if r.barrier(ctx) != nil {
				return
			}
			r.prepare(0)
			r.flows[0].sendWR.Opcode = roce.OpWriteImm
			r.drain(ctx, c.Iters)
			_ = r.farewell(ctx)
		})
		if len(record.Rows) > 0 || err == nil || errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "RECV_RDMA_WITH_IMM") {
			t.Errorf("%s: error %v, results %+v", test.Name(), err, record.Rows)
		}
	}
}
