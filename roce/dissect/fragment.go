package dissect

import (
	"encoding/binary"
	"net/netip"

	"xroce/roce/clock"
)

// FragmentLife is how long after the first of its fragments that was there a datagram may still
// become whole: as long as Linux waits (net.ipv4.ipfrag_time).
const FragmentLife = 30 * clock.Second

// Bounds of what is kept of fragments. A datagram takes 64 KiB at most, and the place of the oldest
// when there are too many.
const (
	maxDatagrams   = 64
	maxSpans       = 64 // parts of a datagram with something missing between them
	maxDatagramLen = 1<<16 - 1
	maxIPHeader    = 128 // of the first fragment, with what is behind an IPv6 header
	fragmentUnit   = 8
)

// Words of an IPv4 header, and of the fragment header of IPv6 (RFC 791 3.1, RFC 8200 4.5).
const (
	ipv4More      = 0x2000
	ipv4Offset    = 0x1fff // in units of 8 bytes
	ipv6Fragment  = 44
	ipv6FragLen   = 8
	ipv6More      = 1
	ipv6OffOffset = 0xfff8 // in bytes
)

// Joining says what came of a fragment of a UDP datagram.
type Joining uint8

// What may come of one.
const (
	NoFragment Joining = iota
	Alone              // others are missing, or the capture lacks its end
	Joined             // it was the last that was missing: the datagram is whole
	Repeated           // it was there before
	Overlaps           // it contradicts one that was there before: the datagram is given up
	Impossible         // it is damaged, or ends behind the longest datagram
)

// String says it as it is printed.
func (j Joining) String() string {
	return [8]string{
		"no fragment", "of a larger packet", "the last one", "repeated", "overlaps another one",
		"impossible",
	}[j&7]
}

// A part is what is in a fragment.
type part struct {
	src, dst netip.Addr
	id       uint32
	offset   int // of its data in those of the datagram, in bytes
	more     bool
	header   []byte // before the data, without the fragment header of IPv6
	next     int    // where in an IPv6 header the protocol is named
	data     []byte
}

// end is where its data end.
func (f *part) end() int { return f.offset + len(f.data) }

// A span is what is there of a datagram, from one byte to another.
type span struct{ begin, end int }

// A datagram is one of which some fragments came. When it is whole, or is given up, its fragments
// are known for a while longer: they may come once more.
type datagram struct {
	used     bool
	over     bool // whole, or given up
	src, dst netip.Addr
	id       uint32
	began    clock.Time
	serial   uint64 // of its first fragment

	header    []byte // of the fragment with offset 0
	hasHeader bool
	next      int
	data      []byte // as far as it goes
	length    int    // of all data, -1 while that is not known
	spans     []span
	count     int // fragments
}

// An assembler puts UDP datagrams together that were cut into fragments.
type assembler struct {
	datagrams []datagram
	serial    uint64
	whole     []byte // the datagram that was finished last, as it was before it was cut
	frame     []byte // the frame of its last fragment, with all of its data
}

// find returns the datagram that a fragment is of, or a place for a new one.
func (a *assembler) find(now clock.Time, f *part) *datagram {
	if a.datagrams == nil {
		a.datagrams = make([]datagram, maxDatagrams)
	}
	var free *datagram
	for i := range a.datagrams {
		g := &a.datagrams[i]
		age := now - g.began
		if g.used && (age > FragmentLife || age < -FragmentLife) {
			g.used = false // too old, or a clock was set
		}
		switch {
		case !g.used:
			if free == nil || free.used {
				free = g
			}
		case g.id == f.id && g.src == f.src && g.dst == f.dst:
			return g
		case free == nil || free.used && g.serial < free.serial:
			free = g
		}
	}
	a.begin(free, now, f)
	return free
}

// begin makes a place that of a new datagram.
func (a *assembler) begin(g *datagram, now clock.Time, f *part) {
	a.serial++
	*g = datagram{
		used: true, src: f.src, dst: f.dst, id: f.id, began: now, serial: a.serial, length: -1,
		header: g.header[:0], data: g.data[:0], spans: g.spans[:0],
	}
}

// add takes a fragment, and returns its datagram.
func (a *assembler) add(now clock.Time, f *part) (*datagram, Joining) {
	g := a.find(now, f)
	if g.over {
		// What comes behind the end is a repetition, or a new datagram with the old number.
		if f.offset != 0 {
			return g, Repeated
		}
		a.begin(g, now, f)
	}
	j := g.put(f)
	if j == Overlaps || j == Impossible {
		g.over = true
	}
	if j != Alone || !g.hasHeader || g.length < 0 || len(g.spans) != 1 ||
		g.spans[0] != (span{0, g.length}) {
		return g, j
	}
	g.over = true
	if g.size() > maxDatagramLen {
		return g, Impossible
	}
	return g, Joined
}

// size is what the length field of its IP header has to say, without that of IPv6 itself.
func (g *datagram) size() int {
	n := len(g.header) + len(g.data)
	if g.header[0]>>4 == 6 {
		return n - ipv6Len
	}
	return n
}

// put puts a fragment in its place.
func (g *datagram) put(f *part) Joining {
	begin, end := f.offset, f.end()
	switch {
	case end > maxDatagramLen, len(f.header) > maxIPHeader, len(f.data) == 0,
		f.more && len(f.data)%fragmentUnit != 0:
		return Impossible
	case g.length >= 0 && (end > g.length || !f.more && end != g.length),
		!f.more && len(g.spans) > 0 && g.spans[len(g.spans)-1].end > end:
		return Overlaps // it contradicts the last one, or is the last and ends too early
	}
	i := 0 // spans before it
	for i < len(g.spans) && g.spans[i].end < begin {
		i++
	}
	if i < len(g.spans) && g.spans[i].begin <= begin && end <= g.spans[i].end {
		if string(g.data[begin:end]) != string(f.data) {
			return Overlaps
		}
		return Repeated
	}
	j := i // spans that it touches, up to here
	for ; j < len(g.spans) && g.spans[j].begin <= end; j++ {
		if g.spans[j].end > begin && g.spans[j].begin < end {
			return Overlaps
		}
	}
	return g.insert(f, i, j)
}

// insert puts a fragment between spans, of which it joins those from i to j.
func (g *datagram) insert(f *part, i, j int) Joining {
	s := span{f.offset, f.end()}
	if i < j {
		s.begin, s.end = min(s.begin, g.spans[i].begin), max(s.end, g.spans[j-1].end)
		g.spans[i] = s
		g.spans = append(g.spans[:i+1], g.spans[j:]...)
	} else {
		if len(g.spans) == maxSpans {
			return Impossible
		}
		g.spans = append(g.spans, span{})
		copy(g.spans[i+1:], g.spans[i:])
		g.spans[i] = s
	}
	if n := f.end(); n > len(g.data) {
		g.data = append(g.data, make([]byte, n-len(g.data))...)
	}
	copy(g.data[f.offset:], f.data)
	if !f.more {
		g.length = f.end()
	}
	if f.offset == 0 {
		g.header, g.next, g.hasHeader = append(g.header[:0], f.header...), f.next, true
	}
	g.count++
	return Alone
}

// port is the UDP port that the datagram goes to, 0 while it is not known.
func (g *datagram) port() uint16 {
	if !g.hasHeader || len(g.data) < udpLen {
		return 0
	}
	return binary.BigEndian.Uint16(g.data[2:])
}

// restore makes the datagram as it was before it was cut.
func (a *assembler) restore(g *datagram) {
	a.whole = append(append(a.whole[:0], g.header...), g.data...)
	b := a.whole
	if b[0]>>4 == 6 {
		binary.BigEndian.PutUint16(b[4:], uint16(g.size()))
		b[g.next] = protoUDP
		return
	}
	binary.BigEndian.PutUint16(b[2:], uint16(g.size()))
	flags := binary.BigEndian.Uint16(b[6:]) &^ (ipv4More | ipv4Offset)
	binary.BigEndian.PutUint16(b[6:], flags)
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^headerSum(b[:len(g.header)]))
}

// headerSum is the ones' complement sum of an IPv4 header (RFC 1071).
func headerSum(h []byte) uint16 {
	sum := uint32(0)
	for ; len(h) >= 2; h = h[2:] {
		sum += uint32(binary.BigEndian.Uint16(h))
	}
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}
