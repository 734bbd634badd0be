package cm_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/roce/clock"
	"xroce/roce/cm"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// TestAccept plays the passive end of a whole life.
func TestAccept(t *testing.T) {
	r := newRig(t, cm.Config{})
	l := r.listen()
	r.give(r.req())
	e := r.event(cm.EventConnectRequest)
	want := cm.Event{
		Type: cm.EventConnectRequest, ID: e.ID, Listener: l, Service: service,
		IP: cm.IPHeader{Src: netip.AddrPortFrom(theirAddr, theirPort), Dst: ourAddr}, Path: r.path,
		Params: cm.QPParams{
			Path: cm.Path{
				Local: r.path.Local, Remote: r.path.Remote, FlowLabel: 0x12345, TClass: 0x68, SL: 5,
				HopLimit: 64,
			},
			PathMTU: wire.MTU1024, DestQPN: theirQPN, SQPSN: theirPSN, MaxRdAtomic: 4,
			MaxDestRdAtomic: 5, Timeout: 17, RetryCnt: 6, RNRRetry: 5,
		},
		Private: append([]byte("hello"), make([]byte, 51)...),
	}
	if diff := cmp.Diff(want, e, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	rep := r.accept(e.ID)
	r.pass(clock.Second)
	r.give(r.req()) // they did not hear the REP
	r.want(theirTID, rep)
	ready := rtu(e.ID)
	copy(ready.Private[:], "ready")
	r.give(ready)
	if e := r.event(cm.EventEstablished); string(e.Private[:6]) != "ready\x00" {
		t.Errorf("private data %q", e.Private)
	}
	r.pass(1000 * clock.Second)
	r.silent()
	must(t, r.m.Disconnect(r.now, e.ID, nil))
	r.want(tidOf(e.ID), ourDREQ(e.ID))
	r.pass(repTime)
	r.want(tidOf(e.ID), ourDREQ(e.ID))
	r.give(theirDREP(e.ID))
	r.event(cm.EventDisconnected)
	r.ends()
}

// TestReject refuses a request, and the answer to a request.
func TestReject(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	id := r.requested()
	must(t, r.m.Reject(r.now, id, cm.ReasonConsumer, []byte{1, 2}, []byte("no")))
	want := ourREJ(id, theirID, cm.SubjectREQ, cm.ReasonConsumer, 1, 2)
	copy(want.Private[:], "no")
	r.want(theirTID, want)
	r.event(cm.EventTimewaitExit)
	r.gone()

	id, _ = r.connect()
	r.give(rep(id))
	r.event(cm.EventConnectResponse)
	must(t, r.m.Reject(r.now, id, cm.ReasonNoResources, nil, nil))
	r.want(tidOf(id), ourREJ(id, theirID, cm.SubjectREP, cm.ReasonNoResources))
	r.ends()
}

// TestCommEst takes the first packet of the peer for its RTU.
func TestCommEst(t *testing.T) {
	r := newRig(t, cm.Config{})
	r.listen()
	id := r.requested()
	r.accept(id)
	must(t, r.m.CommEst(id))
	if e := r.event(cm.EventEstablished); e.Private != nil {
		t.Errorf("private data %q", e.Private)
	}
	r.give(rtu(id))
	r.pass(100 * clock.Second)
	r.silent()
	if err := r.m.CommEst(id); !errors.Is(err, cm.ErrState) {
		t.Error(err)
	}
}

// TestRefused lists what the machine refuses by itself.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*cm.REQ)
		want   cm.Reason
		info   []byte
	}{
		{"no listener", func(q *cm.REQ) { q.ServiceID++ }, cm.ReasonInvalidServiceID, nil},
		{"datagrams", func(q *cm.REQ) { q.ServiceID = datagrams }, cm.ReasonInvalidServiceID, nil},
		{"UC", func(q *cm.REQ) { q.Transport = 1 }, cm.ReasonInvalidTransport, nil},
		{"RD", func(q *cm.REQ) { q.Transport = 2 }, cm.ReasonInvalidTransport, nil},
		{"XRC", func(q *cm.REQ) { q.Transport = 3 }, cm.ReasonInvalidTransport, nil},
		{"no MTU", func(q *cm.REQ) { q.PathMTU = 0 }, cm.ReasonInvalidMTU, []byte{4}},
		{"MTU above ours", func(q *cm.REQ) { q.PathMTU = 5 }, cm.ReasonInvalidMTU, []byte{4}},
		{"MTU code", func(q *cm.REQ) { q.PathMTU = 15 }, cm.ReasonInvalidMTU, []byte{4}},
		{"source GID", func(q *cm.REQ) { q.Primary.LocalGID[15]++ }, cm.ReasonInvalidGID, ourGID()},
		{"our GID", func(q *cm.REQ) { q.Primary.RemoteGID[15]++ }, cm.ReasonInvalidGID, ourGID()},
		{"QP 0", func(q *cm.REQ) { q.LocalQPN = 0 }, cm.ReasonNoQP, nil},
		{"QP 1", func(q *cm.REQ) { q.LocalQPN = 1 }, cm.ReasonNoQP, nil},
		{"multicast", func(q *cm.REQ) { q.LocalQPN = 0xffffff }, cm.ReasonNoQP, nil},
		{"other partition", func(q *cm.REQ) { q.PKey = 0x8001 }, cm.ReasonInvalidGID, ourGID()},
		{"no partition", func(q *cm.REQ) { q.PKey = 0 }, cm.ReasonInvalidGID, ourGID()},
		{"header version", func(q *cm.REQ) { q.Private[0] = 0x10 }, cm.ReasonConsumer, nil},
		{"IP version", func(q *cm.REQ) { q.Private[1] = 0x50 }, cm.ReasonConsumer, nil},
		{"other family", func(q *cm.REQ) { q.Private[1] = 0x60 }, cm.ReasonConsumer, nil},
		{"source address", func(q *cm.REQ) { q.Private[19]++ }, cm.ReasonConsumer, nil},
		{"our address", func(q *cm.REQ) { q.Private[35]++ }, cm.ReasonConsumer, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, cm.Config{MTU: wire.MTU2048})
			r.listen()
			_, err := r.m.Listen(cm.Listen{Service: datagrams, Datagram: true})
			must(t, err)
			req := r.req()
			tt.change(req)
			r.give(req)
			r.want(theirTID, ourREJ(0, theirID, cm.SubjectREQ, tt.want, tt.info...))
			r.gone()
			refused := uint64(1)
			if tt.want == cm.ReasonInvalidServiceID {
				refused = 0
			}
			r.counted(cm.RequestsRefused, refused)
			r.counted(cm.NoListener, 1-refused)
		})
	}
}

// TestRequestInAPartition finds the P_Key of a request in the table of the port, and refuses one
// that nobody there may talk to, whichever partition its message came in.
func TestRequestInAPartition(t *testing.T) {
	table := verbs.PKeyTable{wire.DefaultPKey, 0x0005, 0x8005, 0x0006}
	for _, c := range []struct {
		pkey, index uint16
		refused     bool
	}{
		{0xffff, 0, false},
		{0x7fff, 0, false},
		{0x0005, 2, false},
		{0x8006, 3, false},
		{0x0006, 0, true},
		{0x8007, 0, true},
		{0x8000, 0, true},
	} {
		r := newRig(t, cm.Config{PKeys: table})
		r.listen()
		req := r.req()
		req.PKey = c.pkey
		r.give(req)
		if c.refused {
			r.want(theirTID, ourREJ(0, theirID, cm.SubjectREQ, cm.ReasonInvalidGID, ourGID()...))
			r.gone()
			continue
		}
		p := r.event(cm.EventConnectRequest).Params
		a, mask := p.RTR(verbs.TypeRC, wire.Path{})
		if p.Path.PKeyIndex != c.index || a.PKeyIndex != c.index || mask&verbs.AttrPKeyIndex == 0 {
			t.Errorf("0x%04x is at %d, and %d in RTR", c.pkey, p.Path.PKeyIndex, a.PKeyIndex)
		}
	}
	if _, err := cm.New(cm.Config{
		Rand: &counting{}, PKeys: verbs.PKeyTable{0x8000},
	}); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("a table without a partition: %v", err)
	}
}

func ourGID() []byte { g := wire.GIDFromAddr(ourAddr); return g[:] }

// TestListenersByAddress sends requests to several addresses of ours: each goes to
// the listener that is nearest.
func TestListenersByAddress(t *testing.T) {
	r := newRig(t, cm.Config{})
	listen := func(addr string) cm.ListenerID {
		l := cm.Listen{Service: service}
		if addr != "" {
			l.Addr = netip.MustParseAddr(addr)
		}
		id, err := r.m.Listen(l)
		must(t, err)
		if _, err := r.m.Listen(l); !errors.Is(err, cm.ErrInUse) {
			t.Errorf("%q twice: %v", addr, err)
		}
		return id
	}
	exact, v4, v6, any := listen("192.0.2.1"), listen("0.0.0.0"), listen("::"), listen("")
	from := cm.Path{}
	ask := func(us, them string) cm.ListenerID {
		t.Helper()
		from.Local = wire.GIDFromAddr(netip.MustParseAddr(us))
		from.Remote = wire.GIDFromAddr(netip.MustParseAddr(them))
		req := r.req()
		req.LocalCommID++
		req.LocalQPN += uint32(r.m.Usage().Connections)
		req.Primary.LocalGID, req.Primary.RemoteGID = from.Remote, from.Local
		cm.IPHeader{
			Src: netip.AddrPortFrom(netip.MustParseAddr(them), 1), Dst: netip.MustParseAddr(us),
		}.Put(req.Private[:])
		mad := make([]byte, cm.MADLen)
		req.Put(mad, 1)
		r.m.HandleMAD(0, from, mad)
		e, ok := r.m.NextEvent()
		if !ok {
			return 0
		}
		must(t, r.m.Reject(0, e.ID, cm.ReasonConsumer, nil, nil))
		r.m.NextMAD(mad)
		r.event(cm.EventTimewaitExit)
		return e.Listener
	}
	check := func(us, them string, want cm.ListenerID) {
		t.Helper()
		if got := ask(us, them); got != want {
			t.Errorf("%s went to %d, want %d", us, got, want)
		}
	}
	check("192.0.2.1", "192.0.2.2", exact)
	check("192.0.2.3", "192.0.2.2", v4)
	check("2001:db8::1", "2001:db8::2", v6)
	must(t, r.m.Unlisten(exact))
	check("192.0.2.1", "192.0.2.2", v4)
	must(t, r.m.Unlisten(v4))
	check("192.0.2.1", "192.0.2.2", any)
	must(t, r.m.Unlisten(v6))
	check("2001:db8::1", "2001:db8::2", any)
	must(t, r.m.Unlisten(any))
	check("2001:db8::1", "2001:db8::2", 0)
	if err := r.m.Unlisten(any); !errors.Is(err, cm.ErrUnknown) {
		t.Error(err)
	}
}

// TestPlainService takes requests to a service that is not one of rdma_cm: all of
// the private data is the application's.
func TestPlainService(t *testing.T) {
	r := newRig(t, cm.Config{})
	const plain cm.ServiceID = 0x1000000000000042
	_, err := r.m.Listen(cm.Listen{Service: plain, Transport: cm.TransportUC})
	must(t, err)
	req := r.req()
	req.ServiceID, req.Transport = plain, cm.TransportUC
	req.Private = [cm.PrivateREQ]byte{0: 1, 91: 2}
	req.Alternate.HopLimit = 3
	r.give(req)
	e := r.event(cm.EventConnectRequest)
	if len(e.Private) != 92 || e.Private[0] != 1 || e.Private[91] != 2 || e.IP.Dst.IsValid() ||
		e.Transport != cm.TransportUC {
		t.Errorf("event %+v", e)
	}
	must(t, r.m.Accept(r.now, e.ID, cm.Accept{}))
	r.want(theirTID, &cm.REP{
		LocalCommID: uint32(e.ID), RemoteCommID: theirID, Failover: 1, LocalCAGUID: ourGUID,
	})
}

// TestStale sends requests of a connection that is still there: under another ID
// from the same queue pair, and under the same ID from another one. The peer has
// lost it, so it is ended.
func TestStale(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*cm.REQ)
	}{
		{"same queue pair", func(q *cm.REQ) { q.LocalCommID++ }},
		{"same ID", func(q *cm.REQ) { q.LocalQPN++ }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, cm.Config{})
			id := r.accepted()
			req := r.req()
			tt.change(req)
			r.give(req)
			r.want(tidOf(id), ourDREQ(id))
			r.want(theirTID, ourREJ(0, req.LocalCommID, cm.SubjectREQ, cm.ReasonStaleConn))
			r.give(req) // the old one is not over yet
			r.want(theirTID, ourREJ(0, req.LocalCommID, cm.SubjectREQ, cm.ReasonStaleConn))
			r.give(theirDREP(id))
			r.event(cm.EventDisconnected)
			r.give(req) // in the time-wait
			r.want(theirTID, ourREJ(0, req.LocalCommID, cm.SubjectREQ, cm.ReasonStaleConn))
			r.pass(timewait)
			r.event(cm.EventTimewaitExit)
			r.give(req)
			r.event(cm.EventConnectRequest)
			r.counted(cm.StaleRejected, 3)
		})
	}
	t.Run("the same in time-wait", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		id := r.accepted()
		r.give(theirDREQ(id))
		r.want(theirTID, ourDREP(id))
		r.event(cm.EventDisconnected)
		r.give(r.req())
		r.want(theirTID, ourREJ(0, theirID, cm.SubjectREQ, cm.ReasonStaleConn))
		r.ends()
	})
	t.Run("another host with the same numbers", func(t *testing.T) {
		r := newRig(t, cm.Config{})
		r.accepted()
		r.path.Remote[15]++
		req := r.req()
		cm.IPHeader{
			Src: netip.AddrPortFrom(r.path.Remote.Addr(), theirPort), Dst: ourAddr,
		}.Put(req.Private[:])
		r.give(req)
		r.event(cm.EventConnectRequest)
		r.silent()
	})
}

// TestStaleAnswer is answered by a queue pair that is still connected to us.
func TestStaleAnswer(t *testing.T) {
	r := newRig(t, cm.Config{})
	old := r.connected()
	id, req := r.connect()
	flow := r.path.FlowLabel
	answer := rep(id)
	r.give(answer)
	r.want(tidOf(old), ourDREQ(old))
	r.path.FlowLabel = 0
	r.want(theirTID, ourREJ(id, theirID, cm.SubjectREP, cm.ReasonStaleConn))
	r.give(theirDREP(old))
	r.event(cm.EventDisconnected)
	r.path.FlowLabel = flow
	r.pass(reqTime) // the answer may be right next time
	r.event(cm.EventTimewaitExit)
	r.want(tidOf(id), req)
	r.give(answer)
	r.event(cm.EventConnectResponse)
}

// TestFlood sends more requests than the machine holds.
func TestFlood(t *testing.T) {
	r := newRig(t, cm.Config{MaxHalfOpen: 8})
	l, err := r.m.Listen(cm.Listen{Service: service, Backlog: 4})
	must(t, err)
	_, err = r.m.Listen(cm.Listen{Service: service + 1, Backlog: 100})
	must(t, err)
	ask := func(n uint32, s cm.ServiceID) {
		req := r.req()
		req.LocalCommID, req.LocalQPN, req.ServiceID = n, 1000+n, s
		r.give(req)
	}
	var ids []cm.ID
	for n := range uint32(4) {
		ask(n, service)
		e := r.event(cm.EventConnectRequest)
		if e.Listener != l {
			t.Errorf("listener %d", e.Listener)
		}
		ids = append(ids, e.ID)
	}
	dropped := func(id cm.ID) {
		t.Helper()
		if e := r.event(cm.EventUnreachable); e.ID != id || e.Reason != cm.ReasonNoResources {
			t.Errorf("event %+v, want the end of %d", e, id)
		}
	}
	ask(4, service) // takes the place of the first
	dropped(ids[0])
	r.event(cm.EventTimewaitExit)
	r.event(cm.EventConnectRequest)
	r.counted(cm.BacklogDropped, 1)
	if err := r.m.Accept(r.now, ids[0], cm.Accept{}); !errors.Is(err, cm.ErrUnknown) {
		t.Error(err)
	}
	// Accepted, it leaves the backlog, and makes no room for those that wait.
	must(t, r.m.Accept(r.now, ids[1], cm.Accept{}))
	r.m.NextMAD(make([]byte, cm.MADLen))
	for n := range uint32(5) {
		ask(100+n, service+1)
		r.event(cm.EventConnectRequest)
	}
	ask(105, service+1)
	dropped(ids[2])
	r.event(cm.EventTimewaitExit)
	r.event(cm.EventConnectRequest)
	r.counted(cm.HalfOpenDropped, 1)
	r.silent()
	for n := range uint32(1000) {
		ask(1000+n, service+1)
		if usage := r.m.Usage(); usage.HalfOpen > 9 || usage.Connections > 9 {
			t.Fatalf("%+v", usage)
		}
		for ok := true; ok; _, ok = r.m.NextEvent() {
		}
	}
	r.counted(cm.HalfOpenDropped, 1001)
	// One that is answered at once gets through.
	ask(9999, service+1)
	r.event(cm.EventUnreachable)
	r.event(cm.EventTimewaitExit)
	id := r.event(cm.EventConnectRequest).ID
	must(t, r.m.Accept(r.now, id, cm.Accept{}))
	r.m.NextMAD(make([]byte, cm.MADLen))
	r.give(&cm.RTU{LocalCommID: 9999, RemoteCommID: uint32(id)})
	r.event(cm.EventEstablished)
}

// TestFull lets the machine hold as much as it may.
func TestFull(t *testing.T) {
	r := newRig(t, cm.Config{MaxConnections: 2, MaxOutbox: 2})
	r.listen()
	id, _ := r.connect()
	r.connect()
	c := cm.Connect{Path: r.path, Service: service, PathMTU: wire.MTU1024}
	if _, err := r.m.Connect(r.now, c); !errors.Is(err, cm.ErrFull) {
		t.Error(err)
	}
	flow := r.path.FlowLabel
	r.path.FlowLabel = 0
	r.give(r.req())
	r.want(theirTID, ourREJ(0, theirID, cm.SubjectREQ, cm.ReasonNoResources))
	r.pass(reqTime)
	r.give(&cm.REP{RemoteCommID: 99}) // no room for the answer
	r.counted(cm.OutboxFull, 1)
	r.path.FlowLabel = flow
	for range 2 {
		if _, ok := r.m.NextMAD(make([]byte, cm.MADLen)); !ok {
			t.Error("nothing is sent")
		}
	}
	r.silent()
	r.give(theirREJ(id, cm.ReasonConsumer))
	r.event(cm.EventRejected)
	r.event(cm.EventTimewaitExit)
	r.connect()
}
