package encap

import (
	"encoding/binary"
	"fmt"

	"xroce/roce/wire"
)

// A Field is a part of a packet, with the name of its header and what that says.
type Field struct {
	Name  string
	Bytes []byte
	Text  string
}

// Fields names all parts of a packet, which Decode or DecodeNative reads: its headers, what it
// carries, and what is behind that. For people; it allocates. A packet that is refused has a
// reason and no fields.
func Fields(f Format, b []byte) ([]Field, Reason) {
	var p Packet
	var list []Field
	at := 0
	add := func(name string, n int, text string) {
		list = append(list, Field{name, b[at:][:n], text})
		at += n
	}
	if f <= RawGRH {
		if r := p.DecodeNative(b, nil); r != OK {
			return nil, r
		}
		b = b[:4*int(p.LRH.PktLen)+wire.VCRCLen]
		p.addNative(b, add)
	} else {
		if r := p.Decode(f, b); r != OK {
			return nil, r
		}
		p.addPayload(b, add)
	}
	what := p.Kind.String() + " datagram"
	if !p.Segment.Whole() {
		what = fmt.Sprintf("segment %d of frame %d", p.Segment.Index, p.Segment.ID)
	}
	add(what, p.Len(), fmt.Sprintf("%d bytes", p.Len()))
	switch {
	case f <= RawGRH:
		if pad := len(b) - wire.VCRCLen - at; pad > 0 {
			add("pad", pad, "")
		}
		add("VCRC", wire.VCRCLen, fmt.Sprintf("0x%04x", binary.LittleEndian.Uint16(b[at:])))
	case f == VNIC:
		pad := int(b[len(b)-vnicTail] & vnicPadMask)
		if fcs := len(b) - vnicTail - pad - at; fcs > 0 {
			add("FCS", fcs, "")
		}
		if pad > 0 {
			add("pad", pad, "")
		}
		add("tail", vnicTail, fmt.Sprintf("pad=%d", b[at]&vnicPadMask))
	case len(b) > at:
		add("FCS", len(b)-at, "")
	}
	return list, OK
}

// addNative names the headers of a native packet.
func (p *Packet) addNative(b []byte, add func(name string, n int, text string)) {
	add("LRH", wire.LRHLen, p.LRH.String())
	switch p.Format {
	case Raw:
		rwh, _ := wire.ParseRWH(b[wire.LRHLen:]) // it was parsed before
		text := rwh.String()
		if pad := b[wire.LRHLen+rwhOffPad]; pad&rwhPadTold != 0 {
			text += fmt.Sprintf(" pad=%d", pad&rwhPadMask)
		}
		add("RWH", wire.RWHLen, text)
		if rwh.EtherType == EtherTypeSegment {
			addWord(b[wire.LRHLen+wire.RWHLen:], add)
		}
	case RawGRH:
		add("GRH", wire.GRHLen, p.GRH.String())
	}
}

// addPayload names the headers of a payload.
func (p *Packet) addPayload(b []byte, add func(name string, n int, text string)) {
	switch p.Format {
	case EoIB:
		addWord(b, add)
	case VNIC:
		add("VNIC", vnicOffWord, fmt.Sprintf("switch=%d", p.Switch))
		addWord(b[vnicOffWord:], add)
	default:
		add("IPoIB", IPoIBLen, fmt.Sprintf("type=0x%04x", binary.BigEndian.Uint16(b)))
	}
}

func addWord(b []byte, add func(name string, n int, text string)) {
	w, _ := ParseWord(b) // it was parsed before
	add("EoIB", WordLen, w.String())
}
