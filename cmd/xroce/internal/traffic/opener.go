package traffic

import (
	"encoding/binary"
	"hash/maphash"

	"xroce/encap"
	"xroce/roce/clock"
	"xroce/roce/wire"
)

// An Opener finds the frames that are in the headers of a format of encap, and puts those together
// that came in segments. What it remembers of those is bounded, in memory and in time. One caller
// at a time.
type Opener struct {
	format  encap.Format
	native  bool
	packet  encap.Packet
	roce    wire.Packet
	payload []byte // of a packet
	frame   []byte // that was in it

	segments *encap.Reassembler
	now      clock.Time
	seed     maphash.Seed // of sources
	came     uint64       // segments
}

// A SegmentCount is what came of frames in segments.
type SegmentCount struct {
	Segments uint64 // that came
	encap.ReassemblyStats
	Unfinished uint64 // frames of which segments are still missing
}

// Bounds of what is remembered: each flow of a generator on a queue of its own may have one frame
// under way.
const (
	reassembled = 128
	ofSource    = 64
)

// NewOpener makes an Opener for the format of this name.
func NewOpener(name string) (*Opener, error) {
	f, err := encap.ParseFormat(name)
	if err != nil {
		return nil, err
	}
	spec := f.Spec()
	if spec.Carriers&(encap.Native|encap.Datagrams) == 0 {
		return nil, badPlan("format %s is of connections, and datagrams are counted here", name)
	}
	o := &Opener{
		format: f, native: spec.Carriers&encap.Native != 0, payload: make([]byte, spec.Room),
		frame: make([]byte, etherLen+wire.MaxTags*wire.TagLen+spec.Room), seed: maphash.MakeSeed(),
	}
	o.segments, err = encap.NewReassembler(encap.ReassemblerConfig{
		Frames: reassembled, PerSource: ofSource,
	})
	return o, err
}

// Expire tells that it is so late, and gives up frames whose segments are missing for too long.
func (o *Opener) Expire(now clock.Time) {
	o.now = now
	if o.came > 0 {
		o.segments.HandleDeadline(now)
	}
}

// Segments is what came of frames in segments.
func (o *Opener) Segments() SegmentCount {
	return SegmentCount{o.came, o.segments.Stats(), uint64(o.segments.Held())}
}

// EtherType is that of the frames that it opens, 0 for those of RoCE.
func (o *Opener) EtherType() uint16 { return o.format.Spec().EtherType }

// Open returns the frame in another, which came in one or two pieces. An IP packet gets the
// Ethernet header of the frame around it. It is valid until the next call. ok is false for what
// has none, or is damaged; a segment behind which others are missing is ok and no frame.
func (o *Opener) Open(head, tail []byte) (frame []byte, ok bool) {
	_, _, at, whole := wire.ParseTags(head)
	if !whole || !o.decode(head, tail, at) {
		return nil, false
	}
	if !o.packet.Segment.Whole() {
		o.came++
		frame, reason := o.segments.Add(o.now, o.source(head), &o.packet)
		return frame, reason == encap.OK || reason == encap.Duplicate
	}
	b := o.frame
	switch o.packet.Kind {
	case encap.Ethernet:
		return b[:o.packet.CopyTo(b)], true
	case encap.IPv4, encap.IPv6:
		etherType := uint16(typeIPv4)
		if o.packet.Kind == encap.IPv6 {
			etherType = typeIPv6
		}
		copy(b, head[:at]) // the tags, too: an answer goes the same way
		binary.BigEndian.PutUint16(b[at-2:], etherType)
		return b[:at+o.packet.CopyTo(b[at:])], true
	}
	return nil, false
}

// source stands for whom the IDs of segments are of: a MAC address, or a queue pair of a host.
func (o *Opener) source(head []byte) uint64 {
	if o.native {
		return binary.BigEndian.Uint64(head[4:]) << 16 // without two bytes of the destination
	}
	return maphash.Comparable(o.seed, source{o.roce.Src, o.roce.DETH().SrcQP})
}

// A source is a queue pair.
type source struct {
	gid wire.GID
	qpn uint32
}

// decode reads the headers, whose first is at a place in a frame.
func (o *Opener) decode(head, tail []byte, at int) bool {
	if o.native {
		return binary.BigEndian.Uint16(head[at-2:]) == encap.EtherTypeNative &&
			o.packet.DecodeNative(head[at:], tail) == encap.OK && o.packet.Format == o.format
	}
	p := &o.roce
	if p.Decode(head, tail) != wire.OK || !p.VerifyICRC() || p.BTH.Opcode != wire.UDSendOnly ||
		p.PayloadLen() > len(o.payload) {
		return false
	}
	return o.packet.Decode(o.format, o.payload[:p.CopyPayload(o.payload)]) == encap.OK
}
