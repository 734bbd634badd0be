package tunnel

import (
	"context"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/encap/seal"
)

// sendSealed sends a datagram to a peer, each packet sealed. It is copied into the packet by
// that, once.
func (l *lane) sendSealed(ctx context.Context, p *peer, w *way, d *datagram, c *encap.Cut) {
	packets := c.Packets()
	for range packets {
		if !l.room(ctx, w) {
			p.counts.drop(dropFull)
			return
		}
		from := &l.small
		if len(d.b) > l.longest {
			from = &l.large
		}
		s, err := l.take(ctx, from)
		if err != nil {
			return
		}
		n, reason := w.sealer.Seal(s.b, c.Next(s.b[seal.HeaderLen:]), uint32(d.hint))
		if reason != seal.OK {
			l.release(s)
			p.counts.refuseSeal(reason)
			p.wake()
			return
		}
		i, err := l.begin(ctx, s, w)
		l.release(s)
		if err != nil {
			return
		}
		l.sges[0] = l.mr.SGE(s.off, n)
		if err := l.post(w, i, l.sges[:1], d); err != nil {
			l.finish(i)
			p.counts.drop(dropNoPeer)
			return
		}
	}
	p.counts.sent(len(d.b), packets)
}

// open opens what came at an offset of b, if there is a key, and returns where it ends and the
// hint that was sealed with it. Nothing that is not sealed is taken then.
func (r *receiver) open(
	p *peer, e *session, b []byte, at int, hint inner.Hint,
) (int, int, inner.Hint, bool) {
	if r.t.config.Key == nil {
		return at, len(b), hint, true
	}
	index, ok := seal.Index(b[at:])
	if !ok {
		p.counts.refuseSeal(seal.NotSealed)
		return 0, 0, 0, false
	}
	if e == nil {
		e = p.sessions.find(index)
	}
	if e == nil || e.index != index {
		p.counts.refuseSeal(seal.NoKey)
		return 0, 0, 0, false
	}
	plain, sealed, reason := e.opener.Open(b[at:])
	if reason != seal.OK {
		p.counts.refuseSeal(reason)
		return 0, 0, 0, false
	}
	at += seal.HeaderLen
	return at, at + len(plain), inner.Hint(sealed), true
}

// overhead is how many bytes sealing takes of each packet.
func (t *Tunnel) overhead() int {
	if t.config.Key == nil {
		return 0
	}
	return seal.Overhead
}
