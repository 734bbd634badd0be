package cm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// TestConnect plays the active end of a whole life.
func TestConnect(t *testing.T) {
	r := newRig(t, cm.Config{})
	id, _ := r.connect()
	answer := rep(id)
	copy(answer.Private[:], "welcome")
	r.give(answer)
	e := r.event(cm.EventConnectResponse)
	want := cm.QPParams{
		Path: r.path, PathMTU: wire.MTU1024, DestQPN: theirQPN, RQPSN: ourPSN, SQPSN: theirPSN,
		MaxRdAtomic: 3, MaxDestRdAtomic: 2, Timeout: 17, RetryCnt: 6, RNRRetry: 5,
		FlowControl: true,
	}
	if diff := cmp.Diff(want, e.Params); diff != "" {
		t.Error("parameters", diff)
	}
	if e.ID != id || len(e.Private) != cm.PrivateREP || string(e.Private[:8]) != "welcome\x00" {
		t.Errorf("event %+v", e)
	}
	r.silent()
	must(t, r.m.Establish(id, []byte("ready")))
	ready := &cm.RTU{LocalCommID: uint32(id), RemoteCommID: theirID}
	copy(ready.Private[:], "ready")
	r.want(tidOf(id), ready)
	r.pass(1000 * clock.Second)
	r.silent()

	r.give(answer) // they did not hear the RTU
	r.want(tidOf(id), ready)

	must(t, r.m.Disconnect(r.now, id, []byte("bye")))
	dreq := ourDREQ(id)
	copy(dreq.Private[:], "bye")
	r.want(tidOf(id), dreq)
	r.silent()
	must(t, r.m.Disconnect(r.now, id, nil))
	r.silent()
	r.give(theirDREP(id))
	if e := r.event(cm.EventDisconnected); e.Reason != cm.ReasonNone || e.ID != id {
		t.Errorf("event %+v", e)
	}
	r.give(theirDREP(id))
	r.ends()
	r.counted(cm.DropState, 1)
}

// TestDisconnectedByPeer ends a connection from the other end, in all states in
// which that is possible, and again in the time-wait and after.
func TestDisconnectedByPeer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		begin func(*rig) cm.ID
	}{
		{"active", (*rig).connected},
		{"passive", (*rig).accepted},
		{"before the RTU", func(r *rig) cm.ID {
			r.listen()
			id := r.requested()
			r.accept(id)
			return id
		}},
		{"both at once", func(r *rig) cm.ID {
			id := r.connected()
			must(r.T, r.m.Disconnect(r.now, id, nil))
			r.want(tidOf(id), ourDREQ(id))
			return id
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, cm.Config{})
			id := tt.begin(r)
			dreq := theirDREQ(id)
			copy(dreq.Private[:], "bye")
			r.giveTID(5, dreq)
			r.path.FlowLabel = 0 // answers go the way that the message came
			r.want(5, ourDREP(id))
			if tt.name == "before the RTU" {
				r.event(cm.EventEstablished) // the peer was ready
			}
			if e := r.event(cm.EventDisconnected); string(e.Private[:4]) != "bye\x00" {
				t.Errorf("private data %q", e.Private)
			}
			r.pass(timewait / 2)
			r.giveTID(6, dreq) // they did not hear it
			r.want(6, ourDREP(id))
			r.pass(timewait)
			r.event(cm.EventTimewaitExit)
			r.giveTID(7, dreq) // nor that one
			r.want(7, ourDREP(id))
			r.gone()
		})
	}
}

// TestUnreachable counts what is sent to somebody who never answers.
func TestUnreachable(t *testing.T) {
	t.Run("REQ", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, req := r.connect()
		for range 15 {
			r.pass(reqTime - 1)
			r.silent()
			r.pass(1)
			r.want(tidOf(id), req)
		}
		r.pass(reqTime)
		r.want(tidOf(id), ourREJ(id, 0, cm.SubjectNone, cm.ReasonTimeout, ourGUIDInfo...))
		if e := r.event(cm.EventUnreachable); e.Reason != cm.ReasonTimeout || e.ID != id {
			t.Errorf("event %+v", e)
		}
		r.ends()
		r.counted(cm.Timeouts, 1)
	})
	t.Run("REP", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		id := r.requested()
		rep := r.accept(id)
		for range 15 {
			r.pass(repTime - 1)
			r.silent()
			r.pass(1)
			r.want(theirTID, rep)
		}
		r.pass(repTime)
		r.want(theirTID, ourREJ(id, theirID, cm.SubjectNone, cm.ReasonTimeout, ourGUIDInfo...))
		r.event(cm.EventUnreachable)
		r.ends()
	})
	t.Run("DREQ", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id := r.connected()
		must(t, r.m.Disconnect(r.now, id, nil))
		for range 16 {
			r.want(tidOf(id), ourDREQ(id))
			r.pass(reqTime - 1)
			r.silent()
			r.pass(1)
		}
		r.event(cm.EventDisconnected)
		r.ends()
	})
	t.Run("retries of the peer", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		req := r.req()
		req.MaxCMRetries, req.LocalTimeout = 2, 17 // 512 ms
		r.give(req)
		id := r.event(cm.EventConnectRequest).ID
		rep := r.accept(id)
		for range 2 {
			r.pass(512 * clock.Millisecond)
			r.want(theirTID, rep)
		}
		r.pass(512 * clock.Millisecond)
		r.want(theirTID, ourREJ(id, theirID, cm.SubjectNone, cm.ReasonTimeout, ourGUIDInfo...))
		r.event(cm.EventUnreachable)
		r.ends()
	})
}

// TestMRA lets the peer ask for more time, once for each message.
func TestMRA(t *testing.T) {
	const asked = 65536 * clock.Millisecond
	t.Run("REQ", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, req := r.connect()
		mra := &cm.MRA{LocalCommID: theirID, RemoteCommID: uint32(id), ServiceTimeout: 24}
		r.pass(clock.Second)
		r.give(mra)
		r.pass(clock.Second)
		r.give(mra) // changes nothing
		r.counted(cm.DropState, 0)
		r.pass(asked + reqTime - clock.Second - 1)
		r.silent()
		r.pass(1)
		r.want(tidOf(id), req)
		r.pass(reqTime) // and no longer than usual from there
		r.want(tidOf(id), req)
		r.give(rep(id))
		r.event(cm.EventConnectResponse)
	})
	t.Run("REP", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		id := r.requested()
		rep := r.accept(id)
		r.give(&cm.MRA{
			LocalCommID: theirID, RemoteCommID: uint32(id), Subject: cm.SubjectREP,
			ServiceTimeout: 31, // more than is believed
		})
		r.pass(asked + repTime - 1)
		r.silent()
		r.pass(1)
		r.want(theirTID, rep)
		r.give(rtu(id))
		r.event(cm.EventEstablished)
		r.give(&cm.MRA{LocalCommID: theirID, RemoteCommID: uint32(id), ServiceTimeout: 24})
		r.counted(cm.DropState, 1)
		r.silent()
	})
}

// TestWaitingForOwner repeats messages that the owner has not answered yet: they
// get an MRA, and time runs out in the end.
func TestWaitingForOwner(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		id := r.requested()
		mra := &cm.MRA{LocalCommID: uint32(id), RemoteCommID: theirID, ServiceTimeout: 24}
		for range 3 {
			r.pass(reqTime)
			r.give(r.req())
			r.want(theirTID, mra)
			r.silent()
		}
		rep := r.accept(id)
		r.give(r.req())
		r.want(theirTID, rep)
		r.give(rtu(id))
		r.event(cm.EventEstablished)
		r.give(r.req()) // late
		r.give(rtu(id)) // late
		r.silent()
	})
	t.Run("request, for ever", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		id := r.requested()
		r.pass(179 * clock.Second)
		r.silent()
		r.pass(clock.Second)
		r.want(theirTID, ourREJ(id, theirID, cm.SubjectREQ, cm.ReasonTimeout, ourGUIDInfo...))
		r.event(cm.EventUnreachable)
		r.event(cm.EventTimewaitExit)
		r.gone()
		r.counted(cm.RequestsExpired, 1)
	})
	t.Run("response", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, _ := r.connect()
		r.give(rep(id))
		r.event(cm.EventConnectResponse)
		mra := &cm.MRA{
			LocalCommID: uint32(id), RemoteCommID: theirID, Subject: cm.SubjectREP,
			ServiceTimeout: 24,
		}
		for range 2 {
			r.give(rep(id))
			r.want(tidOf(id), mra)
		}
		must(t, r.m.Establish(id, nil))
		r.want(tidOf(id), &cm.RTU{LocalCommID: uint32(id), RemoteCommID: theirID})
	})
	t.Run("response, for ever", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id, _ := r.connect()
		r.give(rep(id))
		r.event(cm.EventConnectResponse)
		r.pass(180 * clock.Second)
		r.want(tidOf(id), ourREJ(id, theirID, cm.SubjectREP, cm.ReasonTimeout, ourGUIDInfo...))
		r.event(cm.EventUnreachable)
		r.ends()
	})
}

// TestCrossedConnects lets both ends connect to each other at the same time: that
// makes two connections.
func TestCrossedConnects(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	mine, _ := r.connect()
	flow := r.path.FlowLabel
	r.path.FlowLabel = 0
	theirs := r.req()
	theirs.LocalCommID, theirs.LocalQPN = theirID+1, theirQPN+1
	r.give(theirs)
	id := r.event(cm.EventConnectRequest).ID
	must(t, r.m.Accept(r.now, id, cm.Accept{QPN: ourQPN + 1, PSN: 1}))
	r.want(theirTID, &cm.REP{
		LocalCommID: uint32(id), RemoteCommID: theirID + 1, LocalQPN: ourQPN + 1,
		StartingPSN: 1, LocalCAGUID: ourGUID,
	})
	r.give(rep(mine))
	r.event(cm.EventConnectResponse)
	r.path.FlowLabel = flow
	must(t, r.m.Establish(mine, nil))
	r.want(tidOf(mine), &cm.RTU{LocalCommID: uint32(mine), RemoteCommID: theirID})
	r.give(&cm.RTU{LocalCommID: theirID + 1, RemoteCommID: uint32(id)})
	r.event(cm.EventEstablished)
	if r.m.State(mine) != cm.StateEstablished || r.m.State(id) != cm.StateEstablished {
		t.Errorf("%s and %s", r.m.State(mine), r.m.State(id))
	}
	r.silent()
}

// TestWrongREP is answered by a REP with a number that no QP has, which is refused, and by
// one that offers and wants more than it was asked for.
func TestWrongREP(t *testing.T) {
	for _, qpn := range []uint32{0, 1, 0xffffff} {
		r := newRig(t, cm.Config{})
		id, _ := r.connect()
		answer := rep(id)
		answer.LocalQPN = qpn
		r.give(answer)
		r.want(tidOf(id), ourREJ(id, theirID, cm.SubjectREP, cm.ReasonNoQP))
		if e := r.event(cm.EventRejected); e.ID != id || e.Reason != cm.ReasonNoQP {
			t.Errorf("QPN %x: %+v", qpn, e)
		}
		r.pass(timewait)
		r.pass(clock.Second)
		r.event(cm.EventTimewaitExit)
		r.gone()
	}
	r := newRig(t, cm.Config{})
	id, _ := r.connect()
	answer := rep(id)
	answer.ResponderRes, answer.InitiatorDepth = 200, 200
	r.give(answer)
	p := r.event(cm.EventConnectResponse).Params
	if p.MaxRdAtomic != 5 || p.MaxDestRdAtomic != 4 {
		t.Errorf("%d READs of ours and %d of theirs", p.MaxRdAtomic, p.MaxDestRdAtomic)
	}
}
