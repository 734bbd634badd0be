package mem

import (
	"fmt"
	"testing"
)

// BenchmarkLoad fills a packet of 1 KiB from memory that is one piece, or blocks with
// gaps in a pattern or in a list of 4,096.
func BenchmarkLoad(b *testing.B) {
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 1<<17), LocalWrite)
	if err != nil {
		b.Fatal(err)
	}
	keys := map[string]*Region{"plain": r}
	names := []string{"plain"}
	add := func(name string, l *Layout, err error) {
		if err != nil {
			b.Fatal(err)
		}
		key, err := k.RegisterIndirect(d, MaxEntries)
		if err != nil {
			b.Fatal(err)
		}
		if err := k.ReregisterLayout(key, ChangeTranslation, l, nil, 0); err != nil {
			b.Fatal(err)
		}
		keys[name], names = key, append(names, name)
	}
	for _, n := range []uint64{8, 24, 64, 512, 4096} {
		count := r.Len() / 2 / n
		l, err := NewInterleaved([]uint64{count},
			[]Block{{Addr: r.Addr(), Bytes: n, Strides: []uint64{2 * n}, LKey: r.LKey()}})
		add(fmt.Sprintf("pattern/%d", n), l, err)
		pieces := make([]Piece, 0, count)
		for i := range count {
			pieces = append(pieces, Piece{Addr: r.Addr() + i*2*n, Length: n, LKey: r.LKey()})
		}
		l, err = NewList(pieces)
		add(fmt.Sprintf("list/%d", n), l, err)
	}
	packet := make([]byte, 1<<10)
	for _, name := range names {
		key := keys[name]
		b.Run(name, func(b *testing.B) {
			off := uint64(0)
			for b.Loop() {
				if f := k.Load(d.Local(), key.LKey(), key.Addr()+off, packet, 0); f != OK {
					b.Fatal(f)
				}
				off = (off + 1<<10) % (1 << 15)
			}
		})
	}
}
