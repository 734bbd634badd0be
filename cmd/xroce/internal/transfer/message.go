package transfer

import (
	"context"
	"errors"

	"xroce/cmd/xroce/internal/peer"
)

// protocol is the version of what the ends say to each other.
const protocol = 3

// maxMessage is the longest thing that the other end may say at once, in bytes.
const maxMessage = 16 << 10

// ErrPeer says that the other end gave up, or says what it may not. It is wrapped with the
// reason.
var ErrPeer = errors.New("the peer gave up")

// A peerError is what the other end says of why it gave up.
type peerError struct {
	text   string
	again  bool // it may be asked again
	writes bool // it is still writing what came before
}

func (e *peerError) Error() string { return ErrPeer.Error() + ": " + e.text }
func (e *peerError) Unwrap() error { return ErrPeer }

// A refusal is an answer to what was asked for, after which something else can be.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refused is the error of an answer.
func refused(err error) error {
	if errors.Is(err, ErrPeer) && !again(err) {
		return refusal{err}
	}
	return err
}

// A failure of one file is what the server could not do with it when its data had begun. The
// connection ends with it, and another file may be sent over another one.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// failed is the error of a file whose data has begun.
func failed(err error) error {
	var said *peerError
	if errors.As(err, &said) && !again(err) {
		return failure{err}
	}
	return err
}

// A lasting error is one that would pass, but not for who has it.
type lasting struct{ error }

func (l lasting) Unwrap() error { return l.error }

// again reports whether something failed for a reason that passes: another connection may go
// on where this one ended.
func again(err error) bool {
	var said *peerError
	var stays lasting
	switch {
	case errors.As(err, &stays):
		return false
	case errors.As(err, &said):
		return said.again
	case errors.Is(err, ErrBusy), errors.Is(err, ErrSlow), errors.Is(err, ErrLost),
		errors.Is(err, errWriting), errors.Is(err, peer.ErrSilence),
		errors.Is(err, context.Canceled):
		return true
	}
	return false
}

// What a client asks for.
const (
	askPut = "put" // to take a file
	askGet = "get" // to send a file
	askDir = "dir" // to make a directory
	askEnd = "end" // nothing more
)

// A message is what one end tells the other. Which fields are set depends on
// its place in the conversation; Error ends what was asked for at any place.
type message struct {
	Error string `json:"error,omitempty"`
	Again bool   `json:"again,omitempty"` // of Error: it may be tried again

	// hello and challenge
	Protocol int    `json:"protocol,omitempty"`
	Nonce    []byte `json:"nonce,omitempty"`
	Token    bool   `json:"token,omitempty"` // what follows has codes

	// request
	Ask  string `json:"ask,omitempty"`
	Path string `json:"path,omitempty"` // where to; in the answer: where it will be
	Name string `json:"name,omitempty"` // what it is called at the sender
	// Size is that of the file in bytes, in the message behind the data that of all of it.
	Size  int64  `json:"size,omitempty"`
	Mode  uint32 `json:"mode,omitempty"`  // permission bits
	MTime int64  `json:"mtime,omitempty"` // nanoseconds since 1970

	// Held is how many bytes of the file the receiver has from before; in the answer to
	// their digest, how many of them count: all or none.
	Held int64 `json:"held,omitempty"`

	// Wait says behind a chunk that it may take a while until there is another, and beside Again
	// that the receiver is still writing what came of the file before.
	Wait bool `json:"wait,omitempty"`

	SHA256 string `json:"sha256,omitempty"` // hexadecimal
}
