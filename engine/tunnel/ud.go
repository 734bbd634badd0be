package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"xroce/engine/cm"
)

// answerLookup answers who asks for our queue pair, and tells it to peers alone. A peer that was
// not there before, or began anew, is looked for at once.
func (t *Tunnel) answerLookup(who cm.Asker, private []byte) ([]byte, bool) {
	from := who.Addr.Addr()
	p, their, err := t.admit(from, who.Via, private)
	if err != nil {
		return t.refusal(from, err), false
	}
	answer, _, err := t.answer(p, private)
	if err != nil {
		t.countsOf(p).drop(dropKey)
		return answer, false
	}
	if err := t.enroll(p); err != nil {
		return t.refusal(from, err), false
	}
	if p.instance.Load() != their.instance {
		p.wake()
	}
	return answer, true
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
			pause = min(t.config.refresh, t.config.Rekey)
		}
		if !p.pause(ctx, 0, pause) {
			t.leave(p)
			return
		}
		if err == nil {
			pause = seekPause
		}
	}
}

// lookUp finds a peer and makes the ways to it, with a proof of our address if it wants one.
func (t *Tunnel) lookUp(ctx context.Context, p *peer) error {
	p.asking.Lock() // what is asked first is to come first
	defer p.asking.Unlock()
	err := t.lookUpOnce(ctx, p)
	if errors.Is(err, errCookie) {
		err = t.lookUpOnce(ctx, p)
	}
	return err
}

// lookUpOnce asks a peer once.
func (t *Tunnel) lookUpOnce(ctx context.Context, p *peer) error {
	to := netip.AddrPortFrom(p.addr, t.config.Port)
	if err := t.checkTag(p.addr); err != nil {
		return err
	}
	ask, state, err := t.ask(t.greeting(p), p.cookie.Load())
	if err != nil {
		return err
	}
	found, err := t.manager.LookupIn(ctx, t.pd, to, t.config.PKeyIndex, ask)
	if err != nil {
		return t.explain(p, err)
	}
	their, sealer, err := t.answered(state, found.Private)
	if err != nil {
		return err
	}
	if t.config.Over == OverNative {
		w, err := t.nativeWay(found.AH.Path(), &their)
		if err != nil {
			return err
		}
		t.in.know(p, w, their.mac)
		for i := range p.ways {
			p.ways[i].Store(w)
		}
		t.found(p, their.instance) // not before there is a way
		return nil
	}
	ah, err := t.marked(found.AH)
	if err != nil {
		return err
	}
	for i, l := range t.lanes {
		w := t.newWay(l.qp, &their)
		w.ah, w.qpn, w.qkey = ah, found.QPN, found.QKey
		w.sealer = sealer
		w.whole = false // what is lost would be all of it
		p.ways[i].Store(w)
	}
	t.found(p, their.instance)
	t.refreshGroup()
	return nil
}

// found notes that a peer is there.
func (t *Tunnel) found(p *peer, instance uint64) {
	if p.instance.Swap(instance) != instance {
		p.counts.connects.Add(1)
		t.config.Logger.Info("peer found", "peer", p.addr.String())
	}
}

// leave ends the ways to a peer.
func (t *Tunnel) leave(p *peer) {
	if p.instance.Swap(0) != 0 {
		t.config.Logger.Warn("peer lost", "peer", p.addr.String())
	}
	for i := range p.ways {
		p.ways[i].Store(nil)
	}
	if t.config.Over == OverNative {
		t.in.know(p, nil, [6]byte{})
	}
	t.refreshGroup()
	t.forget(p)
}

// explain finds what the peer says of itself in its refusal, and notes the cookie in it.
func (t *Tunnel) explain(p *peer, err error) error {
	var rejected *cm.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	their, parse := parseHello(rejected.Private)
	if parse != nil {
		return err
	}
	if differ := t.hello.agrees(&their); differ != nil {
		return differ
	}
	if cookie := cookieOf(rejected.Private, their.len()); cookie != 0 {
		p.cookie.Store(cookie)
		return errCookie
	}
	switch {
	case their.flags&helloFull != 0:
		err = errRoom
	case t.config.Key != nil:
		err = fmt.Errorf("%w: the peer refuses it, or our address: %w", ErrKey, err)
	}
	return &refusedError{err, their.instance}
}
