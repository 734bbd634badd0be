package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxBlock is the longest block that is read, in bytes: a frame of 64 KiB with its options is
// far below.
const maxBlock = 1 << 20

// ErrFormat says that what was read is not a capture as a Writer writes it.
var ErrFormat = errors.New("capture: not a capture of ours")

// A Reader reads what a Writer wrote, while it is written. Others' captures it does not
// read: of pcapng it knows little-endian files with one interface. Nothing that it reads is
// believed. It is not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	block  []byte // the last one
	packet Packet
	name   string
	snap   uint32
	stats  Statistics
	ended  bool // the statistics were read
}

// NewReader reads the beginning of a capture.
func NewReader(r io.Reader) (*Reader, error) {
	c := &Reader{in: bufio.NewReaderSize(r, 1<<17)}
	kind, body, err := c.next()
	if err != nil {
		return nil, err
	}
	if kind != blockSection || len(body) < 16 ||
		binary.LittleEndian.Uint32(body) != byteOrderMagic {
		return nil, ErrFormat
	}
	if kind, body, err = c.next(); err != nil {
		return nil, err
	}
	if kind != blockInterface || len(body) < 8 ||
		binary.LittleEndian.Uint16(body) != linkEthernet {
		return nil, ErrFormat
	}
	c.snap = binary.LittleEndian.Uint32(body[4:])
	resolution := byte(6) // of the format
	options(body[8:], func(code uint16, value []byte) {
		switch {
		case code == optIfName:
			c.name = string(value)
		case code == optIfTsresol && len(value) == 1:
			resolution = value[0]
		}
	})
	if resolution != nanoseconds {
		return nil, ErrFormat
	}
	return c, nil
}

// Interface returns the name of the interface.
func (c *Reader) Interface() string { return c.name }

// Buffered reports whether there is more to read without waiting.
func (c *Reader) Buffered() bool { return c.in.Buffered() > 0 }

// Statistics returns what the capture said of itself at its end, false when it has not.
func (c *Reader) Statistics() (Statistics, bool) { return c.stats, c.ended }

// Next returns the next packet, which is valid until the next call. The error is io.EOF
// at the end, and io.ErrUnexpectedEOF when it ends in the middle of a block.
func (c *Reader) Next() (*Packet, error) {
	for {
		kind, body, err := c.next()
		switch {
		case err != nil:
			return nil, err
		case kind == blockPacket:
			return &c.packet, c.readPacket(body)
		case kind == blockStatistics:
			c.readStatistics(body)
		case kind == blockSection, kind == blockInterface:
			return nil, ErrFormat
		}
	}
}

// next reads a block.
func (c *Reader) next() (kind uint32, body []byte, err error) {
	head, err := c.in.Peek(8)
	if err != nil {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	kind, size := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if size < 12 || size%4 != 0 || size > maxBlock {
		return 0, nil, fmt.Errorf("%w: a block of %d bytes", ErrFormat, size)
	}
	if cap(c.block) < int(size) {
		c.block = make([]byte, size)
	}
	c.block = c.block[:size]
	if _, err := io.ReadFull(c.in, c.block); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	if binary.LittleEndian.Uint32(c.block[size-4:]) != size {
		return 0, nil, fmt.Errorf("%w: a block of two lengths", ErrFormat)
	}
	return kind, c.block[8 : size-4], nil
}

// readPacket reads an enhanced packet block.
func (c *Reader) readPacket(body []byte) error {
	if len(body) < packetLen-12 {
		return fmt.Errorf("%w: a short packet block", ErrFormat)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(body[4*i:]) }
	kept, length := uint64(word(3)), word(4)
	data := body[packetLen-12:]
	if padded := (kept + 3) &^ 3; padded > uint64(len(data)) || word(0) != 0 {
		return fmt.Errorf("%w: a frame of %d bytes in a block of %d", ErrFormat, kept, len(data))
	}
	c.packet = Packet{
		At:   int64(uint64(word(1))<<32 | uint64(word(2))),
		Head: data[:kept:kept], Len: int(length),
	}
	p := &c.packet
	options(data[(kept+3)&^3:], func(code uint16, value []byte) {
		switch {
		case code == optEPBFlags && len(value) == 4:
			p.Dir = Direction(binary.LittleEndian.Uint32(value) & 3)
		case code == optEPBQueue && len(value) == 4:
			p.Queue = int(binary.LittleEndian.Uint32(value))
		case code == optEPBDropCount && len(value) == 8:
			p.Missing = binary.LittleEndian.Uint64(value)
		case code == optComment:
			p.Comment = string(value)
		}
	})
	return nil
}

// readStatistics reads an interface statistics block.
func (c *Reader) readStatistics(body []byte) {
	if len(body) < 12 {
		return
	}
	c.ended = true
	c.stats.At = int64(uint64(binary.LittleEndian.Uint32(body[4:]))<<32 |
		uint64(binary.LittleEndian.Uint32(body[8:])))
	options(body[12:], func(code uint16, value []byte) {
		if len(value) != 8 {
			return
		}
		n := binary.LittleEndian.Uint64(value)
		switch code {
		case optISBIfRecv:
			c.stats.Received = n
		case optISBIfDrop:
			c.stats.Dropped = n
		case optISBFilterAccept:
			c.stats.Accepted = n
		}
	})
}

// options hands out the options of a block, as far as they are whole.
func options(b []byte, each func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if b = b[4:]; code == optEnd || n > len(b) {
			return
		}
		each(code, b[:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}
