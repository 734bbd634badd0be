package perf

import (
	"encoding/binary"
	"fmt"

	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/wire"
)

// A layout says where things are in the registered memory: for each QP a part to
// send from, and behind those for each QP a part to receive to, which is also what
// the peer reads and writes. A part holds the longest message; shorter ones go
// through a cycle of slots, a page long, so that they do not all touch the same
// cache line.
type layout struct {
	qps   int
	part  int // bytes
	cycle int // bytes of the cycle of short messages
	line  int // bytes by which they are apart at least
}

const (
	// maxMemory bounds what a test registers, by what the user asked for.
	maxMemory = 1 << 36
	// maxForPeer bounds by how much a peer can make that larger.
	maxForPeer = 64 << 20
)

// newLayout makes the layout for what both ends use. A peer whose pages or cache lines
// are larger than ours makes it larger, within bounds.
func newLayout(c *Config, s perftest.System) (layout, error) {
	own, l := layoutOf(c, ownSystem), layoutOf(c, s)
	if own.size() > maxMemory {
		return l, fmt.Errorf("%w: %d QPs with messages of %d bytes need %d bytes of memory: "+
			"choose a smaller -q or -s", roce.ErrInvalid, c.QPs, c.Size, own.size())
	}
	if more := l.size() - own.size(); more > maxForPeer {
		return l, fmt.Errorf("%w: the peer asks for a buffer cycle of %d bytes and a cache "+
			"line of %d, which makes the memory of %d QPs larger by %d bytes; %d are the most: "+
			"choose a smaller -q", roce.ErrInvalid, s.Cycle, s.CacheLine, c.QPs, more, maxForPeer)
	}
	return l, nil
}

// layoutOf is the layout for machines of one sort.
func layoutOf(c *Config, s perftest.System) layout {
	l := layout{qps: c.QPs, cycle: s.Cycle, line: max(s.CacheLine, 8)}
	l.part = l.aligned(max(c.Size+c.header(), s.Cycle))
	return l
}

// initMemory fills the memory so that bytes that came from the wrong place, or went to one,
// are seen.
func (e *end) initMemory(mtu wire.MTU) error {
	return touch(func() { initMemory(e.memory, e.cfg, e.at, mtu) })
}

// initMemory fills the memory of a layout so that bytes that came from the wrong place,
// or went to one, are seen. ib_write_lat counts its messages in the last byte of each,
// from 1 on, so that byte begins as 0.
func initMemory(b []byte, c *Config, l layout, mtu wire.MTU) {
	fill(b)
	if c.Test.Latency && c.Test.Verb == Write {
		for _, n := range c.sizes(mtu) {
			b[l.in(0)+n-1] = 0
		}
	}
}

// fill gives every eight bytes a value of their own, a hash of their offset: the
// finalizer of MurmurHash3, which maps no two words to one.
func fill(b []byte) {
	var some [512]byte
	for at := 0; at < len(b); at += len(some) {
		for i := 0; i < len(some); i += 8 {
			x := uint64(at+i) + 0x9e3779b97f4a7c15 // the hash of 0 is 0
			x = (x ^ x>>33) * 0xff51afd7ed558ccd
			x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
			binary.LittleEndian.PutUint64(some[i:], x^x>>33)
		}
		copy(b[at:], some[:])
	}
}

// header is what a receive holds before the message.
func (c *Config) header() int {
	if c.Type == roce.TypeUD {
		return grhLen
	}
	return 0
}

func (l layout) aligned(n int) int { return (n + l.line - 1) / l.line * l.line }

// size is the length of the whole memory.
func (l layout) size() int { return 2 * l.qps * l.part }

// out is the offset of what a QP sends.
func (l layout) out(qp int) int { return qp * l.part }

// in is the offset of what a QP receives, and of what its peer may touch.
func (l layout) in(qp int) int { return (l.qps + qp) * l.part }

// slots says how many places messages of n bytes go through, and how far they are
// apart.
func (l layout) slots(n int) (count, stride uint64) {
	if n > l.cycle/2 {
		return 1, 0
	}
	step := max(l.aligned(n), l.line)
	return uint64(max(l.cycle/step, 1)), uint64(step)
}
