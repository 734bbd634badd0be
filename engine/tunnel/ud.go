package tunnel

import (
	"context"
	"net/netip"

	"xroce/engine/cm"
)

// allow says whether somebody who asks for our queue pair is a peer. A peer that was not there
// before, or began anew, is looked for at once.
func (t *Tunnel) allow(from netip.AddrPort, private []byte) bool {
	p, their, err := t.admit(from.Addr(), private)
	if err != nil {
		return false
	}
	if p.instance.Load() != their.instance {
		p.wake()
	}
	return true
}

// seekDatagrams finds a peer's queue pair, and looks again now and then: a peer that began anew
// has another one, and one that has gone does not say so.
func (t *Tunnel) seekDatagrams(ctx context.Context, p *peer) {
	var told told
	pause := seekPause
	for {
		seeking, cancel := context.WithTimeout(ctx, seekTime)
		err := t.lookUp(seeking, p)
		cancel()
		switch {
		case ctx.Err() != nil:
			t.leave(p)
			return
		case err != nil:
			t.leave(p)
			told.tell(t, p, err)
			pause = min(2*pause, seekPauseTo)
		default:
			told.last = ""
			pause = refresh
		}
		if !p.pause(ctx, pause) {
			t.leave(p)
			return
		}
		if err == nil {
			pause = seekPause
		}
	}
}

// lookUp finds a peer and makes the ways to it.
func (t *Tunnel) lookUp(ctx context.Context, p *peer) error {
	to := netip.AddrPortFrom(p.addr, t.config.Port)
	found, err := t.manager.Lookup(ctx, t.pd, to, t.hello.put())
	if err != nil {
		return explain(t, err)
	}
	their, err := parseHello(found.Private)
	if err == nil {
		err = t.hello.agrees(&their)
	}
	if err != nil {
		return err
	}
	if p.instance.Swap(their.instance) != their.instance {
		p.counts.connects.Add(1)
		t.config.Logger.Info("peer found", "peer", p.addr.String())
	}
	for i, l := range t.lanes {
		w := t.newWay(l.qp, &their)
		w.ah, w.qpn, w.qkey = found.AH, found.QPN, found.QKey
		w.whole = false // what is lost would be all of it
		p.ways[i].Store(w)
	}
	return nil
}

// leave ends the ways to a peer.
func (t *Tunnel) leave(p *peer) {
	if p.instance.Swap(0) != 0 {
		t.config.Logger.Warn("peer lost", "peer", p.addr.String())
	}
	for i := range p.ways {
		p.ways[i].Store(nil)
	}
	t.forget(p)
}

// explain finds what the peer says of itself in its refusal.
func explain(t *Tunnel, err error) error {
	var rejected *cm.RejectedError
	if !asRejected(err, &rejected) {
		return err
	}
	their, parse := parseHello(rejected.Private)
	if parse != nil {
		return err
	}
	if differ := t.hello.agrees(&their); differ != nil {
		return differ
	}
	return err
}
