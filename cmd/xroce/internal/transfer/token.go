package transfer

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A Token is a secret that both ends know, nil for none. It never leaves the machine:
// each end shows that it knows it by the codes on its messages.
type Token []byte

// Bounds of a token in bytes. Who listens to one conversation may try words at leisure,
// so a word is too short.
const (
	MinToken = 16
	maxToken = 4 << 10
)

// ErrToken says that the two ends do not have the same token, or that one has none.
var ErrToken = errors.New("token")

// ParseToken takes a token from text, without the white space around it.
func ParseToken(text []byte) (Token, error) {
	token := bytes.TrimSpace(text)
	if len(token) < MinToken || len(token) > maxToken {
		return nil, fmt.Errorf("%w of %d bytes, and it must have %d to %d: make one with "+
			"'head -c 32 /dev/urandom | base64'", ErrToken, len(token), MinToken, maxToken)
	}
	return Token(token), nil
}

// ReadToken reads a token from a file that nobody but its owner can read.
func ReadToken(name string) (Token, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: others can read or write %s (mode %04o): chmod 0600 %s",
			ErrToken, name, info.Mode().Perm(), name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+2))
	if err != nil {
		return nil, err
	}
	token, err := ParseToken(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return token, nil
}

// nonceLen is the length of what each end draws for a conversation, in bytes.
const nonceLen = 32

// newNonce draws a number that no conversation had before.
func newNonce() []byte {
	nonce := make([]byte, nonceLen)
	_, _ = rand.Read(nonce) // never fails (crypto/rand)
	return nonce
}

// codeLen is the length of a code in front of a message, in hexadecimal digits.
const codeLen = 2 * sha256.Size

// A seal makes the codes of one conversation and checks them: HMAC-SHA256 (RFC 2104)
// over who speaks, how many messages that end sent before, and the message, with a key
// that is made of the token and of what both ends drew. So a message cannot be changed,
// said again, or said to the other end.
type seal struct {
	key   []byte
	sides [2]byte // our letter, the letter of the peer
	count [2]uint64
}

// Letters of the two ends.
const (
	clientSide = 'C'
	serverSide = 'S'
)

// newSeal makes the seal of the client or the server.
func newSeal(token Token, client bool, clientsNonce, serversNonce []byte) *seal {
	h := hmac.New(sha256.New, token)
	fmt.Fprintf(h, "xroce copy, protocol %d\x00", protocol)
	h.Write(clientsNonce)
	h.Write(serversNonce)
	s := &seal{key: h.Sum(nil), sides: [2]byte{serverSide, clientSide}}
	if client {
		s.sides = [2]byte{clientSide, serverSide}
	}
	return s
}

// code is that of the next message of this end (0) or the peer (1).
func (s *seal) code(end int, text []byte) string {
	h := hmac.New(sha256.New, s.key)
	var head [9]byte
	head[0] = s.sides[end]
	binary.BigEndian.PutUint64(head[1:], s.count[end])
	s.count[end]++
	h.Write(head[:])
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// open takes the code off the next message of the peer. ok says that it was right.
func (s *seal) open(line []byte) (text []byte, ok bool) {
	if len(line) < codeLen {
		return nil, false
	}
	text = line[codeLen:]
	return text, hmac.Equal(line[:codeLen], []byte(s.code(1, text)))
}
