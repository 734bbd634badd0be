package gen

import "encoding/binary"

// SignatureLen is the length of a Signature in bytes: it fits a UDP datagram in an IPv4
// frame of 64 bytes.
const SignatureLen = 20

// signatureMagic begins a signature.
const signatureMagic = 0x7867

// maxSeq is the largest sequence number: 48 bits.
const maxSeq = 1<<48 - 1

// SignatureKind says what a frame is for.
type SignatureKind uint8

// The kinds of frames.
const (
	Data   SignatureKind = 1 // a frame of a flow
	End    SignatureKind = 2 // the flow is over: Seq is how many frames had a signature
	Report SignatureKind = 3 // the answer to End: Seq is how many of them came
)

// A Signature is what a frame says of itself, in its payload:
//
//	0      2      3     4      6           12               20
//	+------+------+-----+------+-----------+----------------+
//	| "xg" | kind | run | flow | sequence  | time           |
//	+------+------+-----+------+-----------+----------------+
//
// All numbers are big-endian.
type Signature struct {
	Kind SignatureKind
	Run  uint8  // tells runs of one generator apart
	Flow uint16 // number of the flow
	Seq  uint64 // 48 bits: frames with a signature of the flow before this one
	Time int64  // when the frame was made, in nanoseconds of a clock that both ends know
}

// Put writes the signature to b, which must have SignatureLen bytes.
func (s *Signature) Put(b []byte) {
	_ = b[SignatureLen-1]
	binary.BigEndian.PutUint32(b, signatureMagic<<16|uint32(s.Kind)<<8|uint32(s.Run))
	binary.BigEndian.PutUint64(b[4:], uint64(s.Flow)<<48|s.Seq&maxSeq)
	binary.BigEndian.PutUint64(b[12:], uint64(s.Time))
}

// ParseSignature reads a signature from the begin of a payload. ok is false when there is none.
func ParseSignature(b []byte) (s Signature, ok bool) {
	if len(b) < SignatureLen || binary.BigEndian.Uint16(b) != signatureMagic {
		return s, false
	}
	place := binary.BigEndian.Uint64(b[4:])
	s = Signature{
		Kind: SignatureKind(b[2]), Run: b[3], Flow: uint16(place >> 48), Seq: place & maxSeq,
		Time: int64(binary.BigEndian.Uint64(b[12:])),
	}
	return s, s.Kind >= Data && s.Kind <= Report
}
