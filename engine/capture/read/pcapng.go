package read

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"xroce/roce/dissect"
)

// Blocks and options of pcapng (draft-ietf-opsawg-pcapng).
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockOldPacket = 2
	blockSimple    = 3
	blockPacket    = 6
	byteOrderMagic = 0x1A2B3C4D

	blockHeadLen  = 8  // type and length
	blockFrameLen = 12 // and the length again, behind it

	optEnd         = 0
	optComment     = 1
	optFlags       = 2
	optDropCount   = 4
	optTsResol     = 9
	optTsOffset    = 14
	maxComment     = 1 << 10
	directionMask  = 3
	defaultTsResol = 6
)

// An interface description is what there is to know of one.
type description struct {
	link    dissect.Link
	snaplen uint32
	mul     uint64 // a time stamp, times this
	div     uint64 // and divided by this, is nanoseconds
	offset  int64  // to be added, in nanoseconds
}

// pcapng is a file of blocks.
type pcapng struct {
	order      binary.ByteOrder
	interfaces []description // of this section
}

func (f *pcapng) next(r *Reader, p *Packet) error {
	for {
		b, err := r.take(blockHeadLen)
		if err != nil {
			return err
		}
		kind := binary.BigEndian.Uint32(b) // of a section the same in either order
		if kind == blockSection {
			if err := f.section(r); err != nil {
				return err
			}
			continue
		}
		if f.order == nil {
			return damaged("it does not begin with a section")
		}
		kind = f.order.Uint32(b)
		total := f.order.Uint32(b[4:])
		if total < blockFrameLen || total%4 != 0 {
			return damaged("a block of %d bytes behind packet %d", total, r.number)
		}
		switch kind {
		case blockInterface, blockOldPacket, blockSimple, blockPacket:
		default:
			if err := r.skip(int64(total) - blockHeadLen); err != nil {
				return err
			}
			continue
		}
		if total > MaxBlock {
			return damaged("a block of %d bytes behind packet %d", total, r.number)
		}
		b, err = r.rest(int(total) - blockHeadLen)
		if err != nil {
			return err
		}
		body := b[:len(b)-4]
		if f.order.Uint32(b[len(body):]) != total {
			return damaged("the lengths of a block behind packet %d differ", r.number)
		}
		if err = f.block(kind, body, p); !errors.Is(err, errSkip) {
			return err
		}
	}
}

// section begins a new one: byte order and interfaces are its own.
func (f *pcapng) section(r *Reader) error {
	length, err := r.in.peek(blockHeadLen + 4) // still with the head
	if err != nil {
		return cut(err)
	}
	f.order = nil
	for _, order := range [...]binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(length[blockHeadLen:]) == byteOrderMagic {
			f.order = order
		}
	}
	if f.order == nil {
		return damaged("a section of no byte order")
	}
	f.interfaces = f.interfaces[:0]
	total := f.order.Uint32(length[4:])
	if total < blockFrameLen+16 || total%4 != 0 {
		return damaged("a section header of %d bytes", total)
	}
	return r.skip(int64(total) - blockHeadLen)
}

// block reads a block of which the lengths are right. It returns errSkip when it has no packet.
func (f *pcapng) block(kind uint32, b []byte, p *Packet) error {
	switch kind {
	case blockInterface:
		return f.describe(b)
	case blockSimple:
		return f.simple(b, p)
	}
	const head = 20
	if len(b) < head {
		return damaged("a packet block of %d bytes", len(b))
	}
	number := f.order.Uint32(b)
	if kind == blockOldPacket {
		number = uint32(f.order.Uint16(b))
		if n := f.order.Uint16(b[2:]); n != 0xffff {
			p.Dropped = uint64(n)
		}
	}
	if int64(number) >= int64(len(f.interfaces)) {
		return damaged("a packet of interface %d, of which there is no description", number)
	}
	d := &f.interfaces[number]
	p.Interface, p.Link = int(number), d.link
	p.Time = d.time(uint64(f.order.Uint32(b[4:]))<<32 | uint64(f.order.Uint32(b[8:])))
	n := int64(f.order.Uint32(b[12:]))
	p.Length = length(f.order.Uint32(b[16:]))
	padded := head + (n+3)&^3
	if n > MaxPacket || padded > int64(len(b)) {
		return damaged("a packet of %d bytes in a block of %d", n, len(b))
	}
	p.Data = b[head : head+n : head+n]
	return f.options(b[padded:], func(code uint16, v []byte) {
		switch {
		case code == optComment && p.Comment == "":
			p.Comment = string(v[:min(len(v), maxComment)])
		case code == optFlags && len(v) == 4:
			p.Direction = Direction(f.order.Uint32(v) & directionMask)
		case code == optDropCount && len(v) == 8 && kind == blockPacket:
			p.Dropped = f.order.Uint64(v)
		}
	})
}

// simple reads a packet that has no time stamp and is of the first interface.
func (f *pcapng) simple(b []byte, p *Packet) error {
	if len(f.interfaces) == 0 || len(b) < 4 {
		return damaged("a simple packet without an interface")
	}
	d := &f.interfaces[0]
	p.Link = d.link
	n := f.order.Uint32(b)
	p.Length = length(n)
	if d.snaplen > 0 {
		n = min(n, d.snaplen)
	}
	if n > MaxPacket || int(n) > len(b)-4 {
		return damaged("a simple packet of %d bytes in a block of %d", n, len(b))
	}
	p.Data = b[4 : 4+n : 4+n]
	return nil
}

// describe takes note of an interface.
func (f *pcapng) describe(b []byte) error {
	const head = 8
	if len(b) < head {
		return damaged("an interface block of %d bytes", len(b))
	}
	if len(f.interfaces) == MaxInterfaces {
		return damaged("more than %d interfaces", MaxInterfaces)
	}
	d := description{link: dissect.Link(f.order.Uint16(b)), snaplen: f.order.Uint32(b[4:])}
	d.resolve(defaultTsResol)
	err := f.options(b[head:], func(code uint16, v []byte) {
		switch {
		case code == optTsResol && len(v) == 1:
			d.resolve(v[0])
		case code == optTsOffset && len(v) == 8:
			d.offset = int64(f.order.Uint64(v)) * 1e9
		}
	})
	if err != nil {
		return err
	}
	f.interfaces = append(f.interfaces, d)
	return errSkip
}

// options calls what takes one with each option. They end with the block, or before.
func (f *pcapng) options(b []byte, take func(code uint16, value []byte)) error {
	for len(b) >= 4 {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		b = b[4:]
		switch {
		case code == optEnd:
			return nil
		case n > len(b):
			return damaged("an option of %d bytes, of which its block has %d", n, len(b))
		}
		take(code, b[:n])
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

// resolve sets what a time stamp counts: negative powers of ten, or of two with the highest bit.
// What is finer than 64 bits can say is no time at all.
func (d *description) resolve(resol byte) {
	const finestTen, finestTwo = 19, 63
	exp := int(resol & 0x7f)
	d.mul, d.div = 1e9, 0
	switch {
	case resol&0x80 != 0 && exp <= finestTwo:
		d.div = 1 << exp
	case resol&0x80 == 0 && exp <= finestTen:
		d.div = 1
		for range exp {
			d.div *= 10
		}
	}
}

// time is a time stamp in nanoseconds, 0 where that is no number of 64 bits.
func (d *description) time(stamp uint64) int64 {
	hi, lo := bits.Mul64(stamp, d.mul)
	if hi >= d.div {
		return 0
	}
	q, _ := bits.Div64(hi, lo, d.div)
	if q > 1<<63-1 {
		return 0
	}
	return int64(q) + d.offset
}
