package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"sync/atomic"
)

// Lengths in bytes.
const (
	KeyLen    = 32
	HeaderLen = 20
	TagLen    = 16
	// Overhead is how much longer a sealed packet is.
	Overhead = HeaderLen + TagLen

	typeSealed = 1
	offIndex   = 4
	offCounter = 8
	offHint    = 16
)

// MaxPackets is how many packets a key seals. It is far from what AES-GCM with a counter allows,
// and no agreement lives so long.
const MaxPackets = 1 << 40

// Reason says why a packet was not sealed or opened.
type Reason uint8

// The reasons.
const (
	OK        Reason = iota
	NotSealed        // it is something else, or too short
	NoKey            // sealed with a key that is not there, or not any more
	Forged           // changed on the way, or by somebody without the key
	Replayed         // it came before, or is too old to tell
	Exhausted        // the key has sealed as much as it may

	NumReasons = int(iota)
)

// String is the reason in snake_case, the name of a counter.
func (r Reason) String() string {
	return [NumReasons]string{
		"ok", "not_sealed", "no_key", "forged", "replayed", "key_exhausted",
	}[min(int(r), NumReasons-1)]
}

// newAEAD makes the cipher of a key.
func newAEAD(key [KeyLen]byte) cipher.AEAD {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // a key of 32 bytes is a good one
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size of GCM
	}
	return aead
}

// A Sealer seals packets with one key.
type Sealer struct {
	aead    cipher.AEAD
	index   uint32
	counter atomic.Uint64
}

// NewSealer makes a sealer. No two may have the same key. The index is the receiver's.
func NewSealer(key [KeyLen]byte, index uint32) *Sealer {
	return &Sealer{aead: newAEAD(key), index: index}
}

// Packets is how many the key has sealed.
func (s *Sealer) Packets() uint64 { return s.counter.Load() }

// Seal seals n bytes that lie in b behind HeaderLen bytes, in place, with a hint that everybody
// can read and nobody change. It returns the length of the packet. b must have Overhead bytes
// more than n.
func (s *Sealer) Seal(b []byte, n int, hint uint32) (int, Reason) {
	counter := s.counter.Add(1)
	if counter > MaxPackets {
		return 0, Exhausted
	}
	header := b[:HeaderLen]
	clear(header)
	header[0] = typeSealed
	binary.BigEndian.PutUint32(header[offIndex:], s.index)
	binary.BigEndian.PutUint64(header[offCounter:], counter)
	binary.BigEndian.PutUint32(header[offHint:], hint)
	plain := b[HeaderLen:][:n]
	s.aead.Seal(plain[:0], header[offIndex:offHint], plain, header)
	return n + Overhead, OK
}

// Index is that of the key by which a packet is sealed, false for one that is not sealed.
func Index(b []byte) (index uint32, ok bool) {
	if len(b) < Overhead || b[0] != typeSealed {
		return 0, false
	}
	return binary.BigEndian.Uint32(b[offIndex:]), true
}

// An Opener opens packets with one key, each once.
type Opener struct {
	aead   cipher.AEAD
	window window
}

// NewOpener makes an opener.
func NewOpener(key [KeyLen]byte) *Opener { return &Opener{aead: newAEAD(key)} }

// Open opens a packet in place and returns what was sealed, a part of b, with its hint.
func (o *Opener) Open(b []byte) (plain []byte, hint uint32, _ Reason) {
	if _, ok := Index(b); !ok {
		return nil, 0, NotSealed
	}
	header, sealed := b[:HeaderLen], b[HeaderLen:]
	counter := binary.BigEndian.Uint64(header[offCounter:])
	if !o.window.fresh(counter) {
		return nil, 0, Replayed
	}
	plain, err := o.aead.Open(sealed[:0], header[offIndex:offHint], sealed, header)
	if err != nil {
		return nil, 0, Forged
	}
	o.window.note(counter)
	return plain, binary.BigEndian.Uint32(header[offHint:]), OK
}
