package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A fault is what the wire does to one frame.
type fault struct {
	Drop  bool
	Dup   bool
	Delay roce.Time // on top of the wire's delay: the frame is overtaken
	Flip  int       // bit to turn over, counted from 1
}

// A faultFunc decides about the nth frame, counted from 0, that an end sends.
type faultFunc func(from, nth int, frame []byte) fault

// A flight is a frame on its way.
type flight struct {
	at    roce.Time
	seq   uint64
	to    int
	frame []byte
}

// A pair is two connected endpoints and the wire between them under virtual time.
type pair struct {
	tb    testing.TB
	o     options
	now   roce.Time
	ends  [2]*endpoint
	delay roce.Time // of the wire, one way
	gap   roce.Time // what a frame takes an end to send, 0 for nothing
	free  [2]roce.Time
	fault faultFunc

	air    []flight // a heap by time, then by order of sending
	seq    uint64
	sent   [2]int
	spare  [][]byte
	packet wire.Packet
	events int
}

// newRCPair returns two queue pairs in RTS, connected with each other: of type RC,
// unless the options say else.
func newRCPair(tb testing.TB, o options) *pair {
	tb.Helper()
	return newRCPairOn(tb, o, false)
}

// newRCPairOn is newRCPair, with an SRQ at each end if shared.
func newRCPairOn(tb testing.TB, o options, shared bool) *pair {
	tb.Helper()
	o = o.filled()
	p := &pair{tb: tb, o: o, delay: 2 * roce.Microsecond}
	other := o
	other.SQPSN, other.RQPSN = o.RQPSN, o.SQPSN
	if o.Type == roce.TypeXRCSend {
		other.Type = roce.TypeXRCRecv
	}
	if shared {
		o.SRQ, other.SRQ = pairSRQ(tb, o), pairSRQ(tb, o)
	}
	p.ends[0] = newEndpoint(tb, qpnA, o)
	p.ends[0].connect(qpnB, o, roce.StateRTS)
	p.ends[1] = newEndpoint(tb, qpnB, other)
	p.ends[1].connect(qpnA, other, roce.StateRTS)
	return p
}

func pairSRQ(tb testing.TB, o options) *roce.SRQ {
	tb.Helper()
	s, err := roce.NewSRQ(srqNum, roce.SRQConfig{
		Domain: new(mem.Domain), MaxWR: o.Depth, MaxSGE: o.SGE,
	})
	must(tb, err)
	return s
}

// buffer returns a buffer for a frame.
func (p *pair) buffer() []byte {
	if n := len(p.spare); n > 0 {
		b := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return b
	}
	return make([]byte, 4096+128)
}

// pump lets both ends send all they can.
func (p *pair) pump() {
	for i, e := range p.ends {
		for p.free[i] <= p.now {
			b := p.buffer()
			n := e.qp.NextPacket(p.now, b)
			if n == 0 {
				p.spare = append(p.spare, b)
				if e.qp.Unasked() {
					p.tb.Errorf("end %d waits and has asked for nothing: %s", i, e.qp.Snapshot())
				}
				break
			}
			p.launch(i, b[:n])
			if p.gap != 0 {
				p.free[i] = p.now + p.gap
			}
		}
	}
}

// launch puts a frame on the wire.
func (p *pair) launch(from int, frame []byte) {
	var f fault
	if p.fault != nil {
		f = p.fault(from, p.sent[from], frame)
	}
	p.sent[from]++
	if f.Dup {
		p.fly(flight{to: 1 - from, at: p.now + p.delay, frame: append(p.buffer()[:0], frame...)})
	}
	if f.Flip > 0 {
		bit := (f.Flip - 1) % (8 * len(frame))
		frame[bit/8] ^= 1 << (bit % 8)
	}
	if f.Drop {
		p.spare = append(p.spare, frame[:cap(frame)])
		return
	}
	p.fly(flight{to: 1 - from, at: p.now + p.delay + f.Delay, frame: frame})
}

func (f *flight) before(g *flight) bool {
	return f.at < g.at || f.at == g.at && f.seq < g.seq
}

func (p *pair) fly(f flight) {
	f.seq = p.seq
	p.seq++
	p.air = append(p.air, f)
	for i := len(p.air) - 1; i > 0 && p.air[i].before(&p.air[(i-1)/2]); i = (i - 1) / 2 {
		p.air[i], p.air[(i-1)/2] = p.air[(i-1)/2], p.air[i]
	}
}

func (p *pair) arrive() flight {
	f, last := p.air[0], len(p.air)-1
	p.air[0] = p.air[last]
	p.air = p.air[:last]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && p.air[c].before(&p.air[least]) {
				least = c
			}
		}
		if least == i {
			return f
		}
		p.air[i], p.air[least] = p.air[least], p.air[i]
		i = least
	}
}

// step lets the next thing happen and reports whether there was any.
func (p *pair) step() bool {
	p.pump()
	late := -1
	var at roce.Time
	for i, e := range p.ends {
		if t, ok := e.qp.NextDeadline(); ok && (late < 0 || t < at) {
			late, at = i, t
		}
	}
	if free, busy := p.nextFree(); busy && (late < 0 || free < at) &&
		(len(p.air) == 0 || free < p.air[0].at) {
		p.now = free
		return true
	}
	if len(p.air) == 0 && late < 0 {
		return false
	}
	p.events++
	if len(p.air) > 0 && (late < 0 || p.air[0].at <= at) {
		f := p.arrive()
		p.now = max(p.now, f.at)
		if p.packet.Decode(f.frame, nil) == wire.OK {
			p.ends[f.to].qp.HandlePacket(p.now, &p.packet)
		}
		p.spare = append(p.spare, f.frame[:cap(f.frame)])
		return true
	}
	p.now = max(p.now, at)
	p.ends[late].qp.HandleDeadline(p.now)
	return true
}

// nextFree returns when an end that is still sending may send its next frame.
func (p *pair) nextFree() (at roce.Time, busy bool) {
	for _, t := range p.free {
		if t > p.now && (!busy || t < at) {
			at, busy = t, true
		}
	}
	return at, busy
}

// run goes on until nothing is left to happen.
func (p *pair) run() {
	p.tb.Helper()
	for range 1 << 20 {
		if !p.step() {
			return
		}
	}
	p.tb.Fatalf("no end: %s; %s", p.ends[0].qp.Snapshot(), p.ends[1].qp.Snapshot())
}
