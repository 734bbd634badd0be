package traffic

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"xroce/encap"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// An envelope is what frames of a flow are put into: the headers of a format of encap, in an
// Ethernet frame or in a packet for a UD queue pair, or in several where it has no room.
type envelope struct {
	format encap.Template
	ether  []byte // the Ethernet header before native packets, nil for datagrams
	ids    *atomic.Uint32
	cut    encap.Cut // what is left of the frame before

	roce wire.Template
	bth  wire.BTH
	deth wire.DETH
	ipID uint16
}

// Lengths in bytes, and types, of Ethernet.
const (
	etherLen = 14
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
)

// udHeaders are those before the payload of a datagram for a queue pair.
const udHeaders = wire.BTHLen + wire.DETHLen

// wrap makes the envelope of a flow whose own frames go the same way. Flows that come from one
// address have the IDs of their segments together.
func wrap(name string, c *gen.Config, ids *atomic.Uint32) (*gen.Wrap, error) {
	f, err := encap.ParseFormat(name)
	if err != nil {
		return nil, badPlan("%v", err)
	}
	e := &envelope{ids: ids, format: encap.Template{
		Format: f, HopLimit: c.Path.HopLimit, TClass: c.Path.TClass, SGID: c.Path.Src,
		DGID: c.Path.Dst, SLID: lid(c.Path.SrcMAC), DLID: lid(c.Path.DstMAC),
	}}
	spec := f.Spec()
	switch {
	case spec.Carriers&encap.Native != 0:
		e.ether = etherHeader(&c.Path, spec.EtherType)
		e.format.Room = min(spec.Room, c.MaxFrame-len(e.ether))
	case spec.Carriers&encap.Datagrams != 0:
		if err := e.datagrams(c); err != nil {
			return nil, err
		}
	default:
		return nil, badPlan("format %s is of connections, and here are datagrams", name)
	}
	if err := e.format.Validate(); err != nil {
		return nil, badPlan("%v", err)
	}
	kind, before := e.inside(c)
	one, most := e.format.Max(kind), e.format.Largest(kind)
	if most == 0 || before == 0 && !spec.Carries(encap.Ethernet) {
		return nil, badPlan("format %s does not carry frames of %s", name, c.Kind)
	}
	w := &gen.Wrap{Max: most + before, Put: e.put}
	if most > one {
		w.One, w.Rest, w.Left = one+before, e.rest, e.cut.Packets
	}
	return w, nil
}

// lid is a local identifier of a MAC address; zero is none (IBA 4.1.3).
func lid(mac [6]byte) uint16 { return max(1, binary.BigEndian.Uint16(mac[4:])&0xbfff) }

// datagrams prepares packets for a queue pair.
func (e *envelope) datagrams(c *gen.Config) error {
	path := c.Path
	if path.Framing == wire.FramingNone {
		path.Framing = wire.FramingV2IPv6
		if path.Dst.IsIPv4() {
			path.Framing = wire.FramingV2IPv4
		}
	}
	if err := e.roce.Init(path); err != nil {
		return err
	}
	r := &c.RoCE
	e.bth = wire.BTH{
		Opcode: wire.UDSendOnly, M: true, PKey: r.PKey, DestQP: r.DestQP, PSN: r.PSN,
	}
	if e.bth.PKey == 0 {
		e.bth.PKey = wire.DefaultPKey
	}
	e.deth = wire.DETH{QKey: r.QKey, SrcQP: r.SrcQP}
	// The padding of a packet is at most three bytes.
	e.format.Room = min(e.format.Format.Spec().Room, wire.MTU4096.Bytes(),
		(c.MaxFrame-e.roce.FrameLen(udHeaders))&^3)
	return nil
}

// inside says what of the frames of a flow is carried, and how many bytes before that are not:
// the Ethernet header, where IP packets are carried and frames are not.
func (e *envelope) inside(c *gen.Config) (k encap.Kind, before int) {
	switch {
	case e.format.Format.Spec().Carries(encap.Ethernet):
		return encap.Ethernet, 0
	case c.Kind != gen.KindUDP && c.Kind != gen.KindRoCE || c.Path.Framing == wire.FramingV1:
		return 0, 0
	}
	before, k = etherLen, encap.IPv6
	before += c.Path.Tags.Len()
	if c.Path.Dst.IsIPv4() {
		k = encap.IPv4
	}
	return k, before
}

// put is that of a gen.Wrap.
func (e *envelope) put(frame, inner []byte) (int, error) {
	kind := encap.Ethernet
	if !e.format.Format.Spec().Carries(kind) {
		kind, inner = datagramOf(inner)
	}
	id := uint16(0)
	if len(inner) > e.format.Max(kind) {
		id = uint16(e.ids.Add(1))
	}
	cut, reason := e.format.Cut(kind, inner, id)
	if reason != encap.OK {
		return 0, fmt.Errorf("a frame of %d bytes in format %s: %w", len(inner), e.format.Format,
			reason)
	}
	e.cut = cut
	return e.rest(frame), nil
}

// rest is that of a gen.Wrap.
func (e *envelope) rest(frame []byte) int {
	at := len(e.ether)
	if e.ether == nil {
		at = e.roce.Len() + udHeaders
	}
	n := e.cut.Next(frame[at:][:e.format.Room])
	if e.ether != nil {
		return copy(frame, e.ether) + n
	}
	pad := -n & 3
	clear(frame[at+n:][:pad])
	e.bth.PadCnt = uint8(pad)
	b := frame[e.roce.Len():]
	e.bth.Put(b)
	e.deth.Put(b[wire.BTHLen:])
	e.bth.PSN = e.bth.PSN.Add(1)
	e.ipID++
	return e.roce.Seal(frame, udHeaders+n+pad, e.ipID)
}

// datagramOf is the IP packet in a frame.
func datagramOf(frame []byte) (encap.Kind, []byte) {
	_, etherType, at, _ := wire.ParseTags(frame)
	if etherType == typeIPv4 {
		return encap.IPv4, frame[at:]
	}
	return encap.IPv6, frame[at:]
}

// etherHeader is the header of frames of a path.
func etherHeader(p *wire.Path, etherType uint16) []byte {
	b := append(p.DstMAC[:len(p.DstMAC):len(p.DstMAC)], p.SrcMAC[:]...)
	b = append(b, make([]byte, p.Tags.Len())...)
	p.Tags.Put(b[len(b)-p.Tags.Len():])
	return binary.BigEndian.AppendUint16(b, etherType)
}
