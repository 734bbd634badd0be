package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"xroce/encap"
	"xroce/encap/bridge"
	"xroce/encap/inner"
	"xroce/encap/seal"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/clock"
)

// dataOff is where a datagram is in a slot. Before it the kernel's words are read.
const dataOff = 64

// slack is room for what a seal has behind a packet, and a format behind a datagram.
const slack = seal.Overhead + encap.MaxTail

// maxRead is the longest datagram that the kernel gives.
const maxRead = 1<<16 - 1 + 14 + 8

// A lane takes datagrams from one queue of the inside to peers. All of it is of its goroutine.
type lane struct {
	*outbox
	t       *Tunnel
	number  int
	queue   Queue
	qp      *engine.QP // UD, to send from
	longest int        // segment that is cut here
	id      uint16     // of the last datagram that was cut into segments
	sges    [3]roce.SGE
	dests   []*peer
	tooBig  []byte     // an error for the inside
	told    clock.Time // when one was last written
}

func (t *Tunnel) newLane(number int, q Queue) (_ *lane, err error) {
	l := &lane{
		t: t, number: number, queue: q, tooBig: make([]byte, inner.VNetLen+inner.TooBigLen),
	}
	l.longest = max(t.inside.MTU, DefaultMTU) + inner.EthernetLen + 8
	large, small := align(dataOff+maxRead+slack), align(dataOff+l.longest+slack)
	if l.outbox, err = newOutbox(t.dev, t.pd, large, small); err != nil {
		return nil, err
	}
	if t.config.Over != OverUD {
		return l, nil
	}
	l.qp, err = t.dev.CreateQP(t.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: l.cq, RecvCQ: l.cq, MaxSendWR: maxWork, MaxRecvWR: 1,
		PKeyIndex: t.config.PKeyIndex,
	})
	if err == nil {
		err = l.qp.Start(0) // nothing is received: there are no receives
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// align rounds up to a cache line.
func align(n int) int { return (n + 63) &^ 63 }

func (l *lane) close() error {
	if l.qp != nil {
		_ = l.qp.Close() // never fails
	}
	return l.outbox.close()
}

// run reads and sends until the inside is closed or fails.
func (l *lane) run(ctx context.Context) error {
	for {
		if _, err := l.reap(); err != nil {
			return err
		}
		s, err := l.take(ctx, &l.large)
		if err != nil {
			return err
		}
		n, err := l.queue.Read(s.b[dataOff-inner.VNetLen:])
		if err != nil {
			return fmt.Errorf("tunnel: interface %s: %w", l.t.inside.Name, err)
		}
		if n > inner.VNetLen {
			l.handle(ctx, s, n-inner.VNetLen)
		}
		l.release(s)
	}
}

// A datagram is one on its way out.
type datagram struct {
	slot  *slot
	kind  encap.Kind
	b     []byte // in the slot
	head  inner.Headers
	class uint8      // traffic class
	hint  inner.Hint // how it is to be cut, 0 for not at all
	cut   int        // length of the IP packets that it is cut into, or of the one that it is
}

// handle sends a datagram of n bytes to where it is to go.
func (l *lane) handle(ctx context.Context, s *slot, n int) {
	v := inner.ParseVNet(s.b[dataOff-inner.VNetLen:])
	d := datagram{slot: s, b: s.b[dataOff:][:n]}
	if d.kind = l.t.inside.Kind.kindOf(d.b); d.kind == 0 {
		l.t.counts.drop(dropKind)
		return
	}
	l.dests = l.t.direct(l.dests[:0], d.kind, d.b)
	if len(l.dests) == 0 {
		return
	}
	if d.head = inner.Parse(d.kind, d.b); l.suppress(&d) {
		return
	}
	d.head.ClampMSS(d.b, l.t.inside.MTU, v.Flags&inner.NeedsChecksum != 0)
	d.class = l.t.config.Mark.of(d.head.TClass(d.b))
	segments, uncut := v.Cut(d.kind, d.b)
	d.cut = n - d.head.L3
	if uncut {
		d.cut = segments.Longest() - d.head.L3
	}
	switch {
	case l.whole(n):
		d.hint = v.Hint()
		l.spread(ctx, &d)
	case uncut:
		l.cut(ctx, &d, &segments)
	case v.GSO == inner.GSONone && v.Complete(d.b):
		l.spread(ctx, &d)
	default:
		l.t.counts.drop(dropChecksum)
	}
}

// whole reports whether all that a datagram goes to take it as the kernel gave it.
func (l *lane) whole(n int) bool {
	for _, p := range l.dests {
		w := p.ways[l.number].Load()
		if w == nil || !w.whole || n > w.largest {
			return false
		}
	}
	return true
}

// cut sends the segments of a packet of TCP.
func (l *lane) cut(ctx context.Context, d *datagram, segments *inner.Segments) {
	if segments.Longest() > l.longest {
		l.t.counts.drop(dropChecksum)
		return
	}
	for {
		s, err := l.take(ctx, &l.small)
		if err != nil {
			return
		}
		n := segments.Next(s.b[dataOff:])
		if n > 0 {
			segment := *d
			segment.slot, segment.b = s, s.b[dataOff:][:n]
			segment.head.End = n
			l.spread(ctx, &segment)
		}
		l.release(s)
		if n == 0 {
			return
		}
	}
}

// spread sends a datagram to all it goes to.
func (l *lane) spread(ctx context.Context, d *datagram) {
	if d.hint != 0 {
		l.complete(d)
	}
	for _, p := range l.dests {
		w := p.takeInHand(l.number)
		if w == nil {
			p.counts.drop(dropNoPeer)
			continue
		}
		if !d.tooLong(w) {
			l.send(ctx, p, w, d)
		} else if !l.fragment(ctx, p, w, d) {
			p.counts.refuse(encap.TooLong)
			l.tellTooBig(d, w.mtu)
		}
		w.inHand.Store(false)
	}
}

// send sends a datagram to a peer, in segments where it takes them.
func (l *lane) send(ctx context.Context, p *peer, w *way, d *datagram) {
	if len(d.b) > w.largest {
		p.counts.refuse(encap.TooLong)
		return
	}
	if w.route != nil {
		l.sendNative(ctx, p, w, d)
		return
	}
	c, r := w.template.Cut(d.kind, d.b, l.id)
	if r != encap.OK {
		p.counts.refuse(r)
		return
	}
	packets := c.Packets()
	if packets > 1 {
		l.id++
	}
	if w.sealer != nil {
		l.sendSealed(ctx, p, w, d, &c)
		return
	}
	at := d.slot.off + dataOff
	for range packets {
		if !l.room(ctx, w) {
			p.counts.drop(dropFull)
			return
		}
		i, err := l.begin(ctx, d.slot, w)
		if err != nil {
			return
		}
		head, tail := l.parts(i)
		before, piece, behind := c.NextParts(head, tail)
		l.sges = [3]roce.SGE{
			l.mr.SGE(int(i)*scratchLen, before), l.mr.SGE(at, len(piece)),
			l.mr.SGE(int(i)*scratchLen+scratchEnd, behind),
		}
		at += len(piece)
		list := l.sges[:2]
		if behind > 0 {
			list = l.sges[:]
		}
		if err := l.post(w, i, list, d); err != nil {
			l.finish(i)
			p.counts.drop(dropNoPeer)
			return
		}
	}
	p.counts.sent(len(d.b), packets)
}

// post posts a work request.
func (l *lane) post(w *way, i uint32, list []roce.SGE, d *datagram) error {
	wr := roce.SendWR{
		WRID: uint64(i), Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: list,
		AH: w.handle(l.t.pd, d.class), RemoteQPN: w.qpn, RemoteQKey: w.qkey,
	}
	if d.hint != 0 && w.sealer == nil { // else it is sealed
		wr.Opcode, wr.Imm = roce.OpSendImm, uint32(d.hint)
	}
	return w.qp.PostSend(&wr)
}

// fullTime is how long one look at a full queue lasts.
const fullTime = 100 * time.Millisecond

// room reports whether a connection has room for one more work request. With a single peer it
// waits until there is, so that the kernel waits, too, while the connection lasts.
func (l *lane) room(ctx context.Context, w *way) bool {
	if w.ah != nil {
		return true // the queue of UD has room for all work of the lane
	}
	if l.t.single == nil && int(w.posted.Load()) >= l.spare() {
		if _, err := l.reap(); err != nil || int(w.posted.Load()) >= l.spare() {
			return false
		}
	}
	if w.posted.Load() < connWork {
		return true
	}
	if _, err := l.reap(); err != nil {
		return false
	}
	for w.posted.Load() >= connWork {
		if l.t.single == nil || ctx.Err() != nil || w.gone.Load() ||
			l.t.single.ways[l.number].Load() != w {
			return false
		}
		waiting, cancel := context.WithTimeout(ctx, fullTime)
		_ = l.wait(waiting) // what fails here fails again in run
		cancel()
	}
	return true
}

// direct appends the peers that a datagram from inside goes to.
func (t *Tunnel) direct(dests []*peer, k encap.Kind, datagram []byte) []*peer {
	var port bridge.Port
	if t.table != nil {
		if len(datagram) < inner.EthernetLen {
			t.counts.refuse(encap.TooShort)
			return dests
		}
		dst, src := bridge.MAC(datagram[:6]), bridge.MAC(datagram[6:12])
		t.bridge.Lock()
		port = t.table.FromInside(t.dev.Now(), dst, src)
		t.bridge.Unlock()
	} else {
		port = t.routed(k, datagram)
		if port == bridge.Drop {
			t.counts.drop(dropNoRoute)
			return dests
		}
	}
	switch port {
	case bridge.Drop:
		t.counts.drop(dropBridge)
		return dests
	case bridge.Flood:
		return t.flood(dests)
	}
	p := t.roster.Load().at(port)
	if p == nil { // it was forgotten just now
		t.counts.drop(dropNoPeer)
		return dests
	}
	return append(dests, p)
}

// flood appends the group, or all peers, but of those that were learned only who has answered at
// its address.
func (t *Tunnel) flood(dests []*peer) []*peer {
	if t.group != nil {
		return append(dests, &t.group.peer)
	}
	for _, p := range t.roster.Load().peers {
		if !p.learned || p.up() {
			dests = append(dests, p)
		}
	}
	return dests
}

// address is the destination or the source of an IP packet, the zero Addr when it has none.
func address(k encap.Kind, b []byte, destination bool) netip.Addr {
	at := 0
	if destination {
		at = 1
	}
	switch {
	case k == encap.IPv4 && len(b) >= 20:
		return netip.AddrFrom4([4]byte(b[12+4*at:]))
	case k == encap.IPv6 && len(b) >= 40:
		return netip.AddrFrom16([16]byte(b[8+16*at:]))
	}
	return netip.Addr{}
}
