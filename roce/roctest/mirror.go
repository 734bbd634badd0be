package roctest

import "xroce/roce/mem"

// A Mirror is a key beside all that it stands for: a pointer to every byte, in order.
// That is what a layout means, at its slowest.
type Mirror struct {
	Region *mem.Region
	Bytes  []*byte
	Depth  int // layouts on top of each other
}

// Region registers b at an address of its own and mirrors it. It panics when that is
// refused.
func Region(k *mem.Keys, d *mem.Domain, b []byte, addr uint64, access mem.Access) *Mirror {
	r, err := k.RegisterAt(d, b, addr, access)
	if err != nil {
		panic(err)
	}
	m := &Mirror{Region: r, Bytes: make([]*byte, len(b))}
	for i := range b {
		m.Bytes[i] = &b[i]
	}
	return m
}

// Load returns n bytes, off bytes into the mirror.
func (m *Mirror) Load(off, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = *m.Bytes[off+i]
	}
	return b
}

// Store stores b off bytes into the mirror.
func (m *Mirror) Store(off int, b []byte) {
	for i := range b {
		*m.Bytes[off+i] = b[i]
	}
}

// List is a layout of pieces, each [off, n) of one of the mirrors, and its mirror
// without a key.
func List(pieces []mem.Piece, from []*Mirror) (*mem.Layout, *Mirror) {
	l, err := mem.NewList(pieces)
	if err != nil {
		panic(err)
	}
	m := &Mirror{}
	for i, p := range pieces {
		off := p.Addr - from[i].Region.Addr()
		m.Bytes = append(m.Bytes, from[i].Bytes[off:off+p.Length]...)
		if p.Length > 0 { // one of nothing is not part of the layout
			m.Depth = max(m.Depth, from[i].Depth+1)
		}
	}
	return l, m
}

// Interleaved is a layout of blocks, each in one of the mirrors, and its mirror
// without a key.
func Interleaved(repeat []uint64, blocks []mem.Block, from []*Mirror) (*mem.Layout, *Mirror) {
	l, err := mem.NewInterleaved(repeat, blocks)
	if err != nil {
		panic(err)
	}
	m := &Mirror{}
	at := make([]uint64, len(repeat))
	for {
		for i, b := range blocks {
			off := b.Addr - from[i].Region.Addr()
			for d, n := range at {
				off += n * b.Strides[d]
			}
			m.Bytes = append(m.Bytes, from[i].Bytes[off:off+b.Bytes]...)
			m.Depth = max(m.Depth, from[i].Depth+1)
		}
		d := 0
		for ; d < len(at); d++ {
			if at[d]++; at[d] < repeat[d] {
				break
			}
			at[d] = 0
		}
		if d == len(at) {
			return l, m
		}
	}
}

// Draw makes a layout over some of the mirrors, of up to some 4000 bytes. Whatever
// choose, which returns a number below n, answers, the layout is a valid one; with
// writable its elements do not overlap, and in spite of that their strides come in
// any order.
func Draw(choose func(n int) int, from []*Mirror, writable bool) (*mem.Layout, *Mirror) {
	pick := func() *Mirror { return from[choose(len(from))] }
	count := 1 + choose(4)
	mirrors := make([]*Mirror, count)
	if choose(2) == 0 {
		pieces := make([]mem.Piece, count)
		for i := range pieces {
			m := pick()
			n := 1 + choose(min(len(m.Bytes), 200))
			off := choose(len(m.Bytes) - n + 1)
			if i > 0 && choose(5) == 0 {
				n = 0
			}
			mirrors[i] = m
			pieces[i] = mem.Piece{
				LKey: m.Region.LKey(), Addr: m.Region.Addr() + uint64(off), Length: uint64(n),
			}
		}
		return List(pieces, mirrors)
	}
	dims := 1 + choose(3)
	repeat := make([]uint64, dims)
	for d := range repeat {
		repeat[d] = uint64(1 + choose(6))
	}
	blocks := make([]mem.Block, count)
	for i := range blocks {
		mirrors[i] = pick()
		blocks[i] = drawBlock(choose, mirrors[i], repeat, writable)
	}
	return Interleaved(repeat, blocks, mirrors)
}

// drawBlock makes a block that fits its key, cutting repeat down where it must.
func drawBlock(choose func(n int) int, m *Mirror, repeat []uint64, writable bool) mem.Block {
	size := len(m.Bytes)
	b := mem.Block{
		LKey: m.Region.LKey(), Bytes: uint64(1 + choose(min(size, 64))),
		Strides: make([]uint64, len(repeat)),
	}
	order := make([]int, len(repeat))
	for i := range order {
		j := choose(i + 1)
		order[i], order[j] = order[j], i
	}
	extent := int(b.Bytes)
	for _, d := range order {
		more := int(repeat[d]) - 1
		least, most := 0, 0
		if writable {
			least = extent
		}
		if more > 0 {
			most = (size - extent) / more
		}
		if most < least {
			// Only fewer repetitions fit: what blocks before this one have then still fits.
			repeat[d] = 1
			continue
		}
		stride := least + choose(min(most-least, 32)+1)
		b.Strides[d] = uint64(stride)
		extent += stride * more
	}
	b.Addr = m.Region.Addr() + uint64(choose(size-extent+1))
	return b
}
