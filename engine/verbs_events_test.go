package engine_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// TestEventsOfQueuePairs does what raises each event, on the simulated wire and
// over AF_XDP, and takes it from the device.
func TestEventsOfQueuePairs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cause func(t *testing.T, w *world, a, b *seat)
		want  roce.Event // of b
	}{
		{"first packet in RTR", firstPacketInRTR, roce.EventCommEst},
		{"drained", drainSends, roce.EventSQDrained},
		{"another's memory", func(t *testing.T, _ *world, a, b *seat) {
			join(t, a, b, engine.ConnectOptions{})
			wr := writeTo(a, b, roce.OpWrite, 10)
			wr.RKey++
			a.send(t, wr)
		}, roce.EventQPAccessErr},
		{"without the right", func(t *testing.T, _ *world, a, b *seat) {
			join(t, a, b, engine.ConnectOptions{})
			err := b.qp.Modify(&roce.Attr{Access: mem.RemoteRead}, roce.AttrAccess)
			if err != nil {
				t.Fatal(err)
			}
			a.send(t, writeTo(a, b, roce.OpWrite, 10))
		}, roce.EventQPReqErr},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
				a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
				tt.cause(t, w, a, b)
				if e := w.event(w.devs[1]); e != (engine.AsyncEvent{Type: tt.want, QP: b.qp}) {
					t.Errorf("event %s of %v, want %s of %v", e.Type, e.QP, tt.want, b.qp)
				}
			})
		})
	}
}

// firstPacketInRTR leaves b in RTR when the first packet comes.
func firstPacketInRTR(t *testing.T, w *world, a, b *seat) {
	t.Helper()
	path := func(from, to int) roce.Attr {
		p, err := w.devs[from].ResolvePath(t.Context(), engine.AddressVector{
			DGID: w.devs[to].GIDs()[gidIPv4], SGIDIndex: gidIPv4, HopLimit: 64,
		})
		if err != nil {
			t.Fatal(err)
		}
		return roce.Attr{
			State: roce.StateRTR, Path: p, PathMTU: 3, MaxDestRdAtomic: 1, MinRNRTimer: 1,
			RQPSN: 5,
		}
	}
	const rtr = roce.AttrState | roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN |
		roce.AttrRQPSN | roce.AttrMaxDestRdAtomic | roce.AttrMinRNRTimer
	for i, s := range []*seat{a, b} {
		if err := s.qp.Init(rights); err != nil {
			t.Fatal(err)
		}
		attr := path(i, 1-i)
		attr.DestQPN = []*seat{b, a}[i].qp.QPN()
		if err := s.qp.Modify(&attr, rtr); err != nil {
			t.Fatal(err)
		}
	}
	err := a.qp.Modify(&roce.Attr{
		State: roce.StateRTS, SQPSN: 5, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1,
	}, roce.AttrState|roce.AttrSQPSN|roce.AttrTimeout|roce.AttrRetryCnt|roce.AttrRNRRetry|
		roce.AttrMaxRdAtomic)
	if err != nil {
		t.Fatal(err)
	}
	a.send(t, writeTo(a, b, roce.OpWrite, 10))
}

// drainSends moves b to SQD while its WRITE is under way.
func drainSends(t *testing.T, w *world, a, b *seat) {
	t.Helper()
	join(t, a, b, engine.ConnectOptions{})
	b.send(t, writeTo(b, a, roce.OpWrite, 50_000))
	w.run(func() bool { return b.qp.Snapshot().SendBegun > 0 })
	err := b.qp.Modify(&roce.Attr{State: roce.StateSQD}, roce.AttrState|roce.AttrEnSQDAsyncNotify)
	if err != nil {
		t.Fatal(err)
	}
}

// TestEventsReachTheChannel takes an event from Device.Events while the device
// drives itself.
func TestEventsReachTheChannel(t *testing.T) {
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	events := devB.Events()
	err := a.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpWrite, SGList: []roce.SGE{a.mr.SGE(0, 10)}, RemoteAddr: b.mr.Addr(),
		RKey: b.mr.RKey() + 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-events:
		if e != (engine.AsyncEvent{Type: roce.EventQPAccessErr, QP: b.qp}) {
			t.Errorf("event %+v", e)
		}
	case <-time.After(soon):
		t.Fatal("no event")
	}
}

// TestModifyWakesTheDevice posts in SQD, where nothing is sent, and goes back to
// RTS while the device sleeps.
func TestModifyWakesTheDevice(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	port := newPort(t, network, 0)
	link := &watchedLink{Port: port}
	devA, err := engine.OpenLink(link, port, engine.Options{Clock: clock, Spin: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := devA.Close(); err != nil {
			t.Error(err)
		}
	}()
	a, b := newSide(t, devA), newSide(t, openPort(t, network, 1, engine.Options{Clock: clock}))
	connect(t, a, b)
	for range 20 {
		if err := a.qp.Modify(&roce.Attr{State: roce.StateSQD}, roce.AttrState); err != nil {
			t.Fatal(err)
		}
		before := link.naps.Load()
		postWrites(t, a, b, 1, 100)
		for link.naps.Load() == before || !link.asleep.Load() {
			runtime.Gosched()
		}
		if err := a.qp.Modify(&roce.Attr{State: roce.StateRTS}, roce.AttrState); err != nil {
			t.Fatal(err)
		}
		a.wait(t, 1)
	}
}

// A watchedLink tells when the device sleeps.
type watchedLink struct {
	*sim.Port
	naps   atomic.Uint32 // how often it fell asleep
	asleep atomic.Bool
}

func (w *watchedLink) Wait(timeout time.Duration) error {
	w.asleep.Store(true)
	w.naps.Add(1)
	defer w.asleep.Store(false)
	return w.Port.Wait(timeout)
}
