package tunnel

import (
	"context"
	"errors"
	"fmt"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// Native packets have an Ethernet header around them and nothing above: no queue pair, no
// partition, no key. Peers are found as over UD, and from then on known by their MAC address.

// permissiveLID is the local identifier of who has none (IBA 4.1.3): stations of Ethernet.
const permissiveLID = 0xffff

// tries is how often a lane waits for a frame of the link before it drops a datagram.
const tries = 16

// A nativePort is what native packets are sent and received with.
type nativePort struct {
	*engine.NativePort
	list [readBatch]engine.NativeDatagram // of the receiver
}

// openNative makes the port. come is called when something has come.
func (r *receiver) openNative() (err error) {
	t := r.t
	r.macs = map[[6]byte]*peer{}
	r.native = &nativePort{}
	c := engine.NativeConfig{Datagrams: udReceives}
	if t.polled() != nil {
		c.Notify = t.dev.Rouse
	}
	r.native.NativePort, err = t.dev.OpenNative(c)
	return err
}

// nativeTemplate adds what native packets to a peer say.
func (t *Tunnel) nativeTemplate(template *encap.Template, to wire.GID) {
	template.SLID, template.DLID, template.HopLimit = permissiveLID, permissiveLID, 64
	template.DGID = to
	for _, gid := range t.dev.GIDs() {
		if !gid.IsZero() && gid.IsIPv4() == to.IsIPv4() {
			template.SGID = gid
			break
		}
	}
}

// nativeWay makes a way to a peer by its MAC address, which must be on this link: a router knows
// nothing of native packets.
func (t *Tunnel) nativeWay(path wire.Path, their *hello) (*way, error) {
	if path.DstMAC != their.mac {
		return nil, fmt.Errorf("tunnel: %s is at %x, and the way there is by %x: native packets "+
			"are not routed", path.Dst, their.mac, path.DstMAC)
	}
	w := t.newWay(nil, their)
	w.whole = false // what is lost would be all of it
	t.nativeTemplate(&w.template, path.Dst)
	w.template.Room -= path.Tags.Len()
	var err error
	list := path.Tags.WithPriority(t.config.Mark.Priority)
	tags := list[:path.Tags.Len()/wire.TagLen]
	w.route, err = t.in.native.NewRoute(path.DstMAC, w.template, tags...)
	return w, err
}

// know says by which MAC address a peer is known from now on, and no other; nil forgets it.
func (r *receiver) know(p *peer, w *way, mac [6]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known, q := range r.macs {
		if q == p {
			delete(r.macs, known)
		}
	}
	if w != nil {
		r.macs[mac] = p
	}
}

// sendNative sends a datagram to a peer. With a single peer it waits a little while the link is
// full.
func (l *lane) sendNative(ctx context.Context, p *peer, w *way, d *datagram) {
	err := l.t.in.native.Send(w.route, d.kind, d.b)
	for try := 1; try < tries && l.mayWait(ctx) && errors.Is(err, roce.ErrQueueFull); try++ {
		if l.idle(ctx) != nil {
			break
		}
		err = l.t.in.native.Send(w.route, d.kind, d.b)
	}
	if err == nil {
		c, _ := w.template.Cut(d.kind, d.b, 0) // it was cut so
		p.counts.sent(len(d.b), c.Packets())
		return
	}
	var reason encap.Reason // allocated here, for errors.As
	switch {
	case errors.As(err, &reason):
		p.counts.refuse(reason)
	case errors.Is(err, roce.ErrQueueFull):
		p.counts.drop(dropFull)
	default:
		p.counts.drop(dropNoPeer)
	}
}

// mayWait reports whether the lane may wait for room: it holds up nobody else.
func (l *lane) mayWait(ctx context.Context) bool {
	return l.idle != nil && l.t.single != nil && ctx.Err() == nil
}

// runNative takes what comes until the context ends or the device fails.
func (r *receiver) runNative(ctx context.Context) error {
	for {
		if err := r.native.Wait(ctx); err != nil {
			return fmt.Errorf("tunnel: native packets: %w", err)
		}
		r.pollNative()
	}
}

// pollNative takes what came, and returns how many packets that were.
func (r *receiver) pollNative() int {
	n := r.native.Poll(r.native.list[:])
	for i := range r.native.list[:n] {
		d := &r.native.list[i]
		r.mu.Lock()
		p := r.macs[d.From]
		r.mu.Unlock()
		if p == nil {
			r.t.counts.drop(dropStranger)
			continue
		}
		r.handleNative(p, d)
	}
	if n > 0 {
		r.giveUpParts()
	}
	return n
}

// handleNative takes a packet from a peer.
func (r *receiver) handleNative(p *peer, d *engine.NativeDatagram) {
	p.counts.rxPackets.Add(1)
	if d.Format != r.t.config.Format {
		p.counts.refuse(encap.UnknownType)
		return
	}
	datagram := d.Datagram
	if !d.Segment.Whole() {
		var reason encap.Reason
		datagram, reason = r.parts.Add(r.t.dev.Now(), uint64(p.port), &d.Packet)
		if reason != encap.OK {
			p.counts.refuse(reason)
		}
		if datagram == nil {
			return
		}
	}
	n := copy(r.whole[inner.VNetLen:], datagram)
	r.forward(p, d.Kind, r.whole[:inner.VNetLen+n], 0)
}
