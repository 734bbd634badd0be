package load

import (
	"encoding/binary"
	"errors"
	"fmt"

	"xroce/bench/worker"
	"xroce/roce/wire"
	"xroce/xsk"
)

// Raw frames whose sender gathers the payload and whose receiver places it, each with its
// CRC: one copy and one checksum at each end and no protocol, so the limit of a transport that
// does both.

// errUnplaced means that frames came, and that none had the CRC of what was in it.
var errUnplaced = errors.New("load: no frame had a right CRC")

// payloadAt is where the payload of a packet begins, behind its BTH.
const payloadAt = headersLen + wire.BTHLen

// A placer gathers the payloads of packets from memory, one behind the other, or places
// them there.
type placer struct {
	template wire.Template
	memory   []byte
	at       int // where the next payload begins
	number   uint16
}

// newPlacer returns one for frames of size bytes with a header, and so many bytes of memory.
func newPlacer(header []byte, size, memory int) (*placer, error) {
	n := size - RCOverhead
	if n <= 0 || n%4 != 0 || memory%n != 0 {
		return nil, fmt.Errorf("load: frames of %d bytes for %d of memory", size, memory)
	}
	p := &placer{memory: make([]byte, memory)}
	for i := range p.memory {
		p.memory[i] = byte(i)
	}
	path := pathOf(header)
	path.Framing = wire.FramingV2IPv4
	return p, p.template.Init(path)
}

// next moves on by n bytes, from the end of the memory to its begin, and returns these.
func (p *placer) next(n int) []byte {
	if p.at+n > len(p.memory) {
		p.at = 0
	}
	b := p.memory[p.at:][:n]
	p.at += n
	return b
}

// gather fills a frame.
func (p *placer) gather(frame []byte) {
	n := len(frame) - RCOverhead
	microBTH.Put(frame[headersLen:])
	copy(frame[payloadAt:], p.next(n))
	p.number++
	p.template.Seal(frame, wire.BTHLen+n, p.number)
}

// place takes the payload of a frame that lies in one or two pieces, and reports whether its
// CRC is right.
func (p *placer) place(head, tail []byte) bool {
	n := len(head) + len(tail) - RCOverhead
	if n < 0 || n > len(p.memory) || len(head) < payloadAt {
		return false
	}
	last := &tail
	if len(tail) == 0 {
		last = &head
	}
	end := len(*last) - wire.ICRCLen
	if end < 0 {
		return false // the CRC itself lies in two pieces, which no frame of ours does
	}
	crc := binary.LittleEndian.Uint32((*last)[end:])
	*last = (*last)[:end]
	if wire.ICRC(wire.FramingV2IPv4, head[ethernetLen:], tail) != crc {
		return false
	}
	to := p.next(n)
	copy(to[copy(to, head[payloadAt:]):], tail)
	return true
}

// gathered is send with payloads from memory.
func gathered(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	p, err := newPlacer(o.Header, o.Size, max(o.Message, o.Memory))
	if err != nil {
		return nil, 0, nil, err
	}
	return sendEach(s, o, p.gather)
}

// placed is receive with payloads to memory. A frame whose CRC is wrong does not count.
func placed(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	p, err := newPlacer(o.Header, o.Size, max(o.Message, o.Memory))
	if err != nil {
		return nil, 0, nil, err
	}
	return receiveEach(s, o, errUnplaced, func(f *xsk.RxFrame) bool {
		return p.place(f.Head, f.Tail)
	})
}
