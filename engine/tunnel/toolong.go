package tunnel

import (
	"context"

	"xroce/encap/inner"
	"xroce/roce/clock"
)

// complete completes the checksum of a datagram, for all that it goes to, when it is too long for
// one of them, which would get fragments. That is before any of it is posted: the device reads the
// slot later, and says by the hint what it was then.
func (l *lane) complete(d *datagram) {
	for _, p := range l.dests {
		w := p.ways[l.number].Load()
		if w == nil || !d.tooLong(w) {
			continue
		}
		if v, ok := d.hint.VNet(d.kind, d.b); ok && v.GSO == inner.GSONone && v.Complete(d.b) {
			d.hint = 0
		}
		return
	}
}

// tooLong reports whether a datagram has an IP packet that is longer than both insides take.
func (d *datagram) tooLong(w *way) bool { return d.cut > w.mtu && d.head.Version != 0 }

// fragment sends an IPv4 packet that is longer than the inside of the peer takes in fragments, if
// it may be cut, and reports whether that is so. What TCP left uncut is not cut so: it is told.
func (l *lane) fragment(ctx context.Context, p *peer, w *way, d *datagram) bool {
	if d.hint != 0 { // complete has left it
		return false
	}
	f, ok := d.head.Fragments(d.b, w.mtu)
	if !ok {
		return false
	}
	for {
		s, err := l.take(ctx, &l.small)
		if err != nil {
			return true
		}
		n := f.Next(s.b[dataOff:])
		if n > 0 {
			part := *d
			part.slot, part.b = s, s.b[dataOff:][:n]
			l.send(ctx, p, w, &part)
		}
		l.release(s)
		if n == 0 {
			return true
		}
	}
}

// tooBigEvery is how often at most the inside is told that a packet is too long.
const tooBigEvery = clock.Millisecond

// tellTooBig tells the sender of an IP packet how long it may be.
func (l *lane) tellTooBig(d *datagram, mtu int) {
	now := l.t.dev.Now()
	if l.told != 0 && now-l.told < tooBigEvery {
		return
	}
	n := d.head.TooBig(l.tooBig[inner.VNetLen:], d.b, mtu)
	if n == 0 {
		return
	}
	l.told = now
	inner.VNet{}.Put(l.tooBig)
	if _, err := l.queue.Write(l.tooBig[:inner.VNetLen+n]); err != nil {
		l.t.counts.drop(dropInside)
	}
}
