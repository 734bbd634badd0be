package engine

import (
	"context"

	"xroce/encap"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A NativeDatagram is what came in a native packet: a datagram, or a segment of one, in
// Packet.Datagram; Packet.Tail is empty.
type NativeDatagram struct {
	encap.Packet
	From, To [6]byte   // MAC addresses; To may be a group
	Tags     wire.Tags // VLAN tags
}

// Poll moves datagrams to list, the oldest first, and returns how many, 0 when there are none.
// Their bytes are valid until the next Poll. On a device in direct mode it makes progress when
// there are none. What came before Close can be polled after it.
func (p *NativePort) Poll(list []NativeDatagram) int {
	n := p.poll(list)
	if n == 0 && p.device.direct && len(list) > 0 {
		p.device.Progress()
		n = p.poll(list)
	}
	return n
}

func (p *NativePort) poll(list []NativeDatagram) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = (p.first + p.held) % len(p.slots)
	n := min(p.waiting, len(list))
	for i := range n {
		list[i] = p.slots[(p.first+i)%len(p.slots)].datagram
	}
	p.held = n
	p.waiting -= n
	return n
}

// Wait waits until there is a datagram to poll, the context ends, or the port or the device is
// of no more use. On a device in direct mode it drives the device.
func (p *NativePort) Wait(ctx context.Context) error {
	if p.pending() {
		return nil
	}
	d := p.device
	if d.direct {
		stop := context.AfterFunc(ctx, d.wakeLinks)
		defer stop()
		d.services.standby.enter()
		defer d.services.leave()
		by := caller{queue: d.queues[0]}
		defer by.leave()
	}
	for {
		// What ended first may have left datagrams, so its error is read first.
		err := p.err()
		if err == nil {
			err = ctx.Err()
		}
		if p.pending() {
			return nil
		}
		if err != nil {
			return err
		}
		if d.direct {
			d.driveOnce(ctx, p.pending, p.ready, p.done)
			continue
		}
		select {
		case <-p.ready:
		case <-p.done:
		case <-d.failed:
		case <-ctx.Done():
		}
	}
}

// pending reports whether there is a datagram to poll.
func (p *NativePort) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0
}

// receive stores what is in a frame, and reports whether it did; if not, the queue has why. The
// frame has a whole Ethernet header. The caller holds the progress lock of the queue.
func (p *NativePort) receive(at *queue, f *xsk.RxFrame) bool {
	to := [6]byte(f.Head)
	if _, member := p.groups.load()[to]; to != at.loop.mac && !member {
		at.drop(counter.DropNotLocal)
		return false
	}
	at.count.Add(counter.RcvdBytes, uint64(f.Len()))
	tags, _, header, _ := wire.ParseTags(f.Head) // whole, or it would not be here
	p.mu.Lock()
	defer p.mu.Unlock()
	if reason := p.packet.DecodeNative(f.Head[header:], f.Tail); reason != encap.OK {
		p.stats.refused(reason)
		at.dropped(reason.String())
		return false
	}
	if p.held+p.waiting == len(p.slots) {
		p.stats.outOfBuffer()
		at.dropped(nativeOutOfBuffer)
		return false
	}
	s := &p.slots[(p.first+p.held+p.waiting)%len(p.slots)]
	n := p.packet.CopyTo(s.buf)
	s.datagram = NativeDatagram{Packet: p.packet, From: [6]byte(f.Head[6:]), To: to, Tags: tags}
	s.datagram.Datagram, s.datagram.Tail = s.buf[:n:n], nil
	p.waiting++
	p.stats.received(nativeCount{packets: 1, bytes: uint64(n)})
	return true
}
