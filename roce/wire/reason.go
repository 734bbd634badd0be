package wire

import "fmt"

// Reason says why a frame is not a well-formed RoCE packet. Each reason is the
// name of a counter.
type Reason uint8

// The reasons, from the outside of a frame inwards.
const (
	OK             Reason = iota
	NotRoCE               // other EtherType, protocol or port: somebody else's frame
	Truncated             // the frame ends before the packet does
	SplitHeader           // the headers do not lie in the first piece of the frame
	BadIPHeader           // wrong IP version, or IPv4 header length below 5
	IPOptions             // IPv4 options or IPv6 extension headers
	Fragment              // an IP fragment
	BadIPChecksum         // IPv4 header checksum
	BadIPLength           // IP length too small for the headers, or not a whole packet
	BadUDPLength          // UDP length does not agree with the IP length
	BadLRH                // native: wrong version or length
	BadGRH                // wrong version or next header
	BadTVer               // transport version is not 0
	UnknownOpcode         // nobody defined the opcode
	BadLength             // too short for the opcode's headers, or not a multiple of 4
	BadPad                // more padding than payload and padding have room for
	BadPayloadSize        // not the payload size that the opcode demands
	BadICRC               // not returned by Decode: for the caller of VerifyICRC
	BadVCRC               // not returned by Decode: for the caller of VerifyVCRC

	NumReasons = int(iota)
)

var reasonNames = [NumReasons]string{
	OK:             "ok",
	NotRoCE:        "not_roce",
	Truncated:      "truncated",
	SplitHeader:    "split_header",
	BadIPHeader:    "bad_ip_header",
	IPOptions:      "ip_options",
	Fragment:       "fragment",
	BadIPChecksum:  "bad_ip_checksum",
	BadIPLength:    "bad_ip_length",
	BadUDPLength:   "bad_udp_length",
	BadLRH:         "bad_lrh",
	BadGRH:         "bad_grh",
	BadTVer:        "bad_tver",
	UnknownOpcode:  "unknown_opcode",
	BadLength:      "bad_length",
	BadPad:         "bad_pad",
	BadPayloadSize: "bad_payload_size",
	BadICRC:        "bad_icrc",
	BadVCRC:        "bad_vcrc",
}

// String is the reason in snake_case.
func (r Reason) String() string {
	if int(r) < NumReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason_%d", uint8(r))
}

// Err is the reason as an error, nil for OK. errors.As finds it as a
// DecodeError.
func (r Reason) Err() error {
	if r == OK {
		return nil
	}
	return DecodeError(r)
}

// DecodeError is a Reason as an error.
type DecodeError Reason

// Error names the reason.
func (e DecodeError) Error() string { return "wire: decode: " + Reason(e).String() }
