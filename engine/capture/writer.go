package capture

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// The format is little-endian pcapng (draft-ietf-opsawg-pcapng): one section,
// one interface, and an enhanced packet block (EPB) a frame.
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockPacket    = 6
	byteOrderMagic = 0x1A2B3C4D
	linkEthernet   = 1 // LINKTYPE_ETHERNET

	optEnd       = 0
	optUserAppl  = 4 // section: name of the program
	optIfName    = 2 // interface: its name
	optIfTsresol = 9 // interface: resolution of time stamps
	optEPBFlags  = 2 // packet: direction

	nanoseconds = 9 // if_tsresol: 10^-9
)

// bufferSize is how much is gathered before the file is written to.
const bufferSize = 1 << 20

// Direction says which way a frame went, as in epb_flags.
type Direction uint32

// The directions.
const (
	Inbound  Direction = 1
	Outbound Direction = 2
)

// A Writer writes a capture. It is safe for concurrent use. After an error it
// writes nothing more and Close returns the error.
type Writer struct {
	mu     sync.Mutex
	out    *bufio.Writer
	head   [32]byte
	frames uint64
	err    error
}

// NewWriter begins a capture of one Ethernet interface.
func NewWriter(w io.Writer, iface string) (*Writer, error) {
	c := &Writer{out: bufio.NewWriterSize(w, bufferSize)}
	section := binary.LittleEndian.AppendUint32(nil, byteOrderMagic)
	section = binary.LittleEndian.AppendUint16(section, 1) // version 1.0
	section = binary.LittleEndian.AppendUint16(section, 0)
	section = binary.LittleEndian.AppendUint64(section, ^uint64(0)) // length not given
	section = appendOption(section, optUserAppl, []byte("xroce"))
	section = appendOption(section, optEnd, nil)
	c.block(blockSection, section)

	desc := binary.LittleEndian.AppendUint16(nil, linkEthernet)
	desc = binary.LittleEndian.AppendUint16(desc, 0)
	desc = binary.LittleEndian.AppendUint32(desc, 0) // whole frames
	desc = appendOption(desc, optIfName, []byte(iface))
	desc = appendOption(desc, optIfTsresol, []byte{nanoseconds})
	desc = appendOption(desc, optEnd, nil)
	c.block(blockInterface, desc)
	if c.err != nil {
		return nil, fmt.Errorf("capture: %w", c.err)
	}
	return c, nil
}

// Frame adds a frame, given in one or two pieces.
func (c *Writer) Frame(at time.Time, dir Direction, head, tail []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(head) + len(tail)
	pad := -n & 3
	const options = 12 // epb_flags and the end of options
	total := uint32(12 + 20 + n + pad + options)
	ts := uint64(at.UnixNano())
	b := c.head[:28]
	for i, v := range [...]uint32{
		blockPacket, total, 0, uint32(ts >> 32), uint32(ts),
		uint32(n), uint32(n),
	} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	c.write(b)
	c.write(head)
	c.write(tail)
	b = append(c.head[:0], 0, 0, 0)[:pad]
	b = binary.LittleEndian.AppendUint16(b, optEPBFlags)
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = binary.LittleEndian.AppendUint32(b, uint32(dir))
	b = binary.LittleEndian.AppendUint32(b, optEnd)
	b = binary.LittleEndian.AppendUint32(b, total)
	c.write(b)
	c.frames++
}

// Frames returns how many frames were added.
func (c *Writer) Frames() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames
}

// Flush writes out what is buffered and returns the first error of all.
func (c *Writer) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.out.Flush()
	}
	if c.err != nil {
		return fmt.Errorf("capture: %w", c.err)
	}
	return nil
}

// block writes a block that has no packet in it.
func (c *Writer) block(kind uint32, body []byte) {
	total := uint32(12 + len(body))
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, total)
	b = append(b, body...)
	c.write(binary.LittleEndian.AppendUint32(b, total))
}

func (c *Writer) write(b []byte) {
	if c.err == nil {
		_, c.err = c.out.Write(b)
	}
}

// appendOption adds an option, padded to four bytes.
func appendOption(b []byte, code uint16, value []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}
