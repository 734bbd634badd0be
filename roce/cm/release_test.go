package cm_test

import (
	"errors"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// TestRejected lets the peer refuse in every state.
func TestRejected(t *testing.T) {
	waiting := func(r *rig) cm.ID { r.listen(); return r.requested() }
	answered := func(r *rig) cm.ID { id := waiting(r); r.accept(id); return id }
	asked := func(r *rig) cm.ID { id, _ := r.connect(); return id }
	responded := func(r *rig) cm.ID {
		id := asked(r)
		r.give(rep(id))
		r.event(cm.EventConnectResponse)
		return id
	}
	patient := func(r *rig) cm.ID {
		id := asked(r)
		r.give(&cm.MRA{LocalCommID: theirID, RemoteCommID: uint32(id), ServiceTimeout: 20})
		return id
	}
	leaving := func(r *rig) cm.ID {
		id := r.connected()
		must(r.T, r.m.Disconnect(r.now, id, nil))
		r.want(tidOf(id), ourDREQ(id))
		return id
	}
	for _, tt := range []struct {
		name   string
		begin  func(*rig) cm.ID
		reason cm.Reason
		event  cm.EventType
		rests  bool
	}{
		{"REQ_SENT", asked, cm.ReasonConsumer, cm.EventRejected, false},
		{"REQ_SENT, stale", asked, cm.ReasonStaleConn, cm.EventRejected, true},
		{"MRA_REQ_RCVD", patient, cm.ReasonConsumer, cm.EventRejected, false},
		{"REP_RCVD", responded, cm.ReasonTimeout, cm.EventRejected, true},
		{"REQ_RCVD", waiting, cm.ReasonTimeout, cm.EventRejected, false},
		{"REP_SENT", answered, cm.ReasonConsumer, cm.EventRejected, true},
		{"ESTABLISHED, active", (*rig).connected, cm.ReasonTimeout, cm.EventDisconnected, true},
		{"ESTABLISHED, passive", (*rig).accepted, cm.ReasonConsumer, cm.EventDisconnected, true},
		{"DREQ_SENT", leaving, cm.ReasonInvalidCommID, cm.EventDisconnected, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, cm.Config{})
			id := tt.begin(r)
			rej := theirREJ(id, tt.reason)
			rej.InfoLen = 100 // more than there is
			rej.Info[71] = 7
			copy(rej.Private[:], "no")
			r.give(rej)
			e := r.event(tt.event)
			if e.ID != id || e.Reason != tt.reason || string(e.Private[:3]) != "no\x00" ||
				len(e.Info) != cm.InfoREJ || e.Info[71] != 7 {
				t.Errorf("event %+v", e)
			}
			if tt.rests {
				r.give(rej)
				r.counted(cm.DropState, 1)
				r.ends()
				return
			}
			r.event(cm.EventTimewaitExit)
			r.gone()
		})
	}
}

// TestRejectedByName lets a peer give up that does not know our ID: it tells its
// own and its GUID.
func TestRejectedByName(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	id := r.requested()
	rej := theirREJ(0, cm.ReasonTimeout)
	rej.InfoLen, rej.Info = 8, [cm.InfoREJ]byte{7: theirGUID + 1}
	r.give(rej)
	r.counted(cm.DropUnknown, 1)
	rej.Info[7] = theirGUID
	rej.Reason = cm.ReasonConsumer
	r.give(rej)
	r.counted(cm.DropUnknown, 2)
	r.silent()
	rej.Reason = cm.ReasonTimeout
	r.give(rej)
	if e := r.event(cm.EventRejected); e.ID != id {
		t.Errorf("event %+v", e)
	}
	r.event(cm.EventTimewaitExit)
	r.gone()
}

// TestRejectedWithoutNameLater: what is established ends by no REJ of a host that does not tell
// both IDs: half as many bits are guessed in hours.
func TestRejectedWithoutNameLater(t *testing.T) {
	for name, begin := range map[string]func(*rig) cm.ID{
		"active": (*rig).connected, "passive": (*rig).accepted,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, cm.Config{})
			id := begin(r)
			rej := theirREJ(id, cm.ReasonInvalidCommID)
			rej.LocalCommID = 0
			r.give(rej)
			r.silent()
			rej = theirREJ(0, cm.ReasonTimeout)
			rej.InfoLen, rej.Info[7] = 8, theirGUID
			r.give(rej)
			r.silent()
			r.counted(cm.DropUnknown, 2)
			if s := r.m.State(id); s != cm.StateEstablished {
				t.Errorf("the connection is in %s", s)
			}
		})
	}
}

// TestRejectedWithoutName takes the REJ of a host that knows nothing of the
// connection: it says 0 for its own ID.
func TestRejectedWithoutName(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	id := r.requested()
	r.accept(id)
	rej := theirREJ(id, cm.ReasonInvalidCommID)
	rej.LocalCommID = theirID + 1
	r.give(rej)
	r.counted(cm.DropUnknown, 1)
	rej.LocalCommID = 0
	r.give(rej)
	r.event(cm.EventRejected)
	r.ends()
}

// TestDisconnectEarly gives up before there is a connection.
func TestDisconnectEarly(t *testing.T) {
	r := newRig(t, cm.Config{})
	id, _ := r.connect()
	must(t, r.m.Disconnect(r.now, id, nil))
	r.want(tidOf(id), ourREJ(id, 0, cm.SubjectNone, cm.ReasonTimeout, ourGUIDInfo...))
	r.ends()

	id, _ = r.connect()
	r.give(rep(id))
	r.event(cm.EventConnectResponse)
	must(t, r.m.Disconnect(r.now, id, nil))
	r.want(tidOf(id), ourREJ(id, theirID, cm.SubjectREP, cm.ReasonConsumer))
	r.ends()

	r.listen()
	r.path.FlowLabel = 0
	id = r.requested()
	must(t, r.m.Disconnect(r.now, id, nil))
	r.want(theirTID, ourREJ(id, theirID, cm.SubjectREQ, cm.ReasonConsumer))
	r.event(cm.EventTimewaitExit)
	r.gone()

	id = r.requested()
	r.accept(id)
	must(t, r.m.Disconnect(r.now, id, nil))
	r.want(theirTID, ourREJ(id, theirID, cm.SubjectNone, cm.ReasonConsumer))
	r.ends()
}

// TestUnknown sends messages of conversations that are not there.
func TestUnknown(t *testing.T) {
	r := newRig(t, cm.Config{})
	for _, m := range []putter{
		rtu(77), theirDREP(77), theirREJ(77, cm.ReasonConsumer), theirREJ(0, cm.ReasonConsumer),
		&cm.MRA{LocalCommID: theirID, RemoteCommID: 77},
		&cm.LAP{LocalCommID: theirID, RemoteCommID: 77}, &cm.SIDRREP{RequestID: 77},
	} {
		r.give(m)
		r.gone()
	}
	r.counted(cm.DropUnknown, 7)
	r.give(&cm.APR{LocalCommID: theirID, RemoteCommID: 77})
	r.counted(cm.DropState, 1)
	r.give(rep(77))
	r.want(theirTID, ourREJ(77, theirID, cm.SubjectREP, cm.ReasonInvalidCommID))
	r.give(theirDREQ(77))
	r.want(theirTID, ourDREP(77))
	r.gone()
}

// TestForged sends what would end or make a connection, but for one thing.
func TestForged(t *testing.T) {
	t.Run("DREQ for another queue pair", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id := r.connected()
		dreq := theirDREQ(id)
		dreq.RemoteQPN++
		r.give(dreq)
		r.silent()
		r.counted(cm.DropWrongQPN, 1)
	})
	t.Run("from another address", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id := r.connected()
		asked, _ := r.connect()
		r.path.Remote[15]++
		for i, m := range []putter{
			theirDREQ(id), theirDREP(id), theirREJ(id, cm.ReasonConsumer), rep(asked),
			&cm.MRA{LocalCommID: theirID, RemoteCommID: uint32(asked), ServiceTimeout: 24},
			&cm.LAP{LocalCommID: theirID, RemoteCommID: uint32(id), RemoteQPN: ourQPN},
		} {
			r.give(m)
			r.silent()
			r.counted(cm.DropWrongSource, uint64(i+1))
		}
	})
	t.Run("under another ID", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		id := r.requested()
		r.accept(id)
		ready, drep, dreq := rtu(id), theirDREP(id), theirDREQ(id)
		ready.LocalCommID++
		drep.LocalCommID++
		dreq.LocalCommID++
		r.give(ready)
		r.give(drep)
		r.silent()
		r.give(dreq)
		want := ourDREP(id)
		want.RemoteCommID++
		r.want(theirTID, want)
		r.counted(cm.DropUnknown, 3)
		if s := r.m.State(id); s != cm.StateREPSent {
			t.Error(s)
		}
	})
	t.Run("from nowhere", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.listen()
		for i, gid := range []wire.GID{{}, {0xff, 0x0e}} {
			r.path.Remote = gid
			r.give(r.req())
			r.gone()
			r.counted(cm.DropWrongSource, uint64(i+1))
		}
	})
}

// TestOutOfTurn sends what does not fit the state of its connection.
func TestOutOfTurn(t *testing.T) {
	r := newRig(t, cm.Config{})
	id := r.connected()
	r.give(rtu(id)) // we are the active end
	r.give(&cm.MRA{LocalCommID: theirID, RemoteCommID: uint32(id)})
	r.give(theirDREP(id))
	r.counted(cm.DropState, 3)
	r.silent()
	asked, _ := r.connect()
	r.give(rtu(asked))
	r.give(theirDREP(asked))
	r.give(&cm.LAP{LocalCommID: theirID, RemoteCommID: uint32(asked), RemoteQPN: ourQPN})
	r.counted(cm.DropState, 6)
	r.silent()
}

// TestNotCM sends MADs that are not for a connection manager.
func TestNotCM(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	good := make([]byte, cm.MADLen)
	r.req().Put(good, theirTID)
	n := uint64(0)
	try := func(mad []byte) {
		t.Helper()
		n++
		r.m.HandleMAD(r.now, cm.Path{Local: r.path.Local, Remote: r.path.Remote}, mad)
		r.counted(cm.DropNotCM, n)
	}
	for _, change := range []struct {
		at    int
		value byte
	}{{0, 2}, {1, 4}, {3, 0x83}, {3, 1}, {17, 0x1b}, {17, 0x0f}, {16, 1}} {
		mad := append([]byte(nil), good...)
		mad[change.at] = change.value
		try(mad)
		r.silent()
	}
	for _, length := range []int{0, 1, 23, 24, 255} {
		try(good[:length])
		r.silent()
	}
	try(append(good, 0))
	r.gone()
	// Another version of a request is answered, nothing else is.
	mad := append([]byte(nil), good...)
	mad[2] = 3
	try(mad)
	r.want(theirTID, ourREJ(0, theirID, cm.SubjectREQ, cm.ReasonInvalidClassVersion))
	rtu(1).Put(mad, 1)
	mad[2] = 3
	try(mad)
	r.gone()
	(&cm.SIDRREQ{RequestID: 9}).Put(mad, 5)
	mad[2] = 1
	try(mad)
	r.want(5, &cm.SIDRREP{RequestID: 9, Status: cm.SIDRVersion})
	r.gone()
}

// TestAlternatePath asks for one, which there is not.
func TestAlternatePath(t *testing.T) {
	r := newRig(t, cm.Config{})
	id := r.connected()
	r.path.FlowLabel = 0
	lap := &cm.LAP{LocalCommID: theirID, RemoteCommID: uint32(id), RemoteQPN: ourQPN}
	r.giveTID(9, lap)
	r.want(9, &cm.APR{LocalCommID: uint32(id), RemoteCommID: theirID, Status: 2})
	lap.RemoteQPN++
	r.give(lap)
	r.counted(cm.DropWrongQPN, 1)
	r.silent()
}

// TestLongTimewait bounds what a peer can make the machine remember.
func TestLongTimewait(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	req := r.req()
	req.Primary.LocalAckTimeout, req.LocalTimeout = 31, 31
	r.give(req)
	id := r.event(cm.EventConnectRequest).ID
	r.accept(id)
	r.give(rtu(id))
	r.event(cm.EventEstablished)
	r.give(theirDREQ(id))
	r.want(theirTID, ourDREP(id))
	r.event(cm.EventDisconnected)
	r.pass(17 * clock.Second)
	r.event(cm.EventTimewaitExit)
	r.gone()
}

// TestWrongCalls makes calls that are refused and change nothing.
func TestWrongCalls(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	id := r.requested()
	long := make([]byte, 1000)
	v6 := wire.GID{0: 0x20}
	connect := func(change func(*cm.Connect)) error {
		c := cm.Connect{Path: r.path, Service: service, PathMTU: wire.MTU256}
		change(&c)
		_, err := r.m.Connect(r.now, c)
		return err
	}
	lookup := func(p cm.Path, n int) error {
		_, err := r.m.Lookup(r.now, cm.Lookup{Path: p, Service: datagrams, Private: long[:n]})
		return err
	}
	listen := func(l cm.Listen) error { _, err := r.m.Listen(l); return err }
	for i, err := range []error{
		connect(func(c *cm.Connect) { c.QPN = 1 << 24 }),
		connect(func(c *cm.Connect) { c.PSN = 1 << 24 }),
		connect(func(c *cm.Connect) { c.Path.FlowLabel = 1 << 20 }),
		connect(func(c *cm.Connect) { c.Transport = 2 }),
		connect(func(c *cm.Connect) { c.PathMTU = 0 }),
		connect(func(c *cm.Connect) { c.RetryCount = 8 }),
		connect(func(c *cm.Connect) { c.RNRRetryCount = 8 }),
		connect(func(c *cm.Connect) { c.AckTimeout = 32 }),
		connect(func(c *cm.Connect) { c.PacketRate = 64 }),
		connect(func(c *cm.Connect) { c.Private = long[:57] }),
		connect(func(c *cm.Connect) { c.Service, c.Private = 1, long[:93] }),
		connect(func(c *cm.Connect) { c.Path.Remote = wire.GID{} }),
		connect(func(c *cm.Connect) { c.Path.Local = wire.GID{0xff} }),
		connect(func(c *cm.Connect) { c.Path.Remote = v6 }),
		r.m.Accept(r.now, id, cm.Accept{QPN: 1 << 24}),
		r.m.Accept(r.now, id, cm.Accept{PSN: 1 << 24}),
		r.m.Accept(r.now, id, cm.Accept{RNRRetryCount: 8}),
		r.m.Accept(r.now, id, cm.Accept{Private: long[:197]}),
		r.m.Reject(r.now, id, cm.ReasonNone, nil, nil),
		r.m.Reject(r.now, id, cm.ReasonConsumer, long[:73], nil),
		r.m.Reject(r.now, id, cm.ReasonConsumer, nil, long[:149]),
		r.m.Disconnect(r.now, id, long[:221]),
		lookup(r.path, 181), lookup(cm.Path{}, 0),
		listen(cm.Listen{Backlog: -1}), listen(cm.Listen{Transport: 2}),
	} {
		if !errors.Is(err, cm.ErrInvalid) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if s := r.m.State(id); s != cm.StateREQRcvd {
		t.Error(s)
	}
	for i, err := range []error{
		r.m.Establish(id, nil), r.m.CommEst(id),
	} {
		if !errors.Is(err, cm.ErrState) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	for i, err := range []error{
		r.m.Accept(r.now, 99, cm.Accept{}), r.m.Establish(99, nil), r.m.Disconnect(r.now, 99, nil),
		r.m.Reject(r.now, 99, cm.ReasonConsumer, nil, nil),
		r.m.RespondSIDR(r.now, id, cm.SIDRResponse{}), r.m.CancelLookup(id),
	} {
		if !errors.Is(err, cm.ErrUnknown) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	r.accept(id)
	if err := r.m.Accept(r.now, id, cm.Accept{}); !errors.Is(err, cm.ErrState) {
		t.Error(err)
	}
	r.silent()
}

// TestWrongConfigs makes machines that cannot be.
func TestWrongConfigs(t *testing.T) {
	some := &counting{}
	for i, c := range []cm.Config{
		{},
		{Rand: some, MaxHalfOpen: -1},
		{Rand: some, MaxConnections: -1},
		{Rand: some, MaxOutbox: -1},
		{Rand: some, MaxRetries: 16},
		{Rand: some, MTU: 6},
		{Rand: some, ResponseTimeout: 32},
		{Rand: some, PacketLifeTime: 31},
	} {
		if _, err := cm.New(c); !errors.Is(err, cm.ErrInvalid) {
			t.Errorf("configuration %d: %v", i, err)
		}
	}
}
