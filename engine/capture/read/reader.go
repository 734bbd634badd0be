package read

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Bounds of what a Reader keeps.
const (
	// MaxBlock is the longest block, with the packet in it, in bytes. The programs of
	// Wireshark refuse packets of more than 256 KiB.
	MaxBlock = 512 << 10
	// MaxPacket is the longest packet in bytes.
	MaxPacket = 256 << 10
	// MaxInterfaces is how many interfaces a section of pcapng may have.
	MaxInterfaces = 4096

	// maxWindow is how far back zstd may refer: what zstd itself takes without being told to.
	maxWindow = 128 << 20
)

// A format reads the next packet of a kind of file.
type format interface {
	next(r *Reader, p *Packet) error
}

// A Reader reads the packets of a capture, one after the other.
type Reader struct {
	in     *buffer
	format format
	held   int   // bytes of the last packet, which are still in the buffer
	number int   // of packets so far
	bytes  int64 // of the file so far, unpacked
	close  func()
	err    error
}

// New looks at the beginning of a capture. It returns ErrFormat when it is none, ErrCut when it
// ends there. A Reader has to be closed.
func New(in io.Reader) (*Reader, error) { return newReader(newBuffer(in), func() {}) }

// NewAhead is New of a file, which a goroutine reads some megabytes ahead, so that another
// processor looks at packets meanwhile. Close waits for it: in must not be something that waits
// for others, as a pipe does. in belongs to the Reader until then.
func NewAhead(in io.Reader) (*Reader, error) {
	return newAheadReader(in, aheadParts, aheadPart)
}

func newAheadReader(in io.Reader, parts, length int) (*Reader, error) {
	a := newAhead(in, parts, length)
	return newReader(&buffer{ahead: a}, a.close)
}

// newReader looks at the beginning of what a buffer reads. end ends its reading.
func newReader(b *buffer, end func()) (*Reader, error) {
	r := &Reader{in: b, close: end}
	if err := r.unpack(); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.open(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close gives back what the Reader has. It does not close what it reads from.
func (r *Reader) Close() {
	r.close()
	r.close = func() {}
	if r.err == nil {
		r.err = io.EOF
	}
}

// Bytes is how many bytes of the capture were read, unpacked.
func (r *Reader) Bytes() int64 { return r.bytes }

// Waiting reports whether nothing more is there already: the next call of Next reads from the
// io.Reader, and of a pipe waits for who writes.
func (r *Reader) Waiting() bool { return r.in.buffered() <= r.held }

// Next reads the next packet. At the end it returns io.EOF, at that of a file that is cut off
// ErrCut; either, and any other error, comes again from then on.
func (r *Reader) Next(p *Packet) error {
	if r.err != nil {
		return r.err
	}
	*p = Packet{}
	if r.err = r.format.next(r, p); r.err != nil {
		*p = Packet{}
		return r.err
	}
	r.number++
	p.Number = r.number
	p.Length = max(p.Length, len(p.Data))
	return nil
}

// Magics of files, as their first four bytes read big-endian.
const (
	magicGzip   = 0x1f8b // two bytes
	magicZstd   = 0x28b52ffd
	magicPcapng = 0x0a0d0d0a

	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34 // microseconds, and longer headers of packets
)

// unpack looks through gzip and zstd.
func (r *Reader) unpack() error {
	b, err := r.in.peek(4)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return ErrFormat
		}
		return err
	}
	magic := binary.BigEndian.Uint32(b)
	switch {
	case magic>>16 == magicGzip:
		z, err := gzip.NewReader(r.in)
		if err != nil {
			return fmt.Errorf("gzip: %w", cut(err))
		}
		r.in = newBuffer(z)
	case magic == magicZstd:
		// Of one worker the decoder starts no goroutine.
		z, err := zstd.NewReader(r.in, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return fmt.Errorf("zstd: %w", cut(err))
		}
		end := r.close
		r.close = func() {
			z.Close()
			end()
		}
		r.in = newBuffer(z)
	}
	return nil
}

// open finds out what is in the file.
func (r *Reader) open() error {
	b, err := r.in.peek(4)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return ErrFormat
		}
		return cut(err)
	}
	magic, swapped := binary.BigEndian.Uint32(b), binary.LittleEndian.Uint32(b)
	switch magic {
	case magicPcapng:
		r.format = &pcapng{}
		return nil
	case magicMicro, magicNano, magicModified:
		return r.openPcap(true, magic)
	}
	switch swapped {
	case magicMicro, magicNano, magicModified:
		return r.openPcap(false, swapped)
	}
	return r.openERF()
}

// take returns the next n bytes, which must be no more than MaxBlock. They are the caller's until
// the next call. At the end of the file the error is io.EOF, in the middle of the bytes ErrCut.
func (r *Reader) take(n int) ([]byte, error) {
	r.in.take(r.held)
	r.held = 0
	b, err := r.in.peek(n)
	if err != nil {
		if errors.Is(err, io.EOF) && len(b) == 0 {
			return nil, io.EOF
		}
		return nil, cut(err)
	}
	r.held = n
	r.bytes += int64(n)
	return b, nil
}

// rest is take behind the beginning of something, where the file must not end.
func (r *Reader) rest(n int) ([]byte, error) {
	b, err := r.take(n)
	if errors.Is(err, io.EOF) {
		err = ErrCut
	}
	return b, err
}

// skip passes over n bytes.
func (r *Reader) skip(n int64) error {
	for n > 0 {
		b, err := r.rest(int(min(n, MaxBlock)))
		if err != nil {
			return err
		}
		n -= int64(len(b))
	}
	return nil
}

// cut names the end of a file that should have gone on. What packs files has its own names.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// damaged says what is wrong with a file.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
