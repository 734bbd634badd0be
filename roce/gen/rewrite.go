package gen

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// A Rewrite says what the packets of a capture get in place of what they had. Path is the way
// they go; source port, traffic class and hop limit stay those of each packet, but for TOS. What
// is nil stays as it was.
type Rewrite struct {
	Path   wire.Path
	DestQP *uint32           // of all packets
	QPs    map[uint32]uint32 // others for some QPs, wherever they are named
	PSN    *wire.PSN         // of the first request to each QP; the next keep their distance
	PKey   *uint16
	QKey   *uint32
	RKey   *uint32 // of WRITEs, READs, atomics, FLUSHes and SENDs with Invalidate
	VA     *uint64 // the first address of each QP; the next keep their distance
	TOS    *uint8
}

// maxReplayed is how many QPs are told apart, which a hostile file decides about: 3 MB.
const maxReplayed = 1 << 16

// A Rewriter makes frames of packets of a capture. One caller at a time.
type Rewriter struct {
	c        Rewrite
	maxFrame int
	template wire.Template
	path     wire.Path // of the template
	qps      map[uint32]*replayed
	buf      []byte
	ipID     uint16
}

// replayed is what is known of a QP.
type replayed struct {
	psn    uint32 // what is added to PSNs
	hasPSN bool
	va     uint64 // what is added to addresses
	hasVA  bool
}

// NewRewriter makes one for frames of at most so many bytes. The error wraps ErrConfig or
// wire.ErrPath.
func NewRewriter(c Rewrite, maxFrame int) (*Rewriter, error) {
	r := &Rewriter{
		c: c, maxFrame: maxFrame, path: c.Path, qps: map[uint32]*replayed{},
		buf: make([]byte, maxFrame+wire.GRHLen),
	}
	r.path.Framing = framing(&r.path)
	if c.DestQP != nil && *c.DestQP > 0xffffff || c.PSN != nil && *c.PSN > 0xffffff {
		return nil, wrong("QP numbers and PSNs have 24 bits")
	}
	for from, to := range c.QPs {
		if from > 0xffffff || to > 0xffffff {
			return nil, wrong("QP numbers have 24 bits, and 0x%x=0x%x has more", from, to)
		}
	}
	return r, r.template.Init(r.path)
}

// Write writes the frame of a packet that was decoded, with a right ICRC, and returns its length:
// 0 for one that is too long for the interface. frame must have room for maxFrame bytes. More
// than 65536 QPs are an error.
func (r *Rewriter) Write(frame []byte, p *wire.Packet) (int, error) {
	if err := r.readdress(p); err != nil {
		return 0, err
	}
	n := p.TransportLen() - wire.ICRCLen
	if r.template.FrameLen(n) > r.maxFrame || p.NetworkLen() > len(r.buf) {
		return 0, nil
	}
	if _, ok := p.CopyTo(r.buf); !ok {
		return 0, nil
	}
	b := frame[r.template.Len():]
	copy(b, r.buf[p.NetworkLen()-p.TransportLen():][:n])
	qp, err := r.qp(p.BTH.DestQP)
	if err != nil {
		return 0, err
	}
	r.bth(b, p, qp)
	r.extended(b, p, qp)
	r.ipID++
	return r.template.Seal(frame, n, r.ipID), nil
}

// readdress makes the template that of a packet.
func (r *Rewriter) readdress(p *wire.Packet) error {
	path := r.path
	path.TClass, path.SrcPort = p.TClass, p.SrcPort
	if r.c.TOS != nil {
		path.TClass = *r.c.TOS
	}
	if p.SrcPort == 0 { // of RoCE v1 and native packets
		path.SrcPort = r.c.Path.SrcPort
	}
	if path.HopLimit = p.HopLimit; path.HopLimit == 0 {
		path.HopLimit = 64
	}
	if path == r.path {
		return nil
	}
	r.path = path
	return r.template.Init(path)
}

// qp finds what is known of a destination.
func (r *Rewriter) qp(qpn uint32) (*replayed, error) {
	q := r.qps[qpn]
	if q == nil {
		if len(r.qps) == maxReplayed {
			return nil, wrong("the capture has packets to more than %d QPs", maxReplayed)
		}
		q = new(replayed)
		r.qps[qpn] = q
	}
	return q, nil
}

// bth rewrites the base transport header. PSNs of answers are those of the other direction, and
// stay.
func (r *Rewriter) bth(b []byte, p *wire.Packet, q *replayed) {
	h := p.BTH
	if to, ok := r.c.QPs[h.DestQP]; ok {
		h.DestQP = to
	} else if r.c.DestQP != nil {
		h.DestQP = *r.c.DestQP
	}
	if r.c.PKey != nil {
		h.PKey = *r.c.PKey
	}
	if r.c.PSN != nil && p.Spec.Is(wire.ClassRequest) {
		if !q.hasPSN {
			q.psn, q.hasPSN = uint32(r.c.PSN.Sub(uint32(h.PSN))), true
		}
		h.PSN = h.PSN.Add(q.psn)
	}
	h.Put(b)
}

// extended rewrites the headers that name a key, an address or another queue pair.
func (r *Rewriter) extended(b []byte, p *wire.Packet, q *replayed) {
	at := func(h wire.Header) []byte { return b[p.Spec.Offsets[h]:] }
	if p.Spec.Has(wire.HasDETH) {
		h := p.DETH()
		if to, ok := r.c.QPs[h.SrcQP]; ok {
			h.SrcQP = to
		}
		if r.c.QKey != nil {
			h.QKey = *r.c.QKey
		}
		h.Put(at(wire.HeaderDETH))
	}
	if p.Spec.Has(wire.HasRETH) {
		h := p.RETH()
		h.VA, h.RKey = r.address(q, h.VA), r.key(h.RKey)
		h.Put(at(wire.HeaderRETH))
	}
	if p.Spec.Has(wire.HasAtomicETH) {
		h := p.AtomicETH()
		h.VA, h.RKey = r.address(q, h.VA), r.key(h.RKey)
		h.Put(at(wire.HeaderAtomicETH))
	}
	if p.Spec.Has(wire.HasIETH) && r.c.RKey != nil {
		binary.BigEndian.PutUint32(at(wire.HeaderIETH), *r.c.RKey)
	}
}

func (r *Rewriter) key(k uint32) uint32 {
	if r.c.RKey != nil {
		return *r.c.RKey
	}
	return k
}

func (r *Rewriter) address(q *replayed, va uint64) uint64 {
	if r.c.VA == nil {
		return va
	}
	if !q.hasVA {
		q.va, q.hasVA = *r.c.VA-va, true
	}
	return va + q.va
}
