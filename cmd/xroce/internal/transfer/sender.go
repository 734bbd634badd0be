package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"xroce/roce"
)

// ErrChanged says that the file was written to while it was being sent.
var ErrChanged = errors.New("the file changed while it was being copied")

// SendConfig says what to send and where to.
type SendConfig struct {
	File     string // file to read
	Path     string // path at the server, below its directory
	Progress func(done, total int64)
	Held     func(done int64) // is told what is gone on behind, and may be nil

	// Reader, if not nil, is read until its end instead of File, once: what it had when the
	// connection was lost cannot be had again. File is then the name of it.
	Reader io.Reader
}

// Result is a file that was transferred.
type Result struct {
	Path     string        // at the server, below its directory; in the words of the peer
	Size     int64         // bytes
	Resumed  int64         // of these, what was there from before
	Known    bool          // of a receiver: the file was there, and its sender did not know
	Duration time.Duration // of the data, without the connection set-up
	SHA256   string        // hexadecimal, the same at both ends

	Extensions roce.Extensions // of the transport, that both ends used
}

// A sender sends one file, over one connection after the other.
type sender struct {
	SendConfig
	file *os.File // nil of a reader
	info os.FileInfo
	hash hash.Hash
	size int64 // UnknownSize of a reader
	done int64 // bytes that the server has taken

	written time.Duration // that the server wrote what came before, by its own word
	began   time.Time     // when it was taken first
}

// newSender opens the file. close must be called.
func newSender(ctx context.Context, c SendConfig) (*sender, error) {
	if c.Reader != nil {
		return &sender{SendConfig: c, size: UnknownSize, hash: sha256.New()}, nil
	}
	file, info, err := openSource(ctx, c.File)
	if err != nil {
		return nil, err
	}
	return newOpenSender(c, file, info), nil
}

// newOpenSender is newSender for a file that is open.
func newOpenSender(c SendConfig, file *os.File, info os.FileInfo) *sender {
	return &sender{SendConfig: c, file: file, info: info, size: info.Size(), hash: sha256.New()}
}

func (s *sender) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// offer says what there is.
func (s *sender) offer() message {
	m := message{
		Ask: askPut, Path: s.Path, Name: filepath.Base(s.File), Size: s.size, Mode: defaultMode,
	}
	if s.file != nil {
		m.Mode, m.MTime = uint32(s.info.Mode().Perm()), s.info.ModTime().UnixNano()
	}
	return m
}

// defaultMode is that of a file that is made of a reader.
const defaultMode = 0o666

// rewind goes back to the beginning.
func (s *sender) rewind() error {
	if s.file == nil {
		return nil
	}
	s.hash.Reset()
	s.done = 0
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// ErrGone says that what was read cannot be read again.
var ErrGone = errors.New("what was read from it cannot be had again")

// push sends the file over a connection, or what the server does not have of it.
func (s *sender) push(ctx context.Context, c *control) (Result, error) {
	if err := s.rewind(); err != nil {
		return Result{}, err
	}
	asked := c.now()
	place, err := c.ask(ctx, s.offer(), c.patience.offer)
	if err != nil {
		s.writes(c, err, c.now().Sub(asked))
		return Result{}, refused(err)
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	held, err := s.goOn(ctx, c, place.Held)
	if err != nil {
		return Result{}, err
	}
	c.began = held
	digest, err := s.stream(ctx, c)
	if err != nil {
		return Result{}, s.failed(err)
	}
	m, err := c.ask(ctx, message{SHA256: digest, Size: s.done}, c.patience.forWork(s.done-held))
	if err != nil {
		return Result{}, s.gone(failed(err))
	}
	if m.SHA256 != digest {
		return Result{}, fmt.Errorf("SHA-256 differs: %s here, %.100q there", digest, m.SHA256)
	}
	return Result{
		Path: place.Path, Size: s.done, Resumed: held, Duration: time.Since(s.began),
		SHA256: digest, Extensions: c.Conn.Extensions(),
	}, nil
}

// writes takes note of how long the server has not taken a file because it still writes what came
// of it before. In that time nothing is to get through. It counts as work as long as all may take.
func (s *sender) writes(c *control, err error, took time.Duration) {
	var said *peerError
	if !errors.As(err, &said) || !said.writes {
		return
	}
	took = min(took, c.patience.forWork(max(0, s.size))-s.written)
	s.written += took
	c.compared += took
}

// failed says how far it got.
func (s *sender) failed(err error) error {
	if s.file == nil {
		return s.gone(fmt.Errorf("after %d bytes: %w", s.done, failed(err)))
	}
	return fmt.Errorf("after %d of %d bytes: %w", s.done, s.size, failed(err))
}

// gone says of what passes that it cannot be tried again, if that is so.
func (s *sender) gone(err error) error {
	if s.file == nil && again(err) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w, and %w", lasting{err}, ErrGone)
	}
	return err
}

// goOn goes behind what the server says that it has, if that is the beginning of the file, and
// returns how much it is.
func (s *sender) goOn(ctx context.Context, c *control, held int64) (int64, error) {
	switch {
	case held == 0:
		return 0, nil
	case held < 0 || held > s.size:
		return 0, fmt.Errorf("%w: it has %d bytes of %d", ErrPeer, held, s.size)
	}
	if err := c.digestOf(ctx, s.file, held, s.hash); err != nil {
		return 0, s.shorter(err)
	}
	var m message
	err := c.comparing(held, func() (err error) {
		m, err = c.ask(ctx, message{SHA256: s.sum()}, c.patience.forWork(held))
		return refused(err)
	})
	switch {
	case err != nil:
		return 0, err
	case m.Held == held:
		s.done = held
		if s.Held != nil {
			s.Held(held)
		}
		return held, nil
	case m.Held != 0:
		return 0, fmt.Errorf("%w: it has %d bytes, and then %d", ErrPeer, held, m.Held)
	}
	return 0, s.rewind()
}

// sum is the SHA-256 of what was read, in hexadecimal.
func (s *sender) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }

// stream sends all that is left and returns the digest of the file.
func (s *sender) stream(ctx context.Context, c *control) (string, error) {
	sent := func(n int) {
		s.done += int64(n)
		if s.Progress != nil {
			s.Progress(s.done, max(s.done, s.size))
		}
	}
	if s.file == nil {
		from, stop := newSlow(ctx, s.Reader, c)
		defer stop()
		err := c.sendChunks(ctx, from, s.hash, sent)
		return s.sum(), err
	}
	left := &io.LimitedReader{R: s.file, N: s.size - s.done}
	err := c.sendChunks(ctx, left, s.hash, sent)
	if err == nil && left.N > 0 {
		err = s.shorter(io.EOF)
	}
	if err != nil {
		return "", err
	}
	return s.sum(), s.unchanged()
}

// shorter says of a file that ended early that it did.
func (s *sender) shorter(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it became shorter", ErrChanged)
	}
	return err
}

// unchanged says how the file is not what it was at the beginning. One that the kernel
// makes up, as those of /proc, has a size of 0 and more to read: it would arrive empty.
func (s *sender) unchanged() error {
	now, err := s.file.Stat()
	if err != nil {
		return err
	}
	if now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) {
		return fmt.Errorf("%w: %d bytes of %s, then %d of %s", ErrChanged,
			s.info.Size(), s.info.ModTime().Format(time.StampNano), now.Size(),
			now.ModTime().Format(time.StampNano))
	}
	n, err := s.file.Read(make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf("%w, or the kernel makes it up: there is more than its size of %d "+
			"bytes; 'cat' makes a file of it that can be sent", ErrChanged, s.info.Size())
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}
