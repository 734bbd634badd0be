package encap

import "fmt"

// Reason says why a datagram was not sent, or a packet not taken. Each reason is the name of a
// counter. As an error, a Reason is never to be OK: see Err.
type Reason uint8

// The reasons.
const (
	OK Reason = iota

	// Of datagrams that are to be sent.
	NotCarried // the format does not carry datagrams of the kind
	TooLong    // longer than the format and the room of a packet allow; also of segments
	Nested     // it was encapsulated twice already
	Own        // the tunnel itself sent it

	// Of both ways.
	TooShort     // shorter than the header of its kind
	BadIPVersion // the version of IP is not that of its kind
	BadLength    // what the datagram, or the LRH, says of its length is not so

	// Of packets that came.
	NotRaw       // native, with a base transport header: for a queue pair, not for us
	Truncated    // it ends before its headers do, or before the length that it tells
	SplitHeader  // the headers do not lie in the first piece of the frame
	BadLRH       // version of the link is not 0
	BadVCRC      // native: damaged on the way
	BadGRH       // version is not 6
	UnknownType  // EtherType, or next header of the GRH, of nothing that the format carries
	BadSignature // EoIB and the virtual switch: it is something else
	BadVersion   // EoIB: a version that nobody defined
	BadFCS       // EoIB says that there is an FCS, which is wrong

	// Of segments.
	Duplicate // a segment that was there already, byte for byte
	Conflict  // a segment that contradicts those before it: all of them are dropped

	NumReasons = int(iota)
)

var reasonNames = [NumReasons]string{
	OK:           "ok",
	NotCarried:   "not_carried",
	TooLong:      "too_long",
	Nested:       "nested",
	Own:          "own",
	TooShort:     "too_short",
	BadIPVersion: "bad_ip_version",
	BadLength:    "bad_length",
	NotRaw:       "not_raw",
	Truncated:    "truncated",
	SplitHeader:  "split_header",
	BadLRH:       "bad_lrh",
	BadVCRC:      "bad_vcrc",
	BadGRH:       "bad_grh",
	UnknownType:  "unknown_type",
	BadSignature: "bad_signature",
	BadVersion:   "bad_version",
	BadFCS:       "bad_fcs",
	Duplicate:    "duplicate",
	Conflict:     "conflict",
}

// String is the reason in snake_case.
func (r Reason) String() string {
	if int(r) < NumReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason_%d", uint8(r))
}

// Error names the reason.
func (r Reason) Error() string { return "encap: " + r.String() }

// Err is the reason as an error, nil for OK. errors.Is finds it by its value.
func (r Reason) Err() error {
	if r == OK {
		return nil
	}
	return r
}
