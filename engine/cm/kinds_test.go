package cm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// pair accepts the one connection that another host makes.
func pair(
	t *testing.T, l *cm.Listener, from *host, dial, accept cm.Setup,
) (active, passive *cm.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	type result struct {
		conn *cm.Conn
		err  error
	}
	accepted := make(chan result, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err != nil {
			accepted <- result{nil, err}
			return
		}
		c, err := r.Accept(ctx, accept)
		accepted <- result{c, err}
	}()
	active, err := from.manager.Dial(ctx, l.Addr(), dial)
	must(t, err)
	got := <-accepted
	must(t, got.err)
	return active, got.conn
}

// TestExtensions: both ends use what both offer.
func TestExtensions(t *testing.T) {
	const all = roce.ExtSelectiveRepeat | roce.ExtReorderWindow
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	l, err := b.manager.Listen(netip.AddrPortFrom(b.v4, 1))
	must(t, err)
	for _, tt := range []struct{ active, passive, want roce.Extensions }{
		{0, 0, 0},
		{all, 0, 0},
		{0, all, 0},
		{all, all, all},
		{all, roce.ExtSelectiveRepeat, roce.ExtSelectiveRepeat},
		{roce.ExtSelectiveRepeat, roce.ExtReorderWindow, 0},
	} {
		dial, accept := a.setup(), b.setup()
		dial.Init.Extensions, accept.Init.Extensions = tt.active, tt.passive
		c, d := pair(t, l, a, dial, accept)
		if c.Extensions() != tt.want || d.Extensions() != tt.want {
			t.Errorf("%s and %s: %s and %s, want %s", tt.active, tt.passive, c.Extensions(),
				d.Extensions(), tt.want)
		}
		c.Close()
		over(t, d.Done())
		d.Close()
	}
}

// TestExtensionsRequired: an end that must have extensions has them, or there is no
// connection and both ends learn why. A peer that offers none is as any program on librdmacm.
func TestExtensionsRequired(t *testing.T) {
	const all = roce.ExtSelectiveRepeat | roce.ExtReorderWindow
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	l, err := b.manager.Listen(netip.AddrPortFrom(b.v4, 1))
	must(t, err)
	for _, tt := range []struct {
		active, passive           roce.Extensions // offered
		activeMust, passiveMust   roce.Extensions
		activeKnows, passiveKnows error
	}{
		{all, all, all, all, nil, nil},
		{all, all, roce.ExtSelectiveRepeat, 0, nil, nil},
		{all, 0, roce.ExtSelectiveRepeat, 0, cm.ErrExtensions, cm.ErrExtensions},
		{0, all, 0, roce.ExtSelectiveRepeat, cm.ErrExtensions, cm.ErrExtensions},
		{all, roce.ExtReorderWindow, all, 0, cm.ErrExtensions, cm.ErrExtensions},
		{0, all, all, 0, roce.ErrInvalid, nil}, // required and not offered: nobody is asked
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		dial, accept := a.setup(), b.setup()
		dial.Init.Extensions, dial.Require = tt.active, tt.activeMust
		accept.Init.Extensions, accept.Require = tt.passive, tt.passiveMust
		accepted := make(chan error, 1)
		if errors.Is(tt.activeKnows, roce.ErrInvalid) {
			accepted <- nil
		} else {
			go func() {
				r, err := l.Accept(ctx)
				if err == nil {
					var d *cm.Conn
					if d, err = r.Accept(ctx, accept); err == nil {
						err = d.Close()
					}
				}
				accepted <- err
			}()
		}
		c, err := a.manager.Dial(ctx, l.Addr(), dial)
		if !errors.Is(err, tt.activeKnows) { // nil is nil alone
			t.Errorf("%+v: the active end has %v", tt, err)
		}
		if err := <-accepted; !errors.Is(err, tt.passiveKnows) {
			t.Errorf("%+v: the passive end has %v", tt, err)
		}
		if c != nil {
			must(t, c.Close())
		}
		cancel()
	}
	must(t, l.Close())
	a.forgotten(t)
	b.forgotten(t)
}

// TestFlowControl: an end counts receives unless they are shared, and says so; its peer
// keeps to that.
func TestFlowControl(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	l, err := b.manager.Listen(netip.AddrPortFrom(b.v4, 1))
	must(t, err)
	srq, err := b.dev.CreateSRQ(b.pd, engine.SRQInit{MaxWR: 4, MaxSGE: 1})
	must(t, err)
	for _, shared := range []bool{false, true} {
		accept := b.setup()
		if shared {
			accept.Init.SRQ, accept.Prepare = srq, nil
		}
		c, d := pair(t, l, a, a.setup(), accept)
		if got := c.QP().Query().NoFlowControl; got != shared {
			t.Errorf("the receives are shared (%v), and count for nothing (%v)", shared, got)
		}
		if d.QP().Query().NoFlowControl {
			t.Error("the active end counts its receives and is not heeded")
		}
		c.Close()
		over(t, d.Done())
		d.Close()
		over(t, d.Released())
	}
	must(t, srq.Close())
}

// TestXRC connects as the XRC examples of librdmacm do: the end that receives tells in the
// private data of its REP which shared receive queue a message is for.
func TestXRC(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	domain := b.dev.OpenXRCD()
	srq, err := b.dev.CreateSRQ(b.pd, engine.SRQInit{
		MaxWR: 4, MaxSGE: 1, XRCD: domain, CQ: b.cq,
	})
	must(t, err)
	must(t, srq.PostRecv(&roce.RecvWR{WRID: 9, SGList: []roce.SGE{b.mr.SGE(0, 64)}}))
	at := netip.AddrPortFrom(b.v4, 1)
	rc, err := b.manager.Listen(at)
	must(t, err)
	l, err := b.manager.ListenXRC(at) // another port space
	must(t, err)
	dial := cm.Setup{PD: a.pd, AckTimeout: easyTimeout, Init: engine.QPInit{
		Type: roce.TypeXRCSend, SendCQ: a.cq, MaxSendWR: 4, MaxSendSGE: 1, SignalAll: true,
	}}
	accept := cm.Setup{
		PD: b.pd, Init: engine.QPInit{Type: roce.TypeXRCRecv, XRCD: domain},
		Private: binary.BigEndian.AppendUint32(nil, srq.SRQN()),
	}
	c, d := pair(t, l, a, dial, accept)
	copy(a.mr.Bytes(), "by XRC")
	must(t, c.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{a.mr.SGE(0, 6)},
		RemoteSRQN: binary.BigEndian.Uint32(c.Private()),
	}))
	var wcs [1]roce.Completion
	for _, cq := range []*engine.CQ{a.cq, b.cq} {
		if _, err := cq.Wait(within(t, testTimeout), wcs[:]); err != nil {
			t.Fatal(err)
		}
		if wcs[0].Status != roce.StatusSuccess {
			t.Fatal(wcs[0].Status)
		}
	}
	if wcs[0].WRID != 9 || string(b.mr.Bytes()[:6]) != "by XRC" {
		t.Errorf("%+v, %q", wcs[0], b.mr.Bytes()[:6])
	}
	c.Close()
	over(t, d.Done())
	d.Close()
	over(t, d.Released())

	// An end of another kind is refused, here or by the other one.
	if _, err := a.manager.Dial(within(t, testTimeout), at, accept); err == nil {
		t.Error("a queue pair that only receives has dialled")
	}
	rc.Close()
	if _, err := a.manager.Dial(within(t, testTimeout), at, a.setup()); err == nil {
		t.Error("a listener for XRC took an RC connection")
	}
	must(t, srq.Close())
	must(t, domain.Close())
}

// TestUC connects queue pairs that acknowledge nothing, at a service ID that is none of rdma_cm,
// and hangs up as with RC. A listener for one transport takes no other.
func TestUC(t *testing.T) {
	const service = 0x4713 << 32
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	l, err := b.manager.ListenUC(b.v4, service, 0)
	must(t, err)
	rc, err := b.manager.ListenService(b.v4, service+1, 0)
	must(t, err)
	dial, accept := a.setup(), b.setup()
	dial.Init.Type, accept.Init.Type = roce.TypeUC, roce.TypeUC
	ctx := within(t, testTimeout)
	accepted := make(chan *cm.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := l.Accept(ctx); err == nil {
			if d, err := r.Accept(ctx, accept); err == nil {
				accepted <- d
			}
		}
	}()
	c, err := a.manager.DialService(ctx, b.v4, service, dial)
	must(t, err)
	d := <-accepted
	if d == nil {
		t.Fatal("not accepted")
	}
	say(t, a, b, c, "without an acknowledge")
	say(t, b, a, d, "and back")
	must(t, c.Close())
	over(t, d.Done())
	must(t, d.Close())
	for id, setup := range map[rcm.ServiceID]cm.Setup{service: a.setup(), service + 1: dial} {
		_, err := a.manager.DialService(ctx, b.v4, id, setup)
		var rejected *cm.RejectedError
		if !errors.As(err, &rejected) || rejected.Reason != rcm.ReasonInvalidTransport {
			t.Errorf("service 0x%x takes another transport: %v", uint64(id), err)
		}
	}
	dial.Keepalive = time.Second
	if _, err := a.manager.DialService(ctx, b.v4, service, dial); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a keepalive of UC: %v", err)
	}
	must(t, rc.Close())
}
