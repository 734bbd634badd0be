package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// usesInlineRecv reports whether what a new QP of a device receives is stored by the poll.
func usesInlineRecv(t *testing.T, init engine.QPInit) bool {
	t.Helper()
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], init)
	join(t, a, b, engine.ConnectOptions{})
	b.recv(t, 1, 0, 64)
	a.mr.Bytes()[0] = 7
	a.send(t, roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 8)},
	})
	w.succeed(a.cq, 1)
	early := b.mr.Bytes()[0] == 7
	wc := w.succeed(b.cq, 1)[0]
	if b.mr.Bytes()[0] != 7 || wc.ByteLen != 8 || wc.Flags != 0 {
		t.Errorf("%+v, first byte %d", wc, b.mr.Bytes()[0])
	}
	return !early
}

// TestInlineRecvSwitches: inline receive is on, off for a QP that does not want it,
// off for messages above the QP's number, and off where the environment says so.
func TestInlineRecvSwitches(t *testing.T) {
	for _, tt := range []struct {
		env  string
		max  int
		want bool
	}{
		{"", 0, true},
		{"1", 0, true},
		{"", 8, true},
		{"", 7, false},
		{"", engine.NoInlineRecv, false},
		{"0", 0, false},
		{"0", 64, false},
	} {
		t.Setenv(engine.ScatterToCQE, tt.env)
		if got := usesInlineRecv(t, engine.QPInit{MaxInlineRecv: tt.max}); got != tt.want {
			t.Errorf("%s=%q, MaxInlineRecv %d: inline %t", engine.ScatterToCQE, tt.env, tt.max, got)
		}
	}
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	s := seatOn(t, w.devs[0], engine.QPInit{})
	for _, n := range []int{-2, roce.MaxInlineRecv + 1} {
		_, err := s.dev.CreateQP(s.pd, engine.QPInit{
			SendCQ: s.cq, RecvCQ: s.cq, MaxInlineRecv: n,
		})
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("MaxInlineRecv %d: error %v", n, err)
		}
	}
}

// TestInlineRecvDeregisterRace polls a CQ while the memory of inline payload in it is
// deregistered: when Deregister returns the payload is there, and nobody writes it
// any more.
func TestInlineRecvDeregisterRace(t *testing.T) {
	const rounds = 300
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	a, b := newSide(t, devA), newSide(t, devB)
	sent, err := devA.CreateCQ(16)
	if err != nil {
		t.Fatal(err)
	}
	// A CQ for sends alone: the other one is the poller's.
	a.qp.Close()
	if a.qp, err = devA.CreateQP(a.pd, engine.QPInit{SendCQ: sent, RecvCQ: a.cq}); err != nil {
		t.Fatal(err)
	}
	if err := a.qp.Init(allAccess); err != nil {
		t.Fatal(err)
	}
	if a.end, err = devA.Endpoint(a.qp, 1); err != nil {
		t.Fatal(err)
	}
	connect(t, a, b)
	ctx, stop := context.WithCancel(t.Context())
	polled := make(chan error, rounds)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var wcs [4]roce.Completion
		for ctx.Err() == nil {
			n, err := b.cq.Poll(wcs[:])
			for _, wc := range wcs[:n] {
				if wc.Status != roce.StatusSuccess {
					err = errors.Join(err, fmt.Errorf("%d: %s", wc.WRID, wc.Status))
				}
				polled <- err
			}
		}
	}()
	var wcs [1]roce.Completion
	for i := range rounds {
		buf := make([]byte, 64)
		mr, err := devB.RegMR(b.pd, buf, mem.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		err = b.qp.PostRecv(&roce.RecvWR{WRID: uint64(i), SGList: []roce.SGE{mr.SGE(0, 64)}})
		if err != nil {
			t.Fatal(err)
		}
		a.mr.Bytes()[0] = byte(i)
		a.mr.Bytes()[63] = 1
		err = a.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 64)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sent.Wait(t.Context(), wcs[:]); err != nil || wcs[0].Status != 0 {
			t.Fatal(err, wcs[0].Status)
		}
		if err := mr.Deregister(); err != nil {
			t.Fatal(err)
		}
		if buf[0] != byte(i) || buf[63] != 1 {
			t.Fatalf("round %d: % x", i, buf)
		}
		for at := range buf {
			buf[at] = 0xee // the race detector knows of anybody else
		}
	}
	for range rounds {
		if err := <-polled; err != nil {
			t.Error(err)
		}
	}
	stop()
	<-ended
}
