package capture

import "encoding/binary"

// The format is little-endian pcapng (draft-ietf-opsawg-pcapng): one section,
// one interface, an enhanced packet block (EPB) a frame, and the statistics of the
// interface (ISB) at the end.
const (
	blockSection    = 0x0A0D0D0A
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6
	byteOrderMagic  = 0x1A2B3C4D
	linkEthernet    = 1 // LINKTYPE_ETHERNET

	optEnd          = 0
	optUserAppl     = 4 // section: name of the program
	optIfName       = 2 // interface: its name
	optIfTsresol    = 9 // interface: resolution of time stamps
	optEPBFlags     = 2 // packet: direction
	optEPBDropCount = 4 // packet: how many before it are missing
	optISBIfRecv    = 4 // statistics: frames that passed
	optISBIfDrop    = 5 // statistics: those of them that are missing

	nanoseconds = 9 // if_tsresol: 10^-9
)

// A frame is what there is to say of one.
type frame struct {
	at         int64 // nanoseconds since 1970
	dir        Direction
	missing    uint64 // frames before it that were dropped
	head, tail []byte
}

// Lengths in bytes: of an enhanced packet block without its frame and options, of its
// options, and of the statistics.
const (
	packetLen     = 32
	flagsLen      = 8
	dropCountLen  = 12
	endLen        = 4
	statisticsLen = 24 + 2*12 + endLen
)

// size is the length of the block of a frame, in bytes.
func (f *frame) size() int {
	n := packetLen + (len(f.head)+len(f.tail)+3)&^3 + flagsLen + endLen
	if f.missing > 0 {
		n += dropCountLen
	}
	return n
}

// append adds the block of a frame.
func (f *frame) append(b []byte) []byte {
	n, total := len(f.head)+len(f.tail), uint32(f.size())
	for _, v := range [...]uint32{
		blockPacket, total, 0, uint32(uint64(f.at) >> 32), uint32(f.at), uint32(n), uint32(n),
	} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(append(b, f.head...), f.tail...)
	b = append(b, "\x00\x00\x00"[:-n&3]...)
	b = binary.LittleEndian.AppendUint16(b, optEPBFlags)
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.dir))
	if f.missing > 0 {
		b = appendCount(b, optEPBDropCount, f.missing)
	}
	b = binary.LittleEndian.AppendUint32(b, optEnd)
	return binary.LittleEndian.AppendUint32(b, total)
}

// appendHeader begins a capture of an interface.
func appendHeader(b []byte, iface string) []byte {
	section := binary.LittleEndian.AppendUint32(nil, byteOrderMagic)
	section = binary.LittleEndian.AppendUint16(section, 1) // version 1.0
	section = binary.LittleEndian.AppendUint16(section, 0)
	section = binary.LittleEndian.AppendUint64(section, ^uint64(0)) // length not given
	section = appendOption(section, optUserAppl, []byte("xroce"))
	section = appendOption(section, optEnd, nil)
	b = appendBlock(b, blockSection, section)

	desc := binary.LittleEndian.AppendUint16(nil, linkEthernet)
	desc = binary.LittleEndian.AppendUint16(desc, 0)
	desc = binary.LittleEndian.AppendUint32(desc, 0) // whole frames
	desc = appendOption(desc, optIfName, []byte(iface))
	desc = appendOption(desc, optIfTsresol, []byte{nanoseconds})
	desc = appendOption(desc, optEnd, nil)
	return appendBlock(b, blockInterface, desc)
}

// appendStatistics adds how many frames passed until a time, and how many of them are
// missing.
func appendStatistics(b []byte, at int64, passed, missing uint64) []byte {
	body := binary.LittleEndian.AppendUint32(nil, 0) // the interface
	body = binary.LittleEndian.AppendUint32(body, uint32(uint64(at)>>32))
	body = binary.LittleEndian.AppendUint32(body, uint32(at))
	body = appendCount(body, optISBIfRecv, passed)
	body = appendCount(body, optISBIfDrop, missing)
	body = appendOption(body, optEnd, nil)
	return appendBlock(b, blockStatistics, body)
}

// appendBlock adds a block that has no packet in it.
func appendBlock(b []byte, kind uint32, body []byte) []byte {
	total := uint32(12 + len(body))
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint32(b, total)
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, total)
}

// appendOption adds an option, padded to four bytes.
func appendOption(b []byte, code uint16, value []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

// appendCount adds an option that is a number of frames.
func appendCount(b []byte, code uint16, n uint64) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, 8)
	return binary.LittleEndian.AppendUint64(b, n)
}
