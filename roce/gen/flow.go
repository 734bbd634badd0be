package gen

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"xroce/roce/wire"
)

// A Flow makes the frames of a Config, one after the other. One caller at a time.
type Flow struct {
	c       Config
	stack   stack
	head    []byte // ready-made headers
	payload []byte // what fills payloads
	ending  []byte // headers of the end, of a flow whose frames nobody could answer
	endings stack  // where they lie
	patches []patch
	roce    *packets // of KindRoCE
	seq     uint64   // frames
	signed  uint64   // of those, with a signature

	faults   faults
	inner    []byte // the frame that is put into another
	held     []byte // a frame that goes next time, as it is before it is put into another
	heldLen  int
	last     bool // no frame is kept back
	injected [NumFaults]uint64
	err      error
}

// maxHeaders is the longest run of headers of a frame that is no RoCE packet.
const maxHeaders = ethLen + wire.MaxTags*wire.TagLen + ipv6Len + udpLen

// maxEnd is the longest frame that ends a flow.
const maxEnd = maxHeaders + wire.BTHLen + wire.DETHLen + SignatureLen + wire.ICRCLen

// NewFlow checks a Config. The error wraps ErrConfig, or what the path is wrong with.
func NewFlow(c Config) (*Flow, error) {
	if c.DstPort == 0 {
		c.DstPort = DefaultPort
	}
	if c.EtherType == 0 {
		c.EtherType = DefaultEtherType
	}
	if c.Kind != KindPFC && c.Sizes.count == 0 && c.Sizes.random == nil {
		return nil, wrong("it has no sizes")
	}
	f := &Flow{c: c, faults: faults{c.Faults, rand.New(rand.NewPCG(c.Seed, uint64(c.Flow)))}}
	if c.Wrap != nil {
		if c.Kind == KindPFC {
			return nil, wrong("frames of %s are for the neighbour, and in no others", c.Kind)
		}
		if c.Wrap.segments() && c.Wrap.One < maxEnd {
			return nil, wrong("a frame has room for %d bytes behind these headers, and the end of "+
				"a flow has up to %d", c.Wrap.One, maxEnd)
		}
		f.inner, f.c.MaxFrame = make([]byte, c.Wrap.Max), c.Wrap.Max
	}
	if len(c.Faults) > 0 {
		f.held = make([]byte, f.c.MaxFrame)
	}
	for _, r := range c.Faults {
		if r.Kind >= FaultBadICRC && c.Kind != KindRoCE {
			return nil, wrong("%s is a mistake of RoCE packets", r.Kind)
		}
	}
	if c.Fill == FillPattern && len(c.Pattern) == 0 {
		return nil, wrong("a pattern of no bytes")
	}
	f.payload = c.pattern(f.c.MaxFrame)
	switch c.Kind {
	case KindRoCE:
		return f, errors.Join(f.initRoCE(), f.prepareEnd())
	case KindPFC:
		return f, f.initPFC()
	}
	f.head = make([]byte, maxHeaders)
	f.stack = putHeaders(f.head, &c)
	f.head = f.head[:f.stack.payload]
	if err := f.checkSizes(f.stack.payload + SignatureLen); err != nil {
		return nil, err
	}
	return f, errors.Join(f.addPatches(), f.prepareEnd())
}

// prepareEnd has the end of a flow be a UDP datagram where its frames have no address of IP and
// its path has: an answer needs one, and the port that it goes to.
func (f *Flow) prepareEnd() error {
	if f.stack.udp != 0 || f.c.Path.SrcPort == 0 {
		return nil
	}
	c := f.c
	c.Kind = KindUDP
	f.ending = make([]byte, maxHeaders)
	f.endings = putHeaders(f.ending, &c)
	if n := f.endings.payload + SignatureLen; n > f.c.MaxFrame {
		return wrong("the end of a flow has %d bytes, and the interface takes %d", n, f.c.MaxFrame)
	}
	return nil
}

// checkSizes refuses sizes that frames cannot have.
func (f *Flow) checkSizes(least int) error {
	low, high := f.c.Sizes.Min(), f.c.Sizes.Max()
	switch {
	case low < uint64(least):
		return wrong("frames of %d bytes, and with their signature these have at least %d",
			low, least)
	case high > uint64(f.c.MaxFrame):
		return wrong("frames of %d bytes, and the interface takes %d%s", high, f.c.MaxFrame,
			map[bool]string{true: " in these headers"}[f.c.Wrap != nil])
	}
	return nil
}

// addPatches finds where the fields of headers lie that vary.
func (f *Flow) addPatches() error {
	for _, v := range f.c.Vary {
		if v.Field >= firstRoCE && f.c.Kind == KindRoCE {
			continue
		}
		p, err := f.stack.newPatch(v)
		if err != nil {
			return err
		}
		f.patches = append(f.patches, p)
	}
	return nil
}

// Next writes the next frame, made at a time in nanoseconds, and returns its length: 0 when it
// cannot be made, which Err explains. frame must have the MaxFrame bytes of the Config. Of a
// frame that is put into segments each is one, and Left tells of those to come.
func (f *Flow) Next(frame []byte, now int64) int {
	switch {
	case f.Left() > 0:
		return f.c.Wrap.Rest(frame)
	case f.inner == nil:
		return f.nextBare(frame, now)
	}
	return f.wrap(frame, f.inner[:f.nextBare(f.inner, now)])
}

// Left is how many segments of the frame before are still to be written: they go before all else.
func (f *Flow) Left() int {
	if !f.c.Wrap.segments() {
		return 0
	}
	return f.c.Wrap.Left()
}

// Held reports whether a frame is kept back that is to come behind the one before: one that was
// swapped, or one that goes twice. It is what Next writes next, once nothing is Left.
func (f *Flow) Held() bool { return f.heldLen > 0 }

// Last has no frame kept back from now on, because nothing might be written behind the next one:
// that is not swapped and goes once.
func (f *Flow) Last() { f.last = true }

// nextBare is Next of frames that are in no others.
func (f *Flow) nextBare(frame []byte, now int64) int {
	if f.heldLen > 0 {
		n := copy(frame, f.held[:f.heldLen])
		f.heldLen = 0
		return n
	}
	if len(f.faults.rules) == 0 {
		return f.makeBare(frame, now, Data, 0)
	}
	set := f.possible(f.faults.of(f.seq))
	if f.last {
		set &^= 1<<FaultSwap | 1<<FaultDuplicate
	}
	f.inject(set)
	n := f.makeBare(frame, now, Data, set)
	switch {
	case set>>FaultGap&1 != 0:
		n = f.makeBare(frame, now, Data, 0)
	case set>>FaultDuplicate&1 != 0:
		f.heldLen = copy(f.held, frame[:n])
	case set>>FaultSwap&1 != 0:
		f.heldLen = copy(f.held, frame[:n])
		n = f.makeBare(frame, now, Data, 0)
	}
	return n
}

// End writes the frame that says that the flow is over, and returns its length. It may be
// written more than once: frames are lost. Fields of its headers do not vary: it comes from
// where an answer is waited for. Of frames without an address of IP it is a UDP datagram, if the
// Path has addresses and a source port. Of a flow that is Silent there is none, and the length is
// 0. It is in one frame, and what is Left of the one before is given up.
func (f *Flow) End(frame []byte, now int64) int {
	if f.Silent() {
		return 0
	}
	return f.make(frame, now, End, 0)
}

// Err is why a frame could not be made, nil as long as all could.
func (f *Flow) Err() error { return f.err }

// Sent is how many frames the flow had, with those that are missing on purpose.
func (f *Flow) Sent() uint64 { return f.seq }

// Signed is how many of those have a signature, which alone a sink can count: RoCE packets without
// a payload, such as requests of a READ and CNPs, have none, nor have frames of PFC.
func (f *Flow) Signed() uint64 { return f.signed }

// Injected is how often each mistake was made.
func (f *Flow) Injected() [NumFaults]uint64 { return f.injected }

// make writes one frame, in another if there is one.
func (f *Flow) make(frame []byte, now int64, kind SignatureKind, set uint8) int {
	if f.inner == nil {
		return f.makeBare(frame, now, kind, set)
	}
	return f.wrap(frame, f.inner[:f.makeBare(f.inner, now, kind, set)])
}

// wrap puts a frame into another.
func (f *Flow) wrap(frame, inner []byte) int {
	n, err := f.c.Wrap.Put(frame, inner)
	if err != nil {
		if f.err == nil {
			f.err = fmt.Errorf("gen: frame %d of flow %d: %w", f.seq, f.c.Flow, err)
		}
		return 0
	}
	return n
}

// makeBare writes one frame that is in no other.
func (f *Flow) makeBare(frame []byte, now int64, kind SignatureKind, set uint8) int {
	if f.c.Kind == KindPFC {
		return f.makePFC(frame)
	}
	s := Signature{Kind: kind, Run: f.c.Run, Flow: f.c.Flow, Seq: f.signed, Time: now}
	if kind == End && f.ending != nil {
		frame = frame[:copy(frame, f.ending[:f.endings.payload])+SignatureLen]
		s.Put(frame[f.endings.payload:])
		f.endings.finishUDP(frame)
		return len(frame)
	}
	if kind == Data {
		f.seq++
	}
	if f.roce != nil {
		return f.makePacket(frame, &s, set)
	}
	if kind == Data {
		f.signed++
	}
	n := int(f.c.Sizes.Next())
	if kind == End && f.c.Wrap.segments() {
		n = min(n, f.c.Wrap.One)
	}
	frame = frame[:n]
	copy(frame, f.head)
	body := frame[f.stack.payload:]
	s.Put(body)
	copy(body[SignatureLen:], f.payload[:len(body)-SignatureLen])
	if kind == Data {
		for i := range f.patches {
			f.patches[i].apply(frame)
		}
	}
	switch s := &f.stack; {
	case s.udp == 0:
	case s.ipv6 || len(f.patches) > 0:
		s.finishUDP(frame)
	default:
		s.finishSame(frame)
	}
	return n
}

// framing is that of the packets of a path, by its addresses.
func framing(p *wire.Path) wire.Framing {
	switch {
	case p.Framing != wire.FramingNone:
		return p.Framing
	case p.Dst.IsIPv4():
		return wire.FramingV2IPv4
	}
	return wire.FramingV2IPv6
}
