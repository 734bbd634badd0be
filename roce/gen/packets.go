package gen

import (
	"xroce/roce/wire"
)

// packets is what a flow of RoCE packets remembers.
type packets struct {
	template wire.Template
	framing  wire.Framing
	fields   RoCE // with what varies
	vary     []Vary
	i        int // place in the sequence
	psn      wire.PSN
	last     int // payload of the last packet of this message
	ipID     uint16
	ackNow   bool // this packet asks for an acknowledge, whatever it is
}

// initRoCE prepares a flow of RoCE packets.
func (f *Flow) initRoCE() error {
	r := &f.c.RoCE
	if len(r.Opcodes) == 0 {
		r.Opcodes = []wire.Opcode{wire.UDSendOnly}
	}
	if r.PKey == 0 {
		r.PKey = wire.DefaultPKey
	}
	if r.MTU == 0 {
		r.MTU = wire.MTU1024
	}
	if r.ReadLen == 0 {
		r.ReadLen = uint32(r.MTU.Bytes())
	}
	switch {
	case r.MTU.Bytes() == 0:
		return wrong("%d is no path MTU", r.MTU)
	case r.DestQP > 0xffffff || r.SrcQP > 0xffffff || r.PSN > 0xffffff:
		return wrong("QP numbers and PSNs have 24 bits")
	}
	p := &packets{fields: *r, psn: r.PSN, framing: framing(&f.c.Path)}
	f.c.Path.Framing = p.framing
	f.roce = p
	if err := p.template.Init(f.c.Path); err != nil {
		return err
	}
	f.placeHeaders()
	for _, v := range f.c.Vary {
		if v.Field >= firstRoCE {
			if err := v.fits(roceLen[v.Field]); err != nil {
				return err
			}
			p.vary = append(p.vary, v)
		}
	}
	if err := f.checkSequence(); err != nil {
		return err
	}
	if err := f.checkFaults(); err != nil {
		return err
	}
	return f.addPatches()
}

// placeHeaders finds where the headers of a RoCE packet lie.
func (f *Flow) placeHeaders() {
	s := &f.stack
	s.net = ethLen
	if tags := f.c.Path.Tags.Len(); tags > 0 {
		s.net += tags
		s.tag = s.net - vlanLen
	}
	s.payload = f.roce.template.Len()
	s.ipv6 = f.roce.framing != wire.FramingV2IPv4
	if f.roce.framing != wire.FramingV1 {
		s.udp = s.payload - udpLen
	}
}

// payloadOf is the payload of an opcode when frames have n bytes, in whole words.
func (p *packets) payloadOf(spec *wire.OpcodeSpec, n int) int {
	return (n - p.template.FrameLen(wire.BTHLen+int(spec.HeaderLen))) &^ 3
}

// Carries reports whether packets of an opcode have a payload of any length, and so a signature,
// by which a sink counts them.
func Carries(op wire.Opcode) bool { return carries(op.Spec()) }

func carries(spec *wire.OpcodeSpec) bool {
	return spec.Is(wire.ClassSend) || spec.Is(wire.ClassWrite) && !spec.Is(wire.ClassAtomicWrite)
}

// checkSequence refuses opcodes and sizes of which no packet can be made.
func (f *Flow) checkSequence() error {
	mtu := f.roce.fields.MTU.Bytes()
	for _, op := range f.c.RoCE.Opcodes {
		spec := op.Spec()
		longest := f.roce.template.FrameLen(wire.BTHLen + int(spec.HeaderLen) + mtu)
		switch {
		case !spec.Known:
			return wrong("nobody defined opcode %#x", uint8(op))
		case !carries(spec):
			continue
		case !spec.Is(wire.ClassLast):
			if longest > f.c.MaxFrame {
				return wrong("%s of path MTU %d has %d bytes, and the interface takes %d",
					spec.Name, mtu, longest, f.c.MaxFrame)
			}
			continue
		}
		least := longest - mtu + SignatureLen
		if err := f.checkSizes(least); err != nil {
			return err
		}
		if f.c.Sizes.Max() >= uint64(longest+4) {
			return wrong("%s of path MTU %d has at most %d bytes", spec.Name, mtu, longest)
		}
	}
	return nil
}

// message chooses the length of the message that begins at place i, and returns it.
func (f *Flow) message(i int) int {
	p := f.roce
	p.last = int(f.c.Sizes.Next())
	total := 0
	for n := range p.fields.Opcodes {
		spec := p.fields.Opcodes[(i+n)%len(p.fields.Opcodes)].Spec()
		if spec.Is(wire.ClassLast) || n > 0 && spec.Is(wire.ClassFirst) {
			return total + max(0, p.payloadOf(spec, p.last))
		}
		total += p.fields.MTU.Bytes()
	}
	return total
}

// makePacket writes one RoCE packet.
func (f *Flow) makePacket(frame []byte, s *Signature, set uint8) int {
	p := f.roce
	for i := range p.vary {
		p.fields.set(p.vary[i].Field, p.vary[i].Values.Next())
	}
	op := p.fields.Opcodes[p.i]
	if s.Kind == End { // in a packet of its own that has room for it
		op = endOpcode(op)
		p.last = p.template.FrameLen(wire.BTHLen + int(op.Spec().HeaderLen) + SignatureLen)
	}
	spec := op.Spec()
	message := 0
	if s.Kind == Data {
		if p.i == 0 || spec.Is(wire.ClassFirst) {
			message = f.message(p.i)
		}
		if p.i++; p.i == len(p.fields.Opcodes) {
			p.i = 0
		}
	}
	if set>>FaultOrder&1 != 0 {
		op = misplaced(op)
		spec = op.Spec()
	}
	n := f.putTransport(frame, op, spec, s, message, set)
	n = p.template.Seal(frame, n, p.ipID)
	p.ipID++
	if len(f.patches) > 0 && s.Kind == Data {
		f.repatch(frame[:n])
	}
	if set>>FaultBadICRC&1 != 0 {
		frame[n-1] ^= 0xff
	}
	return n
}

// repatch changes headers of a sealed packet, and seals it again.
func (f *Flow) repatch(frame []byte) {
	for i := range f.patches {
		f.patches[i].apply(frame)
	}
	if f.roce.framing == wire.FramingV2IPv4 {
		f.stack.finishIPv4(frame)
	}
	icrcOf(f.roce.framing, frame, f.stack.net)
}

// putTransport writes a packet from the BTH through the padding and returns how long that is.
func (f *Flow) putTransport(frame []byte, op wire.Opcode, spec *wire.OpcodeSpec, s *Signature,
	message int, set uint8,
) int {
	p := f.roce
	b := frame[p.template.Len():]
	body := b[wire.BTHLen+int(spec.HeaderLen):]
	n := 0
	switch {
	case carries(spec) && spec.Is(wire.ClassLast):
		n = min(p.payloadOf(spec, p.last), p.fields.MTU.Bytes())
	case carries(spec):
		n = p.fields.MTU.Bytes()
	case spec.Is(wire.ClassAtomicWrite):
		n = 8
	case op == wire.CNP:
		n = 16 // reserved (IBA A17.9.3)
	}
	clear(body[:n])
	if n >= SignatureLen && carries(spec) {
		s.Put(body)
		copy(body[SignatureLen:n], f.payload)
		if s.Kind == Data {
			f.signed++
		}
	}
	h := wire.BTH{
		Opcode: op, M: true, PKey: p.fields.PKey, DestQP: p.fields.DestQP, PSN: p.psn,
		AckReq: p.fields.AckReq && spec.Is(wire.ClassLast|wire.ClassRequest) || p.ackNow,
	}
	if op == wire.CNP {
		h.PSN, h.BECN, h.M = 0, true, false
	}
	h.Put(b)
	f.putExtended(b, spec, message, set)
	if s.Kind == Data {
		p.step(op, spec)
	}
	return wire.BTHLen + int(spec.HeaderLen) + n
}

// step goes to the PSN of the next packet: behind a READ request that is behind its response.
func (p *packets) step(op wire.Opcode, spec *wire.OpcodeSpec) {
	switch {
	case op == wire.CNP:
	case spec.Is(wire.ClassRead | wire.ClassRequest):
		p.psn = p.psn.Add(p.readSpan())
	default:
		p.psn = p.psn.Add(1)
	}
}

// readSpan is how many packets the response to a READ has.
func (p *packets) readSpan() uint32 {
	mtu := uint64(p.fields.MTU.Bytes())
	return max(1, uint32((uint64(p.fields.ReadLen)+mtu-1)/mtu))
}

// putExtended writes the extended headers of a packet whose BTH is at the begin of b.
func (f *Flow) putExtended(b []byte, spec *wire.OpcodeSpec, message int, set uint8) {
	r := &f.roce.fields
	key := r.RKey
	if set>>FaultBadKey&1 != 0 {
		key = ^key
	}
	at := func(h wire.Header) []byte { return b[spec.Offsets[h]:] }
	if spec.Has(wire.HasRDETH) {
		wire.RDETH{}.Put(at(wire.HeaderRDETH))
	}
	if spec.Has(wire.HasXRCETH) {
		wire.XRCETH{}.Put(at(wire.HeaderXRCETH))
	}
	if spec.Has(wire.HasDETH) {
		wire.DETH{QKey: r.QKey, SrcQP: r.SrcQP}.Put(at(wire.HeaderDETH))
	}
	if spec.Has(wire.HasFETH) {
		wire.FETH{PLT: wire.FlushGlobal}.Put(at(wire.HeaderFETH))
	}
	if spec.Has(wire.HasRETH) {
		length := uint32(message)
		if spec.Is(wire.ClassRead) || spec.Is(wire.ClassFlush) {
			length = r.ReadLen
		}
		if spec.Is(wire.ClassAtomicWrite) {
			length = 8
		}
		wire.RETH{VA: r.VA, RKey: key, DMALen: length}.Put(at(wire.HeaderRETH))
	}
	if spec.Has(wire.HasAtomicETH) {
		wire.AtomicETH{VA: r.VA &^ 7, RKey: key, SwapAdd: 1}.Put(at(wire.HeaderAtomicETH))
	}
	if spec.Has(wire.HasAETH) {
		wire.AETH{Syndrome: wire.ACKNoCredits}.Put(at(wire.HeaderAETH))
	}
	if spec.Has(wire.HasAPSN) {
		wire.APSN{}.Put(at(wire.HeaderAPSN))
	}
	if spec.Has(wire.HasAtomicAckETH) {
		wire.AtomicAckETH{}.Put(at(wire.HeaderAtomicAckETH))
	}
	if spec.Has(wire.HasImmDt) {
		wire.ImmDt{Data: uint32(f.seq)}.Put(at(wire.HeaderImmDt))
	}
	if spec.Has(wire.HasIETH) {
		wire.IETH{RKey: key}.Put(at(wire.HeaderIETH))
	}
}

// endOpcode is that of the packet that ends a flow: a datagram, or a SEND of one packet.
func endOpcode(op wire.Opcode) wire.Opcode {
	if only, ok := op.Spec().Service.Opcode(wire.RCSendOnly); ok {
		return only
	}
	return wire.UDSendOnly
}

// misplaced is an opcode that may not come where op may: the middle of a message where one
// begins, and the begin where it goes on.
func misplaced(op wire.Opcode) wire.Opcode {
	base := wire.RCSendMiddle
	if !op.Spec().Is(wire.ClassFirst) {
		base = wire.RCSendFirst
	}
	if other, ok := op.Spec().Service.Opcode(base); ok {
		return other
	}
	return wire.RCSendMiddle
}
