package cm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/roce/wire"
)

// say sends a few bytes over a connection and tests that they arrive. The connection has
// easyTimeout, if there are acknowledges: else its peer has 17 ms, for all retries together.
func say(t *testing.T, from, to *host, c *cm.Conn, words string) {
	t.Helper()
	n := copy(from.mr.Bytes(), words)
	must(t, c.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{from.mr.SGE(0, n)},
	}))
	for _, h := range []*host{from, to} {
		var wcs [1]roce.Completion
		if _, err := h.cq.Wait(within(t, testTimeout), wcs[:]); err != nil {
			t.Fatal(err)
		}
		if wcs[0].Status != roce.StatusSuccess {
			t.Fatalf("completion %+v", wcs[0])
		}
	}
	if got := to.mr.Bytes()[2048:][:n]; string(got) != words {
		t.Errorf("%q arrived, want %q", got, words)
	}
}

// TestConnect connects over both families, talks both ways and hangs up from either
// end.
func TestConnect(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for _, v6 := range []bool{false, true} {
			for _, activeEnds := range []bool{false, true} {
				name := map[bool]string{false: "IPv4", true: "IPv6"}[v6]
				if direct {
					name += ", direct"
				}
				if activeEnds {
					name += ", the active end hangs up"
				}
				t.Run(name, func(t *testing.T) {
					_, hosts := newWorld(t, quick, engine.Options{Direct: direct})
					testConnect(t, hosts, v6, activeEnds)
				})
			}
		}
	}
}

func testConnect(t *testing.T, hosts [2]*host, v6, activeEnds bool) {
	a, b := hosts[0], hosts[1]
	from, to := a.v4, netip.AddrPortFrom(b.v4, 4791)
	if v6 {
		from, to = a.v6, netip.AddrPortFrom(b.v6, 4791)
	}
	s := b.serve(t, netip.AddrPortFrom(netip.Addr{}, 4791))
	setup := a.setup()
	setup.Private, setup.InitiatorDepth, setup.ResponderRes = []byte("ping"), 20, 3
	setup.AckTimeout = easyTimeout
	c, err := a.manager.Dial(within(t, testTimeout), to, setup)
	must(t, err)
	d := s.conn(t)
	if c.RemoteAddr() != to || c.LocalAddr().Addr() != from ||
		d.RemoteAddr() != c.LocalAddr() || d.LocalAddr() != to {
		t.Errorf("%s to %s, seen as %s to %s", c.LocalAddr(), c.RemoteAddr(), d.RemoteAddr(),
			d.LocalAddr())
	}
	want := append([]byte("ping"), make([]byte, 200)...)
	if !bytes.Equal(d.Private(), want[:56]) || !bytes.Equal(c.Private(), want[:196]) {
		t.Errorf("private data %q and %q", d.Private(), c.Private())
	}
	x, y := c.QP().Query(), d.QP().Query()
	if x.State != roce.StateRTS || y.State != roce.StateRTS || x.DestQPN != d.QP().QPN() ||
		y.DestQPN != c.QP().QPN() || x.SQPSN != y.RQPSN || x.RQPSN != y.SQPSN ||
		x.MaxRdAtomic != 16 || y.MaxDestRdAtomic != 16 || x.MaxDestRdAtomic != 3 ||
		y.MaxRdAtomic != 3 || x.PathMTU != y.PathMTU {
		t.Errorf("attributes %+v and %+v", x, y)
	}
	say(t, a, b, c, "there")
	say(t, b, a, d, "and back")
	first, second := d, c
	if activeEnds {
		first, second = c, d
	}
	first.Close()
	if err := first.Err(); !errors.Is(err, cm.ErrClosed) {
		t.Error(err)
	}
	over(t, second.Done())
	if err := second.Err(); !errors.Is(err, cm.ErrHungUp) {
		t.Error(err)
	}
	if st := second.QP().State(); st != roce.StateErr {
		t.Errorf("the queue pair is in %s", st)
	}
	first.Close()
	over(t, first.Released())
	second.Close()
	over(t, second.Released())
	a.forgotten(t)
	b.forgotten(t)
	s.Close()
}

// TestAckDelay: the peer is told how long our acknowledgements may take, what the
// device says, and waits accordingly longer.
func TestAckDelay(t *testing.T) {
	o := cm.Options{Machine: rcm.Config{ResponseTimeout: 17, PacketLifeTime: 14}}
	_, hosts := newWorld(t, o, engine.Options{})
	a, b := hosts[0], hosts[1]
	if delay := b.dev.Query().CAAckDelay; delay != 15 {
		t.Fatalf("the device says %d; the numbers below are of 15", delay)
	}
	s := b.serve(t, netip.AddrPortFrom(b.v4, 1))
	c, err := a.manager.Dial(within(t, testTimeout), netip.AddrPortFrom(b.v4, 1), a.setup())
	must(t, err)
	// Twice the life is 15, our own delay makes it 16, the peer's 17.
	if timeout := c.QP().Query().Timeout; timeout != 17 {
		t.Errorf("timeout %d", timeout)
	}
	s.conn(t).Close()
	c.Close()
}

// TestOwnQP connects queue pairs that the caller made, which stay the caller's.
func TestOwnQP(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	s := b.serve(t, netip.AddrPortFrom(b.v4, 1))
	qp, err := a.dev.CreateQP(a.pd, a.setup().Init)
	must(t, err)
	c, err := a.manager.Dial(within(t, testTimeout), netip.AddrPortFrom(b.v4, 1), cm.Setup{QP: qp})
	must(t, err)
	d := s.conn(t)
	d.Close()
	over(t, c.Done())
	c.Close()
	over(t, c.Released())
	over(t, d.Released()) // else the peer takes it for the same connection
	if st := qp.State(); st != roce.StateErr {
		t.Error(st)
	}
	// It can be connected again.
	must(t, qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState))
	c, err = a.manager.Dial(within(t, testTimeout), netip.AddrPortFrom(b.v4, 1), cm.Setup{
		QP: qp, AckTimeout: easyTimeout,
	})
	must(t, err)
	say(t, a, b, c, "again")
	s.conn(t).Close()
	c.Close()
	qp.Close()
}

// rejected returns what a refusal says.
func rejected(t *testing.T, err error) *cm.RejectedError {
	t.Helper()
	var r *cm.RejectedError
	if !errors.As(err, &r) {
		t.Fatalf("%v, want a refusal", err)
	}
	return r
}

// TestRefusals is refused in each way.
func TestRefusals(t *testing.T) {
	network, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	ctx := within(t, testTimeout)
	// The second REQ is repeated, and the repetition comes when it has been refused.
	late := sim.Rule{From: a.mac, DestQP: 1, Nth: 3, Delay: 50 * roce.Millisecond}
	must(t, network.SetRules(late))
	port := func(n uint16) netip.AddrPort { return netip.AddrPortFrom(b.v4, n) }
	_, err := a.manager.Dial(ctx, port(1), a.setup())
	if r := rejected(t, err); r.Reason != rcm.ReasonInvalidServiceID {
		t.Error(r)
	}
	l, err := b.manager.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 2))
	must(t, err)
	if _, err := b.manager.Listen(l.Addr()); !errors.Is(err, rcm.ErrInUse) {
		t.Error(err)
	}
	// A repetition of a REQ that comes when that was refused is a request like any other, so
	// all that come are answered in the same way.
	response := func(f func(*cm.Request)) error {
		answering, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				r, err := l.Accept(answering)
				if err != nil {
					return
				}
				f(r)
			}
		}()
		_, err := a.manager.Dial(ctx, port(2), a.setup())
		cancel()
		<-done
		return err
	}
	err = response(func(r *cm.Request) {
		waits(t, func() bool { return a.counted("cm_tx_retries_req") > 0 })
		if err := r.Reject(make([]byte, 149)); !errors.Is(err, rcm.ErrInvalid) {
			t.Error(err)
		}
		if err := r.Reject([]byte("no")); err != nil {
			t.Error(err)
		}
		if err := r.Reject(nil); err == nil {
			t.Error("refused twice")
		}
		if _, err := r.Accept(ctx, b.setup()); err == nil {
			t.Error("accepted after all")
		}
	})
	if r := rejected(t, err); r.Reason != rcm.ReasonConsumer || string(r.Private[:3]) != "no\x00" {
		t.Error(r)
	}
	waits(t, func() bool { return b.counted("cm_rx_msgs_req") >= 3 })
	err = response(func(r *cm.Request) {
		setup := b.setup()
		setup.Prepare = func(*engine.QP) error { return errors.New("out of paper") }
		if _, err := r.Accept(ctx, setup); err == nil || err.Error() != "out of paper" {
			t.Error(err)
		}
	})
	if r := rejected(t, err); r.Reason != rcm.ReasonNoResources {
		t.Error(r)
	}
	l.Close()
	a.forgotten(t)
	b.forgotten(t)
}

// TestMTUChanges changes the MTU of an interface under a manager: it takes the requests
// that the interface has room for at the time.
func TestMTUChanges(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	for _, tt := range []struct {
		mtu  int64
		path wire.MTU
		want rcm.Reason
	}{
		{600, wire.MTU512, rcm.ReasonNone},
		{600, wire.MTU1024, rcm.ReasonInvalidMTU},
		{4200, wire.MTU4096, rcm.ReasonNone},
		{300, wire.MTU256, rcm.ReasonInvalidMTU},
	} {
		b.around.mtu.Store(tt.mtu)
		a.around.mtu.Store(max(tt.mtu, 1500))
		setup := a.setup()
		setup.PathMTU = tt.path
		c, err := a.manager.Dial(within(t, testTimeout), to, setup)
		if tt.want == rcm.ReasonNone {
			must(t, err)
			s.conn(t).Close()
			c.Close()
			continue
		}
		var refused *cm.RejectedError
		if !errors.As(err, &refused) || refused.Reason != tt.want {
			t.Errorf("MTU %d, path MTU %d: %v", tt.mtu, tt.path.Bytes(), err)
		}
	}
}

// TestListenerCloses closes a listener for which a request waits.
func TestListenerCloses(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	ctx, to := within(t, testTimeout), netip.AddrPortFrom(b.v4, 2)
	l, err := b.manager.Listen(to)
	must(t, err)
	waiting := make(chan error)
	go func() {
		_, err := a.manager.Dial(ctx, to, a.setup())
		waiting <- err
	}()
	for b.manager.Usage().HalfOpen == 0 && ctx.Err() == nil {
		b.dev.Progress()
	}
	l.Close()
	l.Close()
	if r := rejected(t, <-waiting); r.Reason != rcm.ReasonInvalidServiceID {
		t.Error(r)
	}
	if _, err := l.Accept(ctx); !errors.Is(err, cm.ErrClosed) {
		t.Error(err)
	}
	a.forgotten(t)
	b.forgotten(t)
}

// TestWrongDials are refused before anything is sent.
func TestWrongDials(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	ud, err := a.dev.CreateQP(a.pd, engine.QPInit{Type: roce.TypeUD, SendCQ: a.cq, RecvCQ: a.cq})
	must(t, err)
	with := func(change func(*cm.Setup)) cm.Setup { s := a.setup(); change(&s); return s }
	for i, tt := range []struct {
		to    netip.AddrPort
		setup cm.Setup
		want  error
	}{
		{netip.AddrPort{}, a.setup(), roce.ErrInvalid},
		{netip.AddrPortFrom(netip.IPv4Unspecified(), 1), a.setup(), roce.ErrInvalid},
		{netip.MustParseAddrPort("224.0.0.1:1"), a.setup(), roce.ErrInvalid},
		{to, with(func(s *cm.Setup) { s.LocalAddr = b.v4 }), cm.ErrNoAddress},
		{to, with(func(s *cm.Setup) { s.LocalAddr = a.v6 }), cm.ErrNoAddress},
		{to, with(func(s *cm.Setup) { s.Init.Type = roce.TypeUC }), roce.ErrInvalid},
		{to, with(func(s *cm.Setup) { s.PD = nil }), roce.ErrInvalid},
		{to, with(func(s *cm.Setup) { s.Private = make([]byte, 57) }), rcm.ErrInvalid},
		{to, cm.Setup{QP: ud}, roce.ErrInvalid},
		{netip.MustParseAddrPort("192.0.2.99:1"), a.setup(), engine.ErrNoNeighbour},
	} {
		c, err := a.manager.Dial(within(t, testTimeout), tt.to, tt.setup)
		if !errors.Is(err, tt.want) || c != nil || strings.ContainsAny(fmt.Sprint(err), "[]") {
			t.Errorf("row %d: %v, want %v", i, err, tt.want)
		}
	}
	if _, err := cm.Open(a.dev, quick); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a second manager: %v", err)
	}
	if _, err := cm.Open(a.dev, cm.Options{Receives: -1}); !errors.Is(err, roce.ErrInvalid) {
		t.Error(err)
	}
	a.forgotten(t)
}

// TestNobodyAnswers dials through a wire that takes everything.
func TestNobodyAnswers(t *testing.T) {
	network, hosts := newWorld(t, hasty, engine.Options{})
	a, b := hosts[0], hosts[1]
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	to := netip.AddrPortFrom(b.v4, 1)
	_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	if !errors.Is(err, cm.ErrTimeout) {
		t.Error(err)
	}
	_, err = a.manager.Lookup(within(t, testTimeout), a.pd, to, nil)
	if !errors.Is(err, cm.ErrTimeout) {
		t.Error(err)
	}
	if n := a.manager.Counters()[rcm.Timeouts]; n != 2 {
		t.Errorf("%d timeouts", n)
	}
	// Those that do not wait so long.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.manager.Dial(ctx, to, a.setup()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := a.manager.Lookup(ctx, a.pd, to, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a.forgotten(t)
	b.forgotten(t)
}

// TestDatagrams looks up a datagram service and sends to it.
func TestDatagrams(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	ctx := within(t, testTimeout)
	ud := func(h *host) *engine.QP {
		qp, err := h.dev.CreateQP(h.pd, engine.QPInit{
			Type: roce.TypeUD, SendCQ: h.cq, RecvCQ: h.cq,
		})
		must(t, err)
		must(t, qp.Start(rcm.QKeyUDP))
		return qp
	}
	from, to := ud(a), ud(b)
	must(t, to.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 100)}}))
	rc, err := b.dev.CreateQP(b.pd, b.setup().Init)
	must(t, err)
	if _, err := b.manager.ListenDatagram(netip.AddrPort{}, cm.Datagrams{QP: rc}); !errors.Is(err,
		roce.ErrInvalid) {
		t.Error(err)
	}
	l, err := b.manager.ListenDatagram(netip.AddrPortFrom(netip.Addr{}, 9), cm.Datagrams{
		QP: to, Answer: func(from cm.Asker, private []byte) ([]byte, bool) {
			known := from.Addr.Addr() == a.v6 && from.Via.MAC == a.dev.Port().MAC
			if known && string(private[:6]) == "please" {
				return []byte("here"), true
			}
			return []byte("no"), false
		},
	})
	must(t, err)
	port := netip.AddrPortFrom(b.v6, 9)
	_, err = a.manager.Lookup(ctx, a.pd, port, []byte("hey"))
	if r := rejected(t, err); r.Status != rcm.SIDRReject || string(r.Private[:3]) != "no\x00" {
		t.Error(r)
	}
	peer, err := a.manager.Lookup(ctx, a.pd, port, []byte("please"))
	must(t, err)
	if peer.QPN != to.QPN() || peer.QKey != rcm.QKeyUDP || string(peer.Private[:5]) != "here\x00" {
		t.Errorf("%+v", peer)
	}
	must(t, from.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{a.mr.SGE(0, 10)}, AH: peer.AH,
		RemoteQPN: peer.QPN, RemoteQKey: peer.QKey,
	}))
	var wcs [1]roce.Completion
	_, err = b.cq.Wait(ctx, wcs[:])
	must(t, err)
	if wcs[0].ByteLen != 50 || wcs[0].SrcQP != from.QPN() {
		t.Errorf("completion %+v", wcs[0])
	}
	l.Close()
	_, err = a.manager.Lookup(ctx, a.pd, port, []byte("please"))
	if r := rejected(t, err); r.Status != rcm.SIDRUnsupported {
		t.Error(r)
	}
	a.forgotten(t)
	b.forgotten(t)
}
