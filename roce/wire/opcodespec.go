package wire

import (
	"fmt"
	"io"
	"iter"
	"strings"
)

// Service is the transport service an opcode belongs to: its top three bits.
type Service uint8

// The transport services.
const (
	ServiceRC  Service = 0
	ServiceUC  Service = 1
	ServiceRD  Service = 2
	ServiceUD  Service = 3
	ServiceCNP Service = 4
	ServiceXRC Service = 5
	ServiceMfr Service = 6 // a manufacturer's range, used for our extensions
)

// serviceNames has a row for each value of the three bits.
var serviceNames = [8]string{"RC", "UC", "RD", "UD", "CNP", "XRC", "OWN", "MFR7"}

// String names the service; MFR7 is the other range for manufacturers.
func (s Service) String() string { return serviceNames[s&7] }

// Opcode is the operation of base, an opcode of any service, in service s: the
// UC SEND only for ServiceUC and RCSendOnly. ok is false, and op means nothing,
// when the service does not have it. A CNP and our own packets are no operations
// of another service, and none of theirs is a CNP.
func (s Service) Opcode(base Opcode) (op Opcode, ok bool) {
	const operation = 0x1f
	if s > ServiceXRC || !base.Spec().Known || base.Spec().Service > ServiceXRC {
		return 0, false
	}
	op = Opcode(s)<<5 | base&operation
	return op, op.Spec().Known && (op == CNP) == (base == CNP)
}

// Header is an extended header, in the order in which they stand on the wire.
type Header uint8

// The extended headers.
const (
	HeaderRDETH Header = iota
	HeaderXRCETH
	HeaderDETH
	HeaderFETH
	HeaderRETH
	HeaderAtomicETH
	HeaderAETH
	HeaderAtomicAckETH
	HeaderImmDt
	HeaderIETH
	HeaderAPSN // ours

	NumHeaders = int(iota)
)

// HeaderSet is a set of extended headers.
type HeaderSet uint16

// The sets of one header each.
const (
	HasRDETH        HeaderSet = 1 << HeaderRDETH
	HasXRCETH       HeaderSet = 1 << HeaderXRCETH
	HasDETH         HeaderSet = 1 << HeaderDETH
	HasFETH         HeaderSet = 1 << HeaderFETH
	HasRETH         HeaderSet = 1 << HeaderRETH
	HasAtomicETH    HeaderSet = 1 << HeaderAtomicETH
	HasAETH         HeaderSet = 1 << HeaderAETH
	HasAtomicAckETH HeaderSet = 1 << HeaderAtomicAckETH
	HasImmDt        HeaderSet = 1 << HeaderImmDt
	HasIETH         HeaderSet = 1 << HeaderIETH
	HasAPSN         HeaderSet = 1 << HeaderAPSN
)

// headerInfo names and measures the extended headers.
var headerInfo = [NumHeaders]struct {
	name string
	len  uint8
}{
	HeaderRDETH:        {"RDETH", RDETHLen},
	HeaderXRCETH:       {"XRCETH", XRCETHLen},
	HeaderDETH:         {"DETH", DETHLen},
	HeaderFETH:         {"FETH", FETHLen},
	HeaderRETH:         {"RETH", RETHLen},
	HeaderAtomicETH:    {"AtomicETH", AtomicETHLen},
	HeaderAETH:         {"AETH", AETHLen},
	HeaderAtomicAckETH: {"AtomicAckETH", AtomicAckETHLen},
	HeaderImmDt:        {"ImmDt", ImmDtLen},
	HeaderIETH:         {"IETH", IETHLen},
	HeaderAPSN:         {"APSN", APSNLen},
}

// String names the header.
func (h Header) String() string {
	if int(h) < NumHeaders {
		return headerInfo[h].name
	}
	return fmt.Sprintf("Header(%d)", uint8(h))
}

// Len is the length of the header in bytes, 0 for a value that is no header.
func (h Header) Len() int {
	if int(h) < NumHeaders {
		return int(headerInfo[h].len)
	}
	return 0
}

// String lists the headers in the order of the wire, "-" for none.
func (s HeaderSet) String() string {
	var names []string
	for h := range Header(NumHeaders) {
		if s&(1<<h) != 0 {
			names = append(names, h.String())
		}
	}
	return orDash(names)
}

// Class is a set of properties of an opcode.
type Class uint32

// Properties of an opcode.
const (
	ClassRequest     Class = 1 << iota // travels from requester to responder
	ClassResponse                      // travels from responder to requester
	ClassAck                           // acknowledge or atomic acknowledge: no data
	ClassSend                          // a SEND
	ClassWrite                         // an RDMA WRITE
	ClassRead                          // an RDMA READ, request or response
	ClassAtomic                        // compare-and-swap or fetch-and-add, or its response
	ClassFlush                         // a FLUSH
	ClassAtomicWrite                   // an ATOMIC WRITE
	ClassFirst                         // begins a message
	ClassMiddle                        // neither begins nor ends a message
	ClassLast                          // ends a message
	ClassImm                           // carries immediate data
	ClassInv                           // carries a key to invalidate
	ClassSolicited                     // may carry the solicited event bit
	ClassReceive                       // consumes a receive work request at its end

	numClasses = iota

	// ClassOnly is both ends of a message at once.
	ClassOnly = ClassFirst | ClassLast
)

var classNames = [numClasses]string{
	"request", "response", "ack", "send", "write", "read",
	"atomic", "flush", "atomic_write", "first", "middle", "last", "imm", "inv", "solicited",
	"receive",
}

// String lists the properties, "-" for none.
func (c Class) String() string {
	var names []string
	for i, name := range classNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return orDash(names)
}

func orDash(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, "|")
}

// PayloadRule says how many bytes of payload an opcode may carry.
type PayloadRule uint8

// The payload rules.
const (
	PayloadNone    PayloadRule = iota // 0
	PayloadFull                       // exactly the path MTU
	PayloadPartial                    // 1 to the path MTU
	PayloadAny                        // 0 to the path MTU
	Payload8                          // exactly 8: ATOMIC WRITE
	Payload16                         // exactly 16: CNP
	Payload32                         // exactly 32: SelectiveAck

	numPayloadRules = iota
)

var payloadNames = [numPayloadRules]string{"0", "PMTU", "1..PMTU", "0..PMTU", "8", "16", "32"}

// String prints the rule.
func (r PayloadRule) String() string {
	if int(r) < len(payloadNames) {
		return payloadNames[r]
	}
	return fmt.Sprintf("PayloadRule(%d)", uint8(r))
}

// Allows reports whether n bytes of payload agree with the rule under a path MTU
// of pmtu bytes.
func (r PayloadRule) Allows(n, pmtu int) bool {
	switch r {
	case PayloadFull:
		return n == pmtu
	case PayloadPartial:
		return 1 <= n && n <= pmtu
	case PayloadAny:
		return 0 <= n && n <= pmtu
	default:
		return r.allowsFixed(n)
	}
}

// allowsFixed reports whether the rule allows n bytes for some path MTU.
func (r PayloadRule) allowsFixed(n int) bool {
	switch r {
	case PayloadNone:
		return n == 0
	case Payload8:
		return n == 8
	case Payload16:
		return n == 16
	case Payload32:
		return n == SelectiveBits/8
	default:
		return n >= 0
	}
}

// OpcodeSpec is what an opcode means: one row of the table that the parser, the
// senders, the sequence checks and the printed names all read.
type OpcodeSpec struct {
	Name      string            // as in RC_SEND_ONLY
	Service   Service           // top three bits, also of unknown opcodes
	Known     bool              // somebody defined it
	Payload   PayloadRule       // bytes between the last header and the pad
	HeaderLen uint8             // bytes of all extended headers
	Offsets   [NumHeaders]uint8 // of each header from the start of the BTH, 0 if absent
	Headers   HeaderSet
	Class     Class

	// Response is the opcode of the response when the request succeeds: an
	// acknowledge, or the READ response of one packet, which has no payload for a
	// FLUSH and an ATOMIC WRITE (that to a longer READ is first to last). It is 0
	// for what has no response of its own: responses, and
	// requests of unreliable services.
	Response Opcode
}

// Has reports whether the opcode carries all of the headers in h.
func (s *OpcodeSpec) Has(h HeaderSet) bool { return s.Headers&h == h }

// Is reports whether the opcode has all of the properties in c.
func (s *OpcodeSpec) Is(c Class) bool { return s.Class&c == c }

// TransportLen is the length in bytes from the BTH through the ICRC of a packet
// of this opcode with n bytes of payload.
func (s *OpcodeSpec) TransportLen(n int) int {
	return BTHLen + int(s.HeaderLen) + n + int(PadCnt(n)) + ICRCLen
}

// PadCnt is the number of bytes that fill n bytes of payload up to a word.
func PadCnt(n int) uint8 { return uint8(-n & 3) }

// Opcodes goes through all known opcodes in ascending order.
func Opcodes() iter.Seq2[Opcode, *OpcodeSpec] {
	return func(yield func(Opcode, *OpcodeSpec) bool) {
		for i := range opcodes {
			if opcodes[i].Known && !yield(Opcode(i), &opcodes[i]) {
				return
			}
		}
	}
}

// WriteOpcodes prints the known rows of the table, one a line.
func WriteOpcodes(w io.Writer) error {
	for op, s := range Opcodes() {
		response := "-"
		if s.Response != 0 {
			response = s.Response.String()
		}
		_, err := fmt.Fprintf(w, "0x%02X %-20s %-3s ext=%-2d payload=%-7s headers=%s class=%s "+
			"answer=%s\n", uint8(op), s.Name, s.Service, s.HeaderLen, s.Payload, s.Headers,
			s.Class, response)
		if err != nil {
			return err
		}
	}
	return nil
}
