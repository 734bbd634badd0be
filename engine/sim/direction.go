package sim

import (
	"encoding/binary"

	"xroce/roce"
	"xroce/roce/wire"
)

// A direction is the way from one port to another, with the state that its
// faults have.
type direction struct {
	from, to [6]byte
	faults   Faults

	bad         bool      // the state of Burst
	clogged     roce.Time // until then
	busy        roce.Time // the rate is used up until then
	lastInOrder roce.Time // no frame in order arrives before this
	holding     []holding
}

// A holding is a frame that waits to be overtaken.
type holding struct {
	order uint64 // of its arrival
	left  int    // frames that still have to pass
}

// direction returns the way between two addresses. The caller holds mu.
func (n *Network) direction(from, to [6]byte) *direction {
	key := [12]byte(append(append(make([]byte, 0, 12), from[:]...), to[:]...))
	d := n.directions[key]
	if d == nil {
		d = &direction{from: from, to: to, faults: n.faults}
		n.directions[key] = d
	}
	return d
}

// send puts a frame on its way to the port with an address. The caller holds mu.
func (n *Network) send(from *Port, to [6]byte, frame []byte) {
	d := n.direction(from.config.MAC, to)
	n.note(Sent, d, frame)
	port := n.ports[to]
	if port == nil || port == from { // a switch sends nothing back
		n.note(Unknown, d, frame)
		return
	}
	p := passage{network: n, direction: d, from: from, port: port, frame: frame}
	if !n.obey(&p) || !n.survives(d, frame) {
		return
	}
	f := &d.faults
	p.deliver(0)
	if n.chance(f.Dup) {
		n.note(Duplicated, d, frame)
		p.deliver(0)
	}
	if n.chance(f.Stale) {
		n.note(Staled, d, frame)
		p.overtaken = true
		p.deliver(n.upTo(f.StaleBy))
	}
	n.passed(d, port)
}

// obey lets the rules act on a frame and reports whether it is still there.
func (n *Network) obey(p *passage) bool {
	if len(n.scripts) == 0 {
		return true
	}
	b, ok := findBTH(p.frame)
	if !ok {
		return true
	}
	for i := range n.scripts {
		s := &n.scripts[i]
		if !s.match(p.direction.from, p.direction.to, b) {
			continue
		}
		if s.Copies == 0 && s.Delay == 0 && s.Flip == 0 {
			n.note(Scripted, p.direction, p.frame)
			return false
		}
		if s.Flip > 0 && s.Flip <= 8*len(p.frame) {
			n.note(ScriptedCorrupted, p.direction, p.frame)
			p.flip = s.Flip
		}
		if s.Delay > 0 {
			n.note(Reordered, p.direction, p.frame)
			p.late, p.overtaken = s.Delay, true
		}
		for range s.Copies {
			n.note(Duplicated, p.direction, p.frame)
			p.deliver(0)
		}
	}
	return true
}

// survives reports whether a frame is not lost, as the faults decide.
func (n *Network) survives(d *direction, frame []byte) bool {
	f := &d.faults
	lost := NumKinds
	switch {
	case f.Blocked:
		lost = Blocked
	case f.MTU > 0 && len(frame) > f.MTU+ethernetHeader:
		lost = TooLong
	case n.chance(f.Drop):
		lost = Dropped
	case n.inBurst(d) && n.chance(f.Burst.Drop):
		lost = BurstLost
	case f.ClogLoses && n.clock.Now() < d.clogged:
		lost = ClogLost
	case f.Rate > 0 && f.Queue > 0 && d.waiting(n.clock.Now())+int64(len(frame)) > int64(f.Queue):
		lost = TailLost
	default:
		return true
	}
	n.note(lost, d, frame)
	return false
}

// inBurst moves the state of a direction by one frame, and reports whether it is the bad
// one then.
func (n *Network) inBurst(d *direction) bool {
	b := &d.faults.Burst
	if d.bad {
		d.bad = !n.chance(b.Leave)
	} else {
		d.bad = n.chance(b.Enter)
	}
	return d.bad
}

// waiting is how many bytes wait for the rate.
func (d *direction) waiting(now roce.Time) int64 {
	return int64(max(0, d.busy-now)) * d.faults.Rate / 8 / int64(roce.Second)
}

// A passage is a frame that will arrive, once or more often.
type passage struct {
	network   *Network
	direction *direction
	from      *Port
	port      *Port
	frame     []byte
	late      roce.Time // it arrives so much later than it should
	overtaken bool      // and others do not wait for it
	flip      int       // this bit is flipped, 0 for none
}

// deliver lets one copy of the frame arrive, later than usual by so much.
func (p *passage) deliver(later roce.Time) {
	n, d := p.network, p.direction
	if len(p.port.arrivals) >= p.port.config.RxQueue {
		n.note(Overflow, d, p.frame)
		return
	}
	n.order++
	at := p.arrival() + later
	b := p.damage(append(n.buffer(), p.frame...))
	if p.port.downlink != nil {
		n.transit.push(transit{at: at, order: n.order, direction: d, port: p.port, frame: b})
		p.port.Wake()
		return
	}
	p.port.push(arrival{at: at, order: n.order, from: d.from, frame: b})
}

// arrival is when a copy arrives.
func (p *passage) arrival() roce.Time {
	n, d, f := p.network, p.direction, &p.direction.faults
	now := n.clock.Now()
	at := now
	if p.from.uplink != nil {
		at = p.from.uplink.send(now, len(p.frame))
	}
	if f.Rate > 0 {
		d.busy = max(d.busy, now) + roce.Time(int64(len(p.frame))*8*int64(roce.Second)/f.Rate)
		at = d.busy
	}
	if n.chance(f.Clog) && d.clogged <= now {
		d.clogged = now + f.ClogFor
	}
	if d.clogged > at {
		n.note(Clogged, d, p.frame)
		at = d.clogged
	}
	at += f.Delay + n.upTo(f.Jitter) + p.late
	switch {
	case f.Spray > 1:
		at += f.SprayBy * roce.Time(n.rng.IntN(f.Spray)) / roce.Time(f.Spray-1)
	case n.chance(f.Reorder):
		n.note(Reordered, d, p.frame)
		at += n.upTo(f.ReorderBy)
	case n.chance(f.Hold) && f.HoldFrames > 0:
		n.note(Held, d, p.frame)
		d.holding = append(d.holding, holding{n.order, f.HoldFrames + 1})
		at += f.ReorderBy
	default:
		// Jitter alone does not let a frame overtake the one before it.
		at = max(at, d.lastInOrder)
		if !p.overtaken {
			d.lastInOrder = at
		}
	}
	return at
}

// passed tells the frames that are held back that one more was sent. Those that
// enough others overtook arrive now, behind them.
func (n *Network) passed(d *direction, port *Port) {
	if len(d.holding) == 0 {
		return
	}
	kept := d.holding[:0]
	for _, h := range d.holding {
		if h.left--; h.left > 0 {
			kept = append(kept, h)
			continue
		}
		n.order++
		port.hasten(h.order, max(n.clock.Now(), d.lastInOrder), n.order)
	}
	d.holding = kept
}

// damage changes a copy of the frame as the faults say.
func (p *passage) damage(b []byte) []byte {
	n, d, f := p.network, p.direction, &p.direction.faults
	if p.flip > 0 {
		b[(p.flip-1)/8] ^= 0x80 >> ((p.flip - 1) % 8)
	}
	if n.chance(f.Corrupt) {
		n.note(Corrupted, d, p.frame)
		for range 1 + n.rng.IntN(3) {
			bit := n.rng.IntN(8 * len(b))
			b[bit/8] ^= 1 << (bit % 8)
		}
		if f.Hostile {
			repair(b)
		}
	}
	if n.chance(f.Truncate) {
		n.note(Truncated, d, p.frame)
		b = b[:n.rng.IntN(len(b))]
	}
	if n.chance(f.Extend) {
		n.note(Extended, d, p.frame)
		for range min(1+n.rng.IntN(64), maxFrame-len(b)) {
			b = append(b, byte(n.rng.Uint32()))
		}
	}
	return b
}

// repair gives a frame the ICRC that its bytes call for, where that can be
// told.
func repair(frame []byte) {
	var p wire.Packet
	if p.Decode(frame, nil) != wire.OK {
		return
	}
	const icrc = 4
	net := ethernetHeader + p.Tags.Len()
	end := net + p.NetworkLen() - icrc
	binary.LittleEndian.PutUint32(frame[end:], wire.ICRC(p.Framing, frame[net:end], nil))
}
