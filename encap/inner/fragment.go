package inner

import "encoding/binary"

// Words of an IPv4 header, and options (RFC 791 3.1).
const (
	moreFragments  = 0x2000
	fragmentOffset = 0x1fff // in units of 8 bytes
	fragmentUnit   = 8

	ipOptionEnd    = 0
	ipOptionNoOp   = 1
	ipOptionCopied = 0x80 // it is in all fragments
)

// Fragments are those of an IPv4 packet that may be cut, and is longer than an MTU.
type Fragments struct {
	b     []byte // the datagram, up to the end of the packet
	l3    int
	mtu   int
	first int // length of the header, of the first fragment
	at    int // of the next data, from the datagram's beginning on
	field uint16
	done  bool
}

// Fragments cuts an IPv4 packet into fragments of at most mtu bytes (RFC 791 3.2), each in a
// frame like that of the packet. The checksum of what is in it must be complete. ok is false when
// the packet may not be cut, or there is no room for 8 bytes of data.
func (h *Headers) Fragments(b []byte, mtu int) (f Fragments, ok bool) {
	if h.Version != 4 || h.End < h.L3+ipv4Len {
		return Fragments{}, false
	}
	ip := b[h.L3:h.End]
	first := int(ip[0]&0xf) * 4
	field := binary.BigEndian.Uint16(ip[6:])
	if field&dontFragment != 0 || first < ipv4Len || len(ip) < first ||
		mtu < first+fragmentUnit {
		return Fragments{}, false
	}
	return Fragments{
		b: b[:h.End], l3: h.L3, mtu: mtu, first: first, at: h.L3 + first, field: field,
	}, true
}

// Next writes the next fragment and returns its length, 0 after the last one. dst must have room
// for mtu bytes and the header of Ethernet.
func (f *Fragments) Next(dst []byte) int {
	if f.done {
		return 0
	}
	n := copy(dst, f.b[:f.l3])
	ip := dst[n:]
	header := copy(ip, f.b[f.l3:f.l3+f.first])
	begin := f.l3 + f.first
	if f.at > begin {
		header = f.laterHeader(ip)
	}
	data := min(len(f.b)-f.at, f.mtu-header)
	offset := f.field&fragmentOffset + uint16((f.at-begin)/fragmentUnit)
	field := f.field&^uint16(fragmentOffset) | offset&fragmentOffset // a lie stays in its field
	if f.done = f.at+data == len(f.b); !f.done {
		data &^= fragmentUnit - 1
		field |= moreFragments
	}
	copy(ip[header:], f.b[f.at:f.at+data])
	f.at += data
	ip[0] = 4<<4 | byte(header/4)
	binary.BigEndian.PutUint16(ip[2:], uint16(header+data))
	binary.BigEndian.PutUint16(ip[6:], field)
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], Checksum(ip[:header]))
	return n + header + data
}

// laterHeader keeps of the options in a header those that are to be in all fragments, and returns
// its length.
func (f *Fragments) laterHeader(ip []byte) int {
	options := f.b[f.l3+ipv4Len : f.l3+f.first]
	end := ipv4Len
	for len(options) > 0 && options[0] != ipOptionEnd {
		n := 1
		if options[0] != ipOptionNoOp {
			if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
				break
			}
			n = int(options[1])
		}
		if options[0]&ipOptionCopied != 0 {
			end += copy(ip[end:], options[:n])
		}
		options = options[n:]
	}
	for end%4 != 0 {
		ip[end] = ipOptionEnd
		end++
	}
	return end
}
