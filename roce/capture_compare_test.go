package roce_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"xroce/roce/wire"
)

// Answers are what one side answered, as far as it must be equal.
type responses struct {
	texts      []string
	began      bool
	last, read wire.PSN // of READ responses: the last one, and the furthest
}

func (a *responses) add(text string) {
	if text != "" {
		a.texts = append(a.texts, text)
	}
}

// text is what must be equal in an answer. Soft-RoCE counts no credits.
func (a *responses) text(p *wire.Packet) string {
	name, again := p.Spec.Name, false
	if p.Spec.Is(wire.ClassRead) {
		again = a.began && !p.BTH.PSN.After(a.read)
		if !again {
			a.read = p.BTH.PSN
		}
		a.began, a.last = true, p.BTH.PSN
	}
	text := fmt.Sprintf("%s psn 0x%06x", name, uint32(p.BTH.PSN))
	if p.Spec.Has(wire.HasAETH) && !again {
		text += fmt.Sprintf(" msn %d", p.AETH().MSN)
		if s := p.AETH().Syndrome; !s.IsACK() {
			text += " " + s.String()
		}
	}
	if p.Spec.Is(wire.ClassAck | wire.ClassAtomic) {
		text += fmt.Sprintf(" was 0x%016x", p.AtomicAckETH().OrigData)
	}
	if p.PayloadLen() > 0 {
		text += fmt.Sprintf(" %x", p.Payload)
	}
	return text
}

// fromFirst is the text of an answer of Soft-RoCE. It goes on with MIDDLE or LAST
// in the answer to a READ that was repeated from there; we begin anew with FIRST
// or ONLY, whose AETH then has nothing to compare with.
func (a *responses) fromFirst(p *wire.Packet) (text string, changed bool) {
	starts := a.began && p.BTH.PSN != a.last.Add(1)
	text = a.text(p)
	for _, c := range [][2]wire.Opcode{
		{wire.RCReadRespMiddle, wire.RCReadRespFirst}, {wire.RCReadRespLast, wire.RCReadRespOnly},
	} {
		if starts && p.BTH.Opcode == c[0] {
			return strings.Replace(text, c[0].Spec().Name, c[1].Spec().Name, 1), true
		}
	}
	return text, false
}

// freeFields returns a frame without what each stack may choose: the IPv4
// identification, the source port of datagrams, MigReq, and the checksums over
// them; and AckReq inside of messages, where we ask less often.
func freeFields(frame []byte) []byte {
	var p wire.Packet
	p.Decode(frame, nil)
	b := bytes.Clone(frame)
	network := b[len(b)-p.NetworkLen():]
	transport := b[len(b)-p.TransportLen():]
	udp := network[len(network)-len(transport)-8:]
	if p.Framing == wire.FramingV2IPv4 {
		clear(network[4:6])
		clear(network[10:12])
	}
	if p.Spec.Has(wire.HasDETH) {
		clear(udp[0:2])
	}
	transport[1] &^= 0x40
	if !p.Spec.Is(wire.ClassLast) {
		transport[8] &^= 0x80
	}
	clear(transport[len(transport)-wire.ICRCLen:])
	return b
}

// arriving is packet i as it comes to us.
func (r *replay) arriving(i int) *wire.Packet {
	r.t.Helper()
	frame := r.withKey(i)
	cut := len(frame)
	if r.halve {
		cut -= r.c.packets[i].PayloadLen() / 2
	}
	p := new(wire.Packet)
	if reason := p.Decode(frame[:cut], frame[cut:]); reason != wire.OK {
		r.t.Fatalf("packet %d: %s", i, reason)
	}
	if p.VerifyICRC() != r.c.packets[i].VerifyICRC() {
		r.t.Fatalf("packet %d: the ICRC is wrong, or wrongly right", i)
	}
	return p
}

// withKey is frame i with our key in place of the capture's.
func (r *replay) withKey(i int) []byte {
	r.t.Helper()
	p, frame := r.c.packets[i], r.c.frames[i]
	at := -1
	switch {
	case !p.VerifyICRC():
	case p.Spec.Has(wire.HasRETH):
		at = int(p.Spec.Offsets[wire.HeaderRETH]) + 8
	case p.Spec.Has(wire.HasAtomicETH):
		at = int(p.Spec.Offsets[wire.HeaderAtomicETH]) + 8
	case p.Spec.Has(wire.HasIETH):
		at = int(p.Spec.Offsets[wire.HeaderIETH])
	}
	if at < 0 {
		return frame
	}
	frame = bytes.Clone(frame)
	transport := frame[len(frame)-p.TransportLen():]
	region := r.keyed[binary.BigEndian.Uint32(transport[at:])]
	if region == nil {
		return frame // a wrong one, in the capture too
	}
	binary.BigEndian.PutUint32(transport[at:], region.RKey())
	end := len(frame) - wire.ICRCLen
	binary.LittleEndian.PutUint32(frame[end:],
		wire.ICRC(p.Framing, frame[len(frame)-p.NetworkLen():end], nil))
	return frame
}
