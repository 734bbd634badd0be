package conversation

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// parseSent reads: > PACKET [FIELD=VALUE...] [len=N | data=DATA], the packet
// that the QP must send next, or > nothing.
func parseSent(a *args) action {
	if a.flag("nothing") {
		return func(p *player) error {
			if err := p.quiet(); err != nil {
				return err
			}
			return nil
		}
	}
	op, _, ok := choose(a, packets)
	if !ok {
		a.fail(a.pos, "the name of a packet, or nothing, is missing")
	}
	want, payload := readFields(a, op.Spec()), readPayload(a)
	return func(p *player) error { return p.expectPacket(op, want, payload) }
}

// expectPacket takes the next packet and compares everything in it.
func (p *player) expectPacket(op wire.Opcode, want []fieldValue, payload data) error {
	got, err := p.next()
	if err != nil {
		return err
	}
	if got == nil {
		return fmt.Errorf("got: > nothing; %s", p.qp.Snapshot())
	}
	line := p.describe(got)
	n := got.NetworkLen() + ethernetLen
	if err := roctest.Frame(p.frame[:n]); err != nil {
		return fmt.Errorf("got: > %s: %w", line, err)
	}
	same, missing, err := p.match(got, op, want)
	switch {
	case err != nil:
		return err
	case !same || got.PayloadLen() != payload.n || got.BTH.PadCnt != wire.PadCnt(payload.n):
		return fmt.Errorf("got: > %s", line)
	case missing != nil:
		return fmt.Errorf("the file has to say more: %s; got: > %s",
			strings.Join(missing, ", "), line)
	case payload.opaque:
		return nil
	}
	b, err := p.content(payload)
	if err != nil {
		return err
	}
	for i := range b {
		if got.Payload[i] != b[i] {
			return fmt.Errorf("got another payload from byte %d on: %x, want %x", i,
				got.Payload[i:min(len(b), i+16)], b[i:min(len(b), i+16)])
		}
	}
	return nil
}

// ethernetLen is the length of an Ethernet header without a tag.
const ethernetLen = 14

// A received packet is one that the peer sends, with what is wrong about it.
type received struct {
	op      wire.Opcode
	raw     []byte // from the BTH to the ICRC, instead of all the fields
	fields  []fieldValue
	payload data
	path    wire.Path
	opcode  int // in the place of op, unless it has more than eight bits
	pad     int // PadCnt, unless it has more than eight bits
	badICRC bool
	refused wire.Reason // what the decoder has to say
}

// parseReceived reads: < PACKET [FIELD=VALUE...] [len=N | data=DATA] and
// modifications, or < hex BYTES...
func parseReceived(a *args) action {
	r := received{
		opcode: int(a.number("opcode", math.MaxUint16, math.MaxUint16)),
		pad:    int(a.number("pad", math.MaxUint16, math.MaxUint16)),
		path:   readPath(a), badICRC: a.flag("badicrc"),
		refused: read(a, "refused", oneOf(refusals), wire.OK),
	}
	if a.flag("hex") {
		var digits strings.Builder
		for a.left() {
			digits.WriteString(a.word("bytes"))
		}
		var err error
		if r.raw, err = hex.DecodeString(digits.String()); err != nil || len(r.raw) < wire.BTHLen {
			a.fail(a.pos, "want at least %d bytes in hexadecimal digits", wire.BTHLen)
		}
		return func(p *player) error { return p.receive(&r) }
	}
	var ok bool
	if r.op, _, ok = choose(a, packets); !ok {
		a.fail(a.pos, "the name of a packet is missing")
	}
	r.fields, r.payload = readFields(a, r.op.Spec()), readPayload(a)
	if r.payload.n > maxPayload {
		a.fail(a.pos, "%d bytes of payload, at most %d", r.payload.n, maxPayload)
	}
	return func(p *player) error { return p.receive(&r) }
}

// maxPayload leaves room for all headers in a frame.
const maxPayload = maxFrame - 256

// left reports whether there are bare words that nobody read.
func (a *args) left() bool {
	for i, w := range a.words {
		if _, isKey := keyOf(w.text); !isKey && !a.used[i] {
			return true
		}
	}
	return false
}

// readPath reads what is different about the way of a packet.
func readPath(a *args) wire.Path {
	path := pathBetween(peerHost, ownHost)
	for name, gid := range map[string]*wire.GID{"src": &path.Src, "dst": &path.Dst} {
		*gid = read(a, name, func(s string) (wire.GID, error) {
			addr, err := netip.ParseAddr(s)
			return wire.GIDFromAddr(addr), err
		}, *gid)
	}
	path.Framing = read(a, "framing", oneOf(map[string]wire.Framing{
		"v1": wire.FramingV1, "v2": wire.FramingV2IPv4, "v2-ipv6": wire.FramingV2IPv6,
	}), path.Framing)
	path.SrcPort = uint16(a.number("sport", 0xc000, math.MaxUint16))
	path.TClass = uint8(a.number("tclass", 0, math.MaxUint8))
	path.HopLimit = uint8(a.number("hoplimit", 64, math.MaxUint8))
	return path
}

// receive gives the QP the packet, unless the decoder refuses it.
func (p *player) receive(r *received) error {
	body := r.raw
	if body == nil {
		var err error
		if body, err = p.build(r); err != nil {
			return err
		}
	}
	var t wire.Template
	if err := t.Init(r.path); err != nil {
		return err
	}
	frame := make([]byte, t.FrameLen(len(body)))
	copy(frame[t.Len():], body)
	end := t.Seal(frame, len(body), 0)
	if r.badICRC {
		frame[end-1] ^= 1
	}
	var pkt wire.Packet
	switch got := pkt.Decode(frame[:end], nil); {
	case got != r.refused:
		return fmt.Errorf("the decoder says %s, not %s", got, r.refused)
	case got == wire.OK:
		p.qp.HandlePacket(p.now, &pkt)
	}
	return nil
}

// build makes the bytes from the BTH through the padding.
func (p *player) build(r *received) ([]byte, error) {
	var h headers
	spec := r.op.Spec()
	for i := range fields {
		fields[i].set(&h, fields[i].absent)
	}
	h.bth.Opcode, h.bth.DestQP = r.op, uint32(p.conf.qpn)
	payload, err := p.content(r.payload)
	if err != nil {
		return nil, err
	}
	h.bth.PadCnt = wire.PadCnt(len(payload))
	pad := int(h.bth.PadCnt)
	hasPSN := false
	for _, f := range r.fields {
		v, err := f.resolve(p)
		if err != nil {
			return nil, err
		}
		f.set(&h, v)
		hasPSN = hasPSN || f.name == "psn"
	}
	if !hasPSN && spec.Service != wire.ServiceCNP {
		return nil, errors.New("psn= is missing")
	}
	if r.pad != math.MaxUint16 {
		h.bth.PadCnt = uint8(r.pad)
	}
	if r.opcode != math.MaxUint16 {
		h.bth.Opcode = wire.Opcode(r.opcode)
	}
	start := wire.BTHLen + int(spec.HeaderLen)
	b := make([]byte, start+len(payload)+pad)
	h.put(spec, b)
	copy(b[start:], payload)
	return b, nil
}
