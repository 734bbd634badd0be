package wire

import "fmt"

// Syndrome is the first byte of an AETH (IBA 9.7.5): two bits of kind and
// five bits of code, under a reserved bit.
type Syndrome uint8

// SyndromeKind says whether a syndrome is that of an ACK, an RNR NAK or a NAK.
type SyndromeKind uint8

// The kinds of a syndrome: bits 6 and 5.
const (
	KindACK      SyndromeKind = 0 // acknowledged; the code is a credit code
	KindRNRNAK   SyndromeKind = 1 // receiver not ready; the code is a timer code
	KindReserved SyndromeKind = 2
	KindNAK      SyndromeKind = 3 // refused; the code is the reason
)

// Syndromes that a responder sends. The NAK codes 0x65 to 0x7F are reserved; a
// requester takes them for NAKRemoteOperationalError.
const (
	ACKNoCredits              Syndrome = 0x1F // acknowledged, credits not valid
	NAKPSNSequenceError       Syndrome = 0x60
	NAKInvalidRequest         Syndrome = 0x61
	NAKRemoteAccessError      Syndrome = 0x62
	NAKRemoteOperationalError Syndrome = 0x63
	NAKInvalidRDRequest       Syndrome = 0x64 // RD only
)

const (
	syndromeMask     = 0x7F
	syndromeCodeMask = 0x1F
	syndromeRNR      = 0x20
)

// ACKSyndrome is the positive syndrome with a credit code (see CreditCode).
func ACKSyndrome(creditCode uint8) Syndrome { return Syndrome(creditCode & syndromeCodeMask) }

// RNRSyndrome is the receiver-not-ready syndrome with a timer code, 0 to 31.
func RNRSyndrome(timerCode uint8) Syndrome {
	return syndromeRNR | Syndrome(timerCode&syndromeCodeMask)
}

// Kind returns the syndrome's kind. The reserved bit 7 is ignored.
func (s Syndrome) Kind() SyndromeKind { return SyndromeKind(s >> 5 & 3) }

// IsACK reports whether the syndrome acknowledges.
func (s Syndrome) IsACK() bool { return s.Kind() == KindACK }

// IsRNRNAK reports whether the responder had no receive ready.
func (s Syndrome) IsRNRNAK() bool { return s.Kind() == KindRNRNAK }

// IsNAK reports whether the syndrome refuses for good or reports a lost packet.
func (s Syndrome) IsNAK() bool { return s.Kind() == KindNAK }

// Code is the low five bits: credit code, timer code or NAK code.
func (s Syndrome) Code() uint8 { return uint8(s & syndromeCodeMask) }

// NAK reduces a NAK to one of the five defined ones: reserved codes become
// NAKRemoteOperationalError (IBA 9.7.5). It is 0 when s is not a NAK.
func (s Syndrome) NAK() Syndrome {
	switch s &= syndromeMask; {
	case !s.IsNAK():
		return 0
	case s > NAKInvalidRDRequest:
		return NAKRemoteOperationalError
	default:
		return s
	}
}

// String names the syndrome.
func (s Syndrome) String() string {
	switch s.Kind() {
	case KindACK:
		if n, ok := Credits(s.Code()); ok {
			return fmt.Sprintf("ACK(credits=%d)", n)
		}
		return "ACK"
	case KindRNRNAK:
		return fmt.Sprintf("RNR_NAK(timer=%d)", s.Code())
	case KindNAK:
		switch s & syndromeMask {
		case NAKPSNSequenceError:
			return "NAK(PSN_sequence_error)"
		case NAKInvalidRequest:
			return "NAK(invalid_request)"
		case NAKRemoteAccessError:
			return "NAK(remote_access_error)"
		case NAKRemoteOperationalError:
			return "NAK(remote_operational_error)"
		case NAKInvalidRDRequest:
			return "NAK(invalid_RD_request)"
		}
	}
	return fmt.Sprintf("reserved(0x%02x)", uint8(s))
}
