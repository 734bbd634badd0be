package roctest

import (
	"bytes"
	"errors"
	"fmt"

	"xroce/roce/wire"
)

// A Check judges one property of a packet and says what is wrong with it.
type Check func(p *wire.Packet) error

// Frame decodes a frame that this stack sent and applies the checks. All that is
// wrong comes back as one error, which prints the packet.
func Frame(frame []byte, checks ...Check) error {
	var p wire.Packet
	if r := p.Decode(frame, nil); r != wire.OK {
		return fmt.Errorf("roctest: frame of %d bytes: %s", len(frame), r)
	}
	errs := []error{wellFormed(&p, frame)}
	for _, check := range checks {
		errs = append(errs, check(&p))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("roctest: %s: %w", Describe(&p), err)
	}
	return nil
}

// wellFormed is what every packet of ours must be.
func wellFormed(p *wire.Packet, frame []byte) error {
	transport := frame[len(frame)-p.TransportLen():]
	pad := transport[len(transport)-wire.ICRCLen-int(p.BTH.PadCnt):][:p.BTH.PadCnt]
	// Byte 4 of the BTH holds FECN, BECN and reserved bits, byte 8 AckReq and
	// reserved bits (IBA 9.2).
	reserved := transport[4]&0x3f | transport[8]&0x7f
	switch {
	case !p.VerifyICRC():
		return errors.New("the ICRC is wrong")
	case len(frame)-p.NetworkLen() != 14 && len(frame)-p.NetworkLen() != 18:
		return fmt.Errorf("%d bytes of network packet in a frame of %d", p.NetworkLen(), len(frame))
	case !bytes.Equal(pad, make([]byte, len(pad))):
		return fmt.Errorf("padding is %x", pad)
	case reserved != 0:
		return fmt.Errorf("reserved bits %#x", reserved)
	case !p.BTH.M:
		return errors.New("MigReq is 0")
	}
	return nil
}

// Describe prints a packet in one line.
func Describe(p *wire.Packet) string {
	s := fmt.Sprintf("%s psn 0x%06x", p.Spec.Name, uint32(p.BTH.PSN))
	if p.BTH.AckReq {
		s += " ackreq"
	}
	if p.Spec.Has(wire.HasRETH) {
		s += fmt.Sprintf(" %+v", p.RETH())
	}
	if p.Spec.Has(wire.HasAETH) {
		s += fmt.Sprintf(" %s msn %d", p.AETH().Syndrome, p.AETH().MSN)
	}
	if p.Spec.Has(wire.HasImmDt) {
		s += fmt.Sprintf(" imm 0x%x", p.ImmDt().Data)
	}
	if n := p.PayloadLen(); n > 0 {
		s += fmt.Sprintf(" payload %d", n)
	}
	return s
}

// want makes a check of a value that a packet has.
func want[T comparable](what string, expected T, get func(p *wire.Packet) T) Check {
	return func(p *wire.Packet) error {
		if got := get(p); got != expected {
			return fmt.Errorf("%s is %v, want %v", what, got, expected)
		}
		return nil
	}
}

// All joins checks to one.
func All(checks ...Check) Check {
	return func(p *wire.Packet) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(p))
		}
		return errors.Join(errs...)
	}
}

// Opcode wants this opcode.
func Opcode(op wire.Opcode) Check {
	return want("opcode", op, func(p *wire.Packet) wire.Opcode { return p.BTH.Opcode })
}

// PSN wants this packet sequence number.
func PSN(psn wire.PSN) Check {
	return want("PSN", psn, func(p *wire.Packet) wire.PSN { return p.BTH.PSN })
}

// DestQP wants this destination queue pair.
func DestQP(qpn uint32) Check {
	return want("DestQP", qpn, func(p *wire.Packet) uint32 { return p.BTH.DestQP })
}

// AckReq wants the AckReq bit so.
func AckReq(on bool) Check {
	return want("AckReq", on, func(p *wire.Packet) bool { return p.BTH.AckReq })
}

// Solicited wants the solicited event bit so.
func Solicited(on bool) Check {
	return want("SE", on, func(p *wire.Packet) bool { return p.BTH.SE })
}

// RETH wants this RDMA extended header.
func RETH(h wire.RETH) Check {
	return want("RETH", h, func(p *wire.Packet) wire.RETH { return p.RETH() })
}

// Atomic wants this atomic extended header.
func Atomic(h wire.AtomicETH) Check {
	return want("AtomicETH", h, func(p *wire.Packet) wire.AtomicETH { return p.AtomicETH() })
}

// OrigData wants this old value in an atomic acknowledge.
func OrigData(v uint64) Check {
	return want("old value", v, func(p *wire.Packet) uint64 { return p.AtomicAckETH().OrigData })
}

// FETH wants this flush extended header.
func FETH(h wire.FETH) Check {
	return want("FETH", h, func(p *wire.Packet) wire.FETH { return p.FETH() })
}

// DETH wants this datagram extended header.
func DETH(h wire.DETH) Check {
	return want("DETH", h, func(p *wire.Packet) wire.DETH { return p.DETH() })
}

// SRQN wants this shared receive queue number.
func SRQN(n uint32) Check {
	return want("SRQ number", n, func(p *wire.Packet) uint32 { return p.XRCETH().SRQN })
}

// IETH wants this key to invalidate.
func IETH(key uint32) Check {
	return want("key", key, func(p *wire.Packet) uint32 { return p.IETH().RKey })
}

// Syndrome wants this syndrome in the AETH. ACKNoCredits stands for a positive
// one with any credit count; see Credits.
func Syndrome(s wire.Syndrome) Check {
	return want("syndrome", s, func(p *wire.Packet) wire.Syndrome {
		got := p.AETH().Syndrome
		if s == wire.ACKNoCredits && got.IsACK() {
			return s
		}
		return got
	})
}

// Credits wants a positive syndrome with this credit code.
func Credits(code uint8) Check {
	return want("syndrome", wire.ACKSyndrome(code),
		func(p *wire.Packet) wire.Syndrome { return p.AETH().Syndrome })
}

// MSN wants this message sequence number in the AETH.
func MSN(msn uint32) Check {
	return want("MSN", msn, func(p *wire.Packet) uint32 { return p.AETH().MSN })
}

// Imm wants this immediate data.
func Imm(imm uint32) Check {
	return want("immediate", imm, func(p *wire.Packet) uint32 { return p.ImmDt().Data })
}

// PayloadLen wants so many bytes of payload.
func PayloadLen(n int) Check {
	return want("payload length", n, func(p *wire.Packet) int { return p.PayloadLen() })
}

// Payload wants these bytes of payload.
func Payload(b []byte) Check {
	return func(p *wire.Packet) error {
		got := make([]byte, p.PayloadLen())
		p.CopyPayload(got)
		if !bytes.Equal(got, b) {
			return fmt.Errorf("payload of %d bytes differs from the %d expected", len(got), len(b))
		}
		return nil
	}
}

// Ack wants an acknowledge packet with this PSN, syndrome and MSN.
func Ack(psn wire.PSN, s wire.Syndrome, msn uint32) Check {
	return All(Opcode(wire.RCAck), PSN(psn), Syndrome(s), MSN(msn), AckReq(false))
}
