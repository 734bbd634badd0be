package mem

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Limits of layouts.
const (
	MaxEntries = 1 << 20 // pieces or blocks of one layout
	MaxDims    = 8       // dimensions of an interleaved one
	MaxDepth   = 8       // keys with a layout that an access goes through
)

// ErrLayout says that a layout cannot be, or not with the keys that it names. The
// text names the field.
var ErrLayout = errors.New("mem: not a layout")

// A Piece is Length bytes at Addr of the key LKey, which is that of a region or of
// another layout. No alignment is asked for, and a piece of no bytes is nothing.
type Piece struct {
	Addr   uint64
	Length uint64
	LKey   uint32
}

// A Block is a pattern in the key LKey: elements of Bytes bytes, the first at Addr,
// and from there on Strides[d] bytes apart in dimension d. A stride counts from the
// beginning of an element to that of the next: what verbs calls bytes_count and
// bytes_skip, added. In a dimension that is not repeated it means nothing.
type Block struct {
	Addr    uint64
	Bytes   uint64
	Strides []uint64
	LKey    uint32
}

// A Layout says which bytes a key stands for, in which order. It does not change,
// and is safe for concurrent use. Keys are looked at when it is given to one.
type Layout struct {
	length  uint64 // of all, in bytes
	period  uint64 // of one repetition; the length when there is one
	count   int    // entries as they were given
	repeat  []uint64
	entries []entry
}

// An entry is a piece or a block.
type entry struct {
	name        string // of the field, for errors
	at          int    // index in it
	key         uint32
	addr        uint64
	n           uint64 // bytes of one element
	extent      uint64 // from the first byte to behind the last
	strides     []uint64
	overlapping bool
}

// NewList makes a layout of pieces that are laid end to end. They may overlap, and
// lie in any number of keys; what is written twice has the value that is written
// last. The error is ErrLayout for no pieces, more than MaxEntries, no bytes, or
// 2^64 bytes and more.
func NewList(pieces []Piece) (*Layout, error) {
	l := &Layout{count: len(pieces)}
	if err := l.checkCount("pieces"); err != nil {
		return nil, err
	}
	l.entries = make([]entry, 0, len(pieces))
	for i, p := range pieces {
		sum, carry := bits.Add64(l.length, p.Length, 0)
		if carry != 0 {
			return nil, fmt.Errorf("%w: pieces[%d].length %d makes 2^64 bytes or more", ErrLayout,
				i, p.Length)
		}
		l.length = sum
		if p.Length > 0 {
			l.entries = append(l.entries, entry{
				name: "pieces", at: i, key: p.LKey, addr: p.Addr, n: p.Length, extent: p.Length,
			})
		}
	}
	l.period = l.length
	if l.length == 0 {
		return nil, fmt.Errorf("%w: pieces have no bytes", ErrLayout)
	}
	return l, nil
}

// NewInterleaved makes a layout of blocks that take turns. One repetition is an
// element of each block, in their order; there are as many as the product of
// repeat. Repetition r of a block with one dimension is Bytes bytes at
// Addr + r*Strides[0]; with more, dimension 0 runs fastest. What lies between
// elements is not accessed, and need not be inside the key behind the last one.
//
// The error is ErrLayout for no dimensions or more than MaxDims, no repetitions, no
// blocks or more than MaxEntries, no bytes, strides that are not one a dimension,
// 2^64 bytes and more, and an element that lies 2^64 bytes or more behind the first.
func NewInterleaved(repeat []uint64, blocks []Block) (*Layout, error) {
	l := &Layout{count: len(blocks)}
	if err := l.checkCount("blocks"); err != nil {
		return nil, err
	}
	if len(repeat) == 0 || len(repeat) > MaxDims {
		return nil, fmt.Errorf("%w: repeat has %d dimensions, not 1 to %d", ErrLayout, len(repeat),
			MaxDims)
	}
	for i := range blocks {
		sum, carry := bits.Add64(l.period, blocks[i].Bytes, 0)
		if carry != 0 {
			return nil, fmt.Errorf("%w: blocks[%d].bytes %d makes 2^64 bytes or more", ErrLayout,
				i, blocks[i].Bytes)
		}
		l.period = sum
	}
	l.length = l.period
	for d, r := range repeat {
		hi, lo := bits.Mul64(l.length, r)
		if r == 0 || hi != 0 {
			return nil, fmt.Errorf("%w: repeat[%d] is %d, which makes none or 2^64 bytes or more",
				ErrLayout, d, r)
		}
		l.length = lo
	}
	if l.length == 0 {
		return nil, fmt.Errorf("%w: blocks have no bytes", ErrLayout)
	}
	l.entries = make([]entry, 0, len(blocks))
	for i := range blocks {
		e, err := blocks[i].entry(i, repeat)
		if err != nil {
			return nil, err
		}
		if e.n > 0 {
			l.entries = append(l.entries, e)
		}
	}
	l.repeat = l.fold(repeat)
	return l, nil
}

func (l *Layout) checkCount(field string) error {
	if l.count == 0 || l.count > MaxEntries {
		return fmt.Errorf("%w: %d %s are not 1 to %d", ErrLayout, l.count, field, MaxEntries)
	}
	return nil
}

// entry returns the block with the strides of those dimensions that are repeated.
func (b *Block) entry(at int, repeat []uint64) (entry, error) {
	e := entry{name: "blocks", at: at, key: b.LKey, addr: b.Addr, n: b.Bytes, extent: b.Bytes}
	if len(b.Strides) != len(repeat) {
		return e, fmt.Errorf("%w: blocks[%d].strides are %d, repeat has %d dimensions", ErrLayout,
			at, len(b.Strides), len(repeat))
	}
	e.strides = make([]uint64, 0, len(repeat))
	for d, r := range repeat {
		if r == 1 {
			continue
		}
		hi, reach := bits.Mul64(b.Strides[d], r-1)
		extent, carry := bits.Add64(e.extent, reach, 0)
		if hi != 0 || carry != 0 {
			return e, fmt.Errorf("%w: blocks[%d].strides[%d] %d reaches beyond 2^64", ErrLayout,
				at, d, b.Strides[d])
		}
		e.extent = extent
		e.strides = append(e.strides, b.Strides[d])
	}
	return e, nil
}

// fold leaves out dimensions that are not repeated, and makes one of two where the
// outer one goes on where the inner one ends. It returns what is left.
func (l *Layout) fold(repeat []uint64) []uint64 {
	kept := slices.DeleteFunc(slices.Clone(repeat), func(r uint64) bool { return r == 1 })
	for i := range l.entries {
		l.entries[i].overlapping = l.entries[i].overlaps(kept)
	}
	for d := 0; d+1 < len(kept); {
		goesOn := func(e entry) bool { return e.strides[d]*kept[d] == e.strides[d+1] }
		if slices.ContainsFunc(l.entries, func(e entry) bool { return !goesOn(e) }) {
			d++
			continue
		}
		for i := range l.entries {
			e := &l.entries[i]
			e.strides = slices.Delete(e.strides, d+1, d+2)
		}
		kept[d] *= kept[d+1]
		kept = slices.Delete(kept, d+1, d+2)
	}
	if len(kept) == 0 {
		return nil // a list
	}
	return kept
}

// overlaps reports whether elements may overlap: whether, from the smallest stride to
// the largest, one is shorter than all that the smaller ones reach over.
func (e *entry) overlaps(repeat []uint64) bool {
	dims := make([]int, len(repeat))
	for d := range dims {
		dims[d] = d
	}
	slices.SortFunc(dims, func(a, b int) int { return cmp.Compare(e.strides[a], e.strides[b]) })
	reach := e.n
	for _, d := range dims {
		if e.strides[d] < reach {
			return true
		}
		reach += e.strides[d] * (repeat[d] - 1)
	}
	return false
}

// Len returns the length in bytes.
func (l *Layout) Len() uint64 { return l.length }

// Entries returns how many pieces or blocks the layout was made of.
func (l *Layout) Entries() int { return l.count }
