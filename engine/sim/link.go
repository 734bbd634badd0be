package sim

import (
	"encoding/binary"
	"fmt"

	"xroce/roce"
	"xroce/roce/wire"
)

// A Link joins a port and the switch, in one direction. The zero value is instant and has no
// limit. Links are for virtual time: nobody is woken for a frame that waits in the switch.
type Link struct {
	Rate  int64     // bits per second of frames, 0 for no limit
	Delay roce.Time // from the last bit sent to the last bit received
	// Queue is how many bytes may wait in the switch for a link to a port; frames that find
	// it full are lost. What waits for a link to the switch is in the host, without limit.
	Queue int
	// KMin, KMax and PMax are when a switch marks frames that may be marked (ECT): none while
	// fewer than KMin bytes wait, a share that grows to PMax at KMax, above that all. KMax 0
	// marks none. Frames that may not be marked are left alone: their class is without loss.
	KMin, KMax int
	PMax       float64
}

func (l *Link) check() error {
	switch {
	case l.Rate < 0 || l.Delay < 0 || l.Queue < 0:
		return fmt.Errorf("sim: a link has a negative number: %+v", *l)
	case l.KMin < 0 || l.KMin > l.KMax || !(l.PMax >= 0 && l.PMax <= 1):
		return fmt.Errorf("sim: marks from %d to %d bytes, up to %v", l.KMin, l.KMax, l.PMax)
	}
	return nil
}

// A line is a link with what is on it.
type line struct {
	Link
	busy roce.Time // the rate is used up until then,
	part int64     // and for so much of a nanosecond more, in 1/Rate
	most int       // bytes that waited since somebody asked
}

// send returns when a frame of n bytes that comes at a time is through.
func (l *line) send(at roce.Time, n int) roce.Time {
	if l.Rate > 0 {
		if at > l.busy {
			l.busy, l.part = at, 0
		}
		cost := int64(n)*8*int64(roce.Second) + l.part
		l.busy += roce.Time(cost / l.Rate)
		l.part = cost % l.Rate
		at = l.busy
	}
	return at + l.Delay
}

// waiting is how many bytes wait at a time.
func (l *line) waiting(at roce.Time) int {
	return int(int64(max(0, l.busy-at)) * l.Rate / 8 / int64(roce.Second))
}

// mark is the chance that a switch marks a frame.
func (l *line) mark(waiting int) float64 {
	switch {
	case l.KMax == 0 || waiting < l.KMin:
		return 0
	case waiting >= l.KMax:
		return 1
	default:
		return l.PMax * float64(waiting-l.KMin) / float64(l.KMax-l.KMin)
	}
}

// SetLinks gives the port with a MAC address links to and from the switch. What directions do
// to frames, they do on the way to the switch.
func (n *Network) SetLinks(mac [6]byte, up, down Link) error {
	for _, l := range []*Link{&up, &down} {
		if err := l.check(); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.ports[mac]
	if p == nil {
		return fmt.Errorf("sim: no port % x", mac)
	}
	p.uplink, p.downlink = &line{Link: up}, &line{Link: down}
	return nil
}

// QueueLength returns how many bytes wait in the switch for the port with a MAC address, and
// the most that did since it was asked last.
func (n *Network) QueueLength(mac [6]byte) (bytes, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settle()
	p := n.ports[mac]
	if p == nil || p.downlink == nil {
		return 0, 0
	}
	bytes, most = p.downlink.waiting(n.clock.Now()), p.downlink.most
	p.downlink.most = bytes
	return bytes, most
}

// settle lets the frames that have come to the switch by now enter the queues of its links, in
// the order in which they came. The caller holds mu.
func (n *Network) settle() {
	for now := n.clock.Now(); len(n.transit) > 0 && n.transit[0].at <= now; {
		a := n.transit.pop()
		n.relay(a)
	}
}

// relay puts a frame in the queue of the link to its port, or loses it. The caller holds mu.
func (n *Network) relay(a transit) {
	l, d := a.port.downlink, a.direction
	waiting := l.waiting(a.at)
	switch {
	case n.ports[a.port.config.MAC] != a.port:
		n.note(Unreceived, d, a.frame)
		return
	case l.Queue > 0 && waiting+len(a.frame) > l.Queue:
		n.note(TailLost, d, a.frame)
		n.free = append(n.free, a.frame)
		return
	}
	if n.chance(l.mark(waiting)) && markCE(a.frame) {
		n.note(Marked, d, a.frame)
	}
	l.most = max(l.most, waiting+len(a.frame))
	a.port.push(arrival{
		at: l.send(a.at, len(a.frame)), order: a.order, from: d.from, frame: a.frame,
	})
}

// markCE marks a frame as a switch does, if its sender allows that (RFC 3168), and reports
// whether it is marked.
func markCE(frame []byte) bool {
	const etherType, ipv4, ipv6 = 12, 0x0800, 0x86dd
	at := ethernetHeader
	if len(frame) < at+20 {
		return false
	}
	kind := binary.BigEndian.Uint16(frame[etherType:])
	if kind == 0x8100 {
		kind, at = binary.BigEndian.Uint16(frame[etherType+4:]), at+4
	}
	h := frame[at:]
	switch {
	case kind == ipv4 && len(h) >= 20 && h[1]&wire.ECNMask != 0:
		// The checksum of the header is that of words of 16 bits (RFC 1624).
		sum := uint32(^binary.BigEndian.Uint16(h[10:])) + uint32(wire.ECNCE-h[1]&wire.ECNMask)
		h[1] |= wire.ECNCE
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
	case kind == ipv6 && len(h) >= 2 && h[1]>>4&wire.ECNMask != 0:
		h[1] |= wire.ECNCE << 4
	default:
		return false
	}
	return true
}
