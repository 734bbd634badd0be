package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/heap"
)

// TestResources shows every kind of object with what it belongs to.
func TestResources(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	mw, err := a.pd.AllocMW(mem.WindowType2)
	if err != nil {
		t.Fatal(err)
	}
	mwKey := mw.RKey()
	srq, err := a.dev.CreateSRQ(a.pd, engine.SRQInit{MaxWR: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := srq.PostRecv(&roce.RecvWR{}); err != nil {
		t.Fatal(err)
	}
	xsrq, err := a.dev.CreateSRQ(a.pd, engine.SRQInit{XRCD: a.dev.OpenXRCD(), CQ: a.cq})
	if err != nil {
		t.Fatal(err)
	}
	ud, err := a.dev.CreateQP(a.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: a.cq, RecvCQ: a.cq, SRQ: srq,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.recv(t, 1, 0, 64)
	r := a.dev.Resources(100)
	if want := (engine.ResourceCount{PD: 1, MR: 1, MW: 1, CQ: 1, QP: 2, SRQ: 2}); r.Total != want {
		t.Errorf("%+v, want %+v", r.Total, want)
	}
	lkey, rkey, addr := a.mr.LKey(), a.mr.RKey(), a.mr.Addr()
	pdn, cqn := r.PDs[0].PDN, r.CQs[0].CQN
	rows := map[uint32]engine.QPRow{}
	for _, qp := range r.QPs {
		qp.SQPSN, qp.RQPSN = 0, 0
		rows[qp.LQPN] = qp
	}
	for name, diff := range map[string]string{
		"device": cmp.Diff("a", r.Device),
		"pd":     cmp.Diff([]engine.PDRow{{PDN: pdn, Users: 6}}, r.PDs),
		"cq":     cmp.Diff([]engine.CQRow{{CQN: cqn, CQE: 1024, Users: 5}}, r.CQs),
		"mr": cmp.Diff([]engine.MRRow{{
			MRN: r.MRs[0].MRN, LKey: &lkey, RKey: &rkey, IOVA: &addr, Len: 1 << 17,
			Access: rights.String(), Valid: true, PDN: pdn,
		}}, r.MRs),
		"mw": cmp.Diff([]engine.MWRow{
			{MWN: r.MWs[0].MWN, Type: 2, RKey: &mwKey, PDN: pdn},
		}, r.MWs),
		"qp": cmp.Diff(map[uint32]engine.QPRow{
			a.qp.QPN(): {
				LQPN: a.qp.QPN(), RQPN: b.qp.QPN(), Type: "RC", State: "RTS", PDN: pdn,
				SendCQN: cqn, RecvCQN: cqn, RecvQueue: 1,
			},
			ud.QPN(): {
				LQPN: ud.QPN(), Type: "UD", State: "RESET", PDN: pdn, SendCQN: cqn, RecvCQN: cqn,
				SRQN: srq.SRQN(),
			},
		}, rows),
	} {
		if diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, row := range r.SRQs {
		want := engine.SRQRow{SRQN: srq.SRQN(), Type: "BASIC", MaxWR: 7, Recvs: 1, PDN: pdn}
		if row.SRQN == xsrq.SRQN() {
			want = engine.SRQRow{SRQN: row.SRQN, Type: "XRC", MaxWR: 128, PDN: pdn, CQN: cqn}
		}
		if diff := cmp.Diff(want, row); diff != "" {
			t.Error(diff)
		}
	}
	if r.HideKeys(); r.MRs[0].LKey != nil || r.MRs[0].RKey != nil || r.MRs[0].IOVA != nil ||
		r.MWs[0].RKey != nil {
		t.Error("keys are not hidden")
	}
	// Fewer rows than there are, but the true numbers.
	for limit, rows := range map[int]int{-1: 0, 0: 0, 1: 1} {
		r := a.dev.Resources(limit)
		if len(r.QPs) != rows || len(r.SRQs) != rows || len(r.PDs) != rows || r.Total.QP != 2 {
			t.Errorf("limit %d: %+v", limit, r)
		}
	}
}

// TestObjectsAreCounted: ten thousand of each object, made and destroyed, come back
// to none, and so does the memory of a connection's objects.
func TestObjectsAreCounted(t *testing.T) {
	const many = 10_000
	dev := simWorld(t, 1, sim.Faults{}, engine.Options{}).devs[0]
	buf := make([]byte, 64)
	for i := range many {
		pd := dev.AllocPD()
		cq, err := dev.CreateCQ(1)
		mr, errMR := dev.RegMR(pd, buf, mem.LocalWrite)
		mw, errMW := pd.AllocMW(mem.WindowType1)
		srq, errSRQ := dev.CreateSRQ(pd, engine.SRQInit{MaxWR: 1})
		if err := errors.Join(err, errMR, errMW, errSRQ); err != nil {
			t.Fatal(err)
		}
		qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want := engine.ResourceCount{PD: 1, MR: 1, MW: 1, CQ: 1, QP: 1, SRQ: 1}
			if got := dev.Resources(0).Total; got != want {
				t.Errorf("%+v", got)
			}
		}
		if err := pd.Close(); err == nil {
			t.Fatal("the domain did not wait for its users")
		}
		mw.Dealloc()
		qp.Close()
		err = errors.Join(srq.Close(), cq.Close(), mr.Deregister(), pd.Close(), pd.Close())
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := dev.Resources(0).Total; got != (engine.ResourceCount{}) {
		t.Errorf("left: %+v", got)
	}
}

// TestManyConnectionsLeaveNothing: ten thousand connections with traffic, one after
// the other.
func TestManyConnectionsLeaveNothing(t *testing.T) {
	many := 10_000
	switch {
	case testing.Short():
		many = 500
	case xsktest.RaceDetector:
		many = 2000
	}
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	var held int64
	for i := range many {
		if i == many/2 {
			held = heap.Live()
		}
		var seats [2]*seat
		for j, dev := range w.devs {
			s := &seat{dev: dev, pd: dev.AllocPD()}
			var err error
			if s.cq, err = dev.CreateCQ(4); err != nil {
				t.Fatal(err)
			}
			if s.mr, err = dev.RegMR(s.pd, make([]byte, 64), rights); err != nil {
				t.Fatal(err)
			}
			s.qp, err = dev.CreateQP(s.pd, engine.QPInit{
				SendCQ: s.cq, RecvCQ: s.cq, MaxSendWR: 1, MaxRecvWR: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			seats[j] = s
		}
		a, b := seats[0], seats[1]
		join(t, a, b, engine.ConnectOptions{})
		b.recv(t, 0, 0, 64)
		a.send(t, roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 8)},
		})
		w.succeed(a.cq, 1)
		for _, s := range seats {
			s.qp.Close() // the receive's completion was not polled
			if err := errors.Join(s.cq.Close(), s.mr.Deregister(), s.pd.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, dev := range w.devs {
		if got := dev.Resources(0).Total; got != (engine.ResourceCount{}) {
			t.Errorf("left: %+v", got)
		}
	}
	if grown := heap.Grown(held, 1<<20); grown > 1<<20 {
		t.Errorf("%d bytes more after %d connections", grown, many/2)
	}
}

// TestResourcesWhileInUse looks while objects come and go and while, in direct mode,
// somebody sleeps with the progress lock.
func TestResourcesWhileInUse(t *testing.T) {
	clock := engine.NewSystemClock()
	dev, _ := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{
		Clock: clock, Direct: true,
	})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	idle := newSide(t, dev)
	wg.Go(func() {
		var wcs [1]roce.Completion
		if _, err := idle.cq.Wait(ctx, wcs[:]); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for range 2 {
		wg.Go(func() {
			for range 50 {
				pd := dev.AllocPD()
				mr, err := dev.RegMR(pd, make([]byte, 8), mem.LocalWrite)
				if err != nil {
					t.Error(err)
					return
				}
				r := dev.Resources(10)
				if r.Total.PD < 2 || r.Total.MR < 2 || r.Total.QP != 1 {
					t.Errorf("%+v", r.Total)
				}
				// Deregister waits for the sleeper, which Resources wakes.
				done := make(chan error, 1)
				go func() { done <- errors.Join(mr.Deregister(), pd.Close()) }()
				for err, ended := error(nil), false; !ended; {
					select {
					case err = <-done:
						ended = true
						if err != nil {
							t.Error(err)
						}
					default:
						dev.Resources(0)
					}
				}
			}
		})
	}
	waited := make(chan struct{})
	go func() { wg.Wait(); close(waited) }()
	for more := true; more; {
		select {
		case <-waited:
			more = false
		default:
			if r := dev.Resources(0); r.Total.PD == 1 && r.Total.MR == 1 {
				stop()
			}
		}
	}
	stop()
}
