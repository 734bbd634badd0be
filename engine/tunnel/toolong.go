package tunnel

import (
	"context"

	"xroce/encap/inner"
	"xroce/roce/clock"
)

// fragment sends an IPv4 packet that is longer than the inside of the peer takes in fragments, if
// it may be cut, and reports whether that is so. What TCP left uncut is not cut so: it is told.
func (l *lane) fragment(ctx context.Context, p *peer, w *way, d *datagram) bool {
	v, ok := d.hint.VNet(d.kind, d.b)
	if !ok || v.GSO != inner.GSONone {
		return false
	}
	f, ok := d.head.Fragments(d.b, w.mtu)
	if !ok || !v.Complete(d.b) {
		return false
	}
	d.hint = 0 // the checksum is complete, for others, too
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
