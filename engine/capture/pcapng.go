package capture

import (
	"encoding/binary"
	"slices"
)

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

	optEnd             = 0
	optComment         = 1 // of anything
	optUserAppl        = 4 // section: name of the program
	optIfName          = 2 // interface: its name
	optIfTsresol       = 9 // interface: resolution of time stamps
	optEPBFlags        = 2 // packet: direction
	optEPBDropCount    = 4 // packet: how many before it are missing
	optEPBQueue        = 6 // packet: queue of the interface
	optISBIfRecv       = 4 // statistics: frames that passed
	optISBIfDrop       = 5 // statistics: those of them that are missing
	optISBFilterAccept = 6 // statistics: those of them that were wanted

	nanoseconds = 9 // if_tsresol: 10^-9
)

// Lengths in bytes: of an enhanced packet block without its frame and options, of its
// options, and of the statistics.
const (
	packetLen     = 32
	flagsLen      = 8
	queueLen      = 8
	commentHead   = 4 // without the comment
	dropCountLen  = 12
	endLen        = 4
	statisticsLen = 24 + 3*12 + endLen
)

// maxOption is the longest comment that is written, in bytes.
const maxOption = 1 << 12

// room is more than appendPacket adds for a packet, of which at most snap bytes are kept; 0 keeps
// all.
func room(p *Packet, snap int) int {
	kept := len(p.Head) + len(p.Tail)
	if snap > 0 {
		kept = min(kept, snap)
	}
	const most = packetLen + 3 + dropCountLen + endLen +
		max(flagsLen+queueLen+commentHead+maxComment+3, maxPhrase)
	return most + kept + len(p.Verdict) + len(p.Reason) + min(len(p.Comment), maxOption)
}

// appendPacket adds the block of a packet, of which at most snap bytes are kept; 0 keeps all. At
// and missing take the place of what it says of these itself, and its options are of the phrase,
// if there is one.
func appendPacket(
	to []byte, p *Packet, at int64, missing uint64, snap int, h *phrase,
) []byte {
	head, tail := p.Head, p.Tail
	if snap > 0 {
		head = head[:min(len(head), snap)]
		tail = tail[:min(len(tail), snap-len(head))]
	}
	begin := len(to)
	to = slices.Grow(to, room(p, snap))
	b, le := to[begin:cap(to)], binary.LittleEndian
	_ = b[packetLen-1]
	le.PutUint64(b, blockPacket)
	le.PutUint32(b[8:], 0) // the interface
	le.PutUint32(b[12:], uint32(uint64(at)>>32))
	le.PutUint32(b[16:], uint32(at))
	le.PutUint32(b[20:], uint32(len(head)+len(tail)))
	le.PutUint32(b[24:], uint32(p.wireLen()))
	i := packetLen - 4
	i += copy(b[i:], head)
	if len(tail) > 0 {
		i += copy(b[i:], tail)
	}
	le.PutUint32(b[i:], 0) // padding, of which what follows overwrites some
	i = (i + 3) &^ 3
	switch {
	case h != nil:
		i = h.put(b, i, p.WRID)
	case p.Verdict != "" || p.Comment != "":
		putFlags(b[i:], p.Dir)
		i = putComment(b, i+flagsLen, p)
	default:
		putFlags(b[i:], p.Dir)
		i += flagsLen
	}
	if missing > 0 {
		le.PutUint32(b[i:], 8<<16|optEPBDropCount)
		le.PutUint64(b[i+4:], missing)
		i += dropCountLen
	}
	total := uint32(i + 8)
	le.PutUint32(b[4:], total)
	le.PutUint64(b[i:], uint64(total)<<32|optEnd)
	return to[:begin+int(total)]
}

// putFlags writes which way a packet went.
func putFlags(b []byte, dir Direction) {
	binary.LittleEndian.PutUint64(b, uint64(dir)<<32|4<<16|optEPBFlags)
}

// putQueue writes the queue of a packet.
func putQueue(b []byte, queue int) {
	binary.LittleEndian.PutUint64(b, uint64(uint32(queue))<<32|4<<16|optEPBQueue)
}

// putComment writes the queue of a packet and what there is to say of it at i, if somebody said
// which queue it was on, and returns where that ends.
func putComment(b []byte, i int, p *Packet) int {
	putQueue(b[i:], p.Queue)
	i += queueLen
	text := i + commentHead
	end := text
	if p.Verdict != "" {
		end = min(len(p.AppendComment(b[:text])), text+maxOption)
	} else {
		end += copy(b[text:], p.Comment[:min(len(p.Comment), maxOption)])
	}
	binary.LittleEndian.PutUint32(b[i:], uint32(end-text)<<16|optComment)
	binary.LittleEndian.PutUint32(b[end:], 0)
	return (end + 3) &^ 3
}

// appendHeader begins a capture of an interface, with at most snap bytes of each frame; 0 is
// all.
func appendHeader(b []byte, iface string, snap int) []byte {
	section := binary.LittleEndian.AppendUint32(nil, byteOrderMagic)
	section = binary.LittleEndian.AppendUint16(section, 1) // version 1.0
	section = binary.LittleEndian.AppendUint16(section, 0)
	section = binary.LittleEndian.AppendUint64(section, ^uint64(0)) // length not given
	section = appendOption(section, optUserAppl, []byte("xroce"))
	section = appendOption(section, optEnd, nil)
	b = appendBlock(b, blockSection, section)

	desc := binary.LittleEndian.AppendUint16(nil, linkEthernet)
	desc = binary.LittleEndian.AppendUint16(desc, 0)
	desc = binary.LittleEndian.AppendUint32(desc, uint32(snap))
	desc = appendOption(desc, optIfName, []byte(iface))
	desc = appendOption(desc, optIfTsresol, []byte{nanoseconds})
	desc = appendOption(desc, optEnd, nil)
	return appendBlock(b, blockInterface, desc)
}

// Statistics are what a capture says of itself at its end.
type Statistics struct {
	At       int64  // when the last packet passed, in nanoseconds since 1970
	Received uint64 // frames that passed
	Accepted uint64 // those of them that were wanted: that the filter matched
	Dropped  uint64 // those of these that are missing, for want of room
}

// append adds the block of the statistics.
func (s *Statistics) append(b []byte) []byte {
	body := binary.LittleEndian.AppendUint32(nil, 0) // the interface
	body = binary.LittleEndian.AppendUint32(body, uint32(uint64(s.At)>>32))
	body = binary.LittleEndian.AppendUint32(body, uint32(s.At))
	body = appendCount(body, optISBIfRecv, s.Received)
	body = appendCount(body, optISBIfDrop, s.Dropped)
	body = appendCount(body, optISBFilterAccept, s.Accepted)
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
	return append(b, "\x00\x00\x00"[:-len(value)&3]...)
}

// appendCount adds an option that is a number of frames.
func appendCount(b []byte, code uint16, n uint64) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, 8)
	return binary.LittleEndian.AppendUint64(b, n)
}
