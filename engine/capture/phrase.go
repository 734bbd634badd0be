package capture

import "encoding/binary"

// A phrase is what the options of a packet say, written once: most packets say the same as one
// before them, but for the number of the work request.
type phrase struct {
	dir Direction
	of  Info // but for the work request
	// The options as far as that number, and what follows it, with how long they are.
	begin    [phraseBegin]byte
	end      [phraseEnd]byte
	beginLen int
	endLen   int
}

// Room in bytes: for flags, queue, "qp 0x000000 peer 0x000000 wr ", and for a verdict with its
// reason. Both are copied whole, which takes less time than as far as they are used.
const (
	phraseBegin = 64
	phraseEnd   = 32
)

// phraseCount is how many phrases a Writer keeps, a power of two.
const phraseCount = 64

// phraseOf returns the phrase of a packet, which is made if it is not there, or nil for one that
// has to be written in full: nobody judged it, or what there is to say is long.
func (c *Writer) phraseOf(p *Packet) *phrase {
	if p.Verdict == "" || len(p.Verdict)+len(p.Reason)+len(": ") >= phraseEnd {
		return nil
	}
	h := &c.phrases[(p.QPN^p.Peer<<2^uint32(p.Dir))&(phraseCount-1)]
	o := &h.of
	if h.dir != p.Dir || o.QPN != p.QPN || o.Peer != p.Peer || o.Queue != p.Queue ||
		o.HasWR != p.HasWR || o.Verdict != p.Verdict || o.Reason != p.Reason {
		h.learn(p)
	}
	return h
}

// learn makes it the phrase of a packet.
func (h *phrase) learn(p *Packet) {
	h.dir, h.of = p.Dir, p.Info
	putFlags(h.begin[:], p.Dir)
	putQueue(h.begin[flagsLen:], p.Queue)
	const text = flagsLen + queueLen + commentHead
	binary.LittleEndian.PutUint32(h.begin[text-commentHead:], optComment)
	h.beginLen = len(p.appendWhose(h.begin[:text]))
	end := h.end[:0]
	if p.HasWR {
		end = append(end, ' ')
	}
	h.endLen = len(p.appendVerdict(end))
}

// put writes the options of a packet at i and returns where they end. There are maxPhrase bytes.
func (h *phrase) put(b []byte, i int, wrID uint64) int {
	*(*[phraseBegin]byte)(b[i:]) = h.begin
	at := i + h.beginLen
	if h.of.HasWR {
		at += putDecimal((*[maxDecimal]byte)(b[at:]), wrID)
	}
	*(*[phraseEnd]byte)(b[at:]) = h.end
	at += h.endLen
	const text = flagsLen + queueLen + commentHead
	binary.LittleEndian.PutUint16(b[i+text-2:], uint16(at-i-text))
	binary.LittleEndian.PutUint32(b[at:], 0) // padding
	return (at + 3) &^ 3
}

// maxPhrase is more than put writes, in bytes.
const maxPhrase = phraseBegin + maxDecimal + phraseEnd + 8

// maxDecimal is how many digits a number has at most.
const maxDecimal = 20

// pairs are the numbers below 100, with two digits each.
const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839" +
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// putDecimal writes a number and returns how many digits it has.
func putDecimal(b *[maxDecimal]byte, v uint64) int {
	n := 1
	for limit := uint64(10); n < maxDecimal && v >= limit; limit *= 10 {
		n++
	}
	i := n
	for v >= 100 {
		two := v % 100 * 2
		v /= 100
		i -= 2
		b[i], b[i+1] = pairs[two], pairs[two+1]
	}
	if v >= 10 {
		b[0], b[1] = pairs[v*2], pairs[v*2+1]
	} else {
		b[0] = '0' + byte(v)
	}
	return n
}
