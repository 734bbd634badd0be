package roctest

import "xroce/roce/wire"

// Packet describes a packet to be built. Extended headers are written when the
// opcode has them. The zero value of a field is what most tests want.
type Packet struct {
	Opcode   wire.Opcode
	PSN      wire.PSN
	DestQP   uint32
	AckReq   bool
	SE       bool
	PKey     uint16 // 0 stands for wire.DefaultPKey
	RETH     wire.RETH
	AETH     wire.AETH
	Atomic   wire.AtomicETH
	OrigData uint64 // of an AtomicAckETH
	Imm      uint32
	IETH     uint32
	DETH     wire.DETH
	FETH     wire.FETH
	SRQN     uint32   // of an XRCETH
	Acked    wire.PSN // of an APSN
	Payload  []byte
	// BadICRC damages the checksum of the packet.
	BadICRC bool
}

// Frame builds the packet behind the headers of a template, with its ICRC.
func (p *Packet) Frame(t *wire.Template) []byte {
	spec := p.Opcode.Spec()
	headers := wire.BTHLen + int(spec.HeaderLen)
	pad := wire.PadCnt(len(p.Payload))
	n := headers + len(p.Payload) + int(pad)
	frame := make([]byte, t.FrameLen(n))
	b := frame[t.Len():]
	pkey := p.PKey
	if pkey == 0 {
		pkey = wire.DefaultPKey
	}
	wire.BTH{
		Opcode: p.Opcode, SE: p.SE, M: true, PadCnt: pad, PKey: pkey, DestQP: p.DestQP,
		AckReq: p.AckReq, PSN: p.PSN,
	}.Put(b)
	for h := range wire.Header(wire.NumHeaders) {
		if spec.Has(1 << h) {
			p.putHeader(h, b[spec.Offsets[h]:])
		}
	}
	copy(b[headers:], p.Payload)
	end := t.Seal(frame, n, 0)
	if p.BadICRC {
		frame[end-1] ^= 1
	}
	return frame[:end]
}

func (p *Packet) putHeader(h wire.Header, b []byte) {
	switch h {
	case wire.HeaderRETH:
		p.RETH.Put(b)
	case wire.HeaderAETH:
		p.AETH.Put(b)
	case wire.HeaderAPSN:
		wire.APSN{PSN: p.Acked}.Put(b)
	case wire.HeaderImmDt:
		wire.ImmDt{Data: p.Imm}.Put(b)
	case wire.HeaderIETH:
		wire.IETH{RKey: p.IETH}.Put(b)
	case wire.HeaderAtomicETH:
		p.Atomic.Put(b)
	case wire.HeaderDETH:
		p.DETH.Put(b)
	case wire.HeaderFETH:
		p.FETH.Put(b)
	case wire.HeaderXRCETH:
		wire.XRCETH{SRQN: p.SRQN}.Put(b)
	case wire.HeaderAtomicAckETH:
		wire.AtomicAckETH{OrigData: p.OrigData}.Put(b)
	}
}
