package mem_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"xroce/roce/mem"
	"xroce/roce/roctest"
)

// edgeRights are those of every key of the test of edges.
const edgeRights = mem.LocalWrite | mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic |
	mem.FlushGlobal

// An edgeKey is a key with the mirror of what it stands for.
type edgeKey struct {
	name string
	key  uint32
	base uint64
	// persistent says that it allows FLUSH_PERSISTENT.
	persistent bool
	roctest.Mirror
}

// edges are keys of every kind over a few short regions.
type edges struct {
	*testing.T
	keys   *mem.Keys
	by     mem.Accessor
	memory [][]byte
	list   []edgeKey
}

func newEdges(t *testing.T) *edges {
	return &edges{
		T: t, keys: mem.NewKeys(rand.NewPCG(3, 4)),
		by: mem.Accessor{Domain: new(mem.Domain), Party: new(mem.Party)},
	}
}

// heap returns n bytes on a word, which the test looks after.
func (e *edges) heap(n int) []byte {
	words := make([]uint64, n/8+1)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n:n]
	for i := range b {
		b[i] = byte(len(e.memory)<<6 + i)
	}
	e.memory = append(e.memory, b)
	return b
}

// mirror adds a region.
func (e *edges) mirror(name string, r *mem.Region, bytes []*byte) *roctest.Mirror {
	m := &roctest.Mirror{Region: r, Bytes: bytes}
	e.list = append(e.list, edgeKey{
		name, r.LKey(), r.Addr(), r.Access()&mem.FlushPersistent != 0, *m,
	})
	return m
}

func pointers(b []byte) (p []*byte) {
	for i := range b {
		p = append(p, &b[i])
	}
	return p
}

func (e *edges) region(name string, n int, m mem.Memory, access mem.Access) *roctest.Mirror {
	e.Helper()
	b := e.heap(n)
	if m.Pager != nil {
		m.Pager, m.Start, m.Length = presentPager(b), 1<<20, uint64(n)
	} else {
		m.Bytes = b
	}
	r, err := e.keys.RegisterMemory(e.by.Domain, m, access)
	if err != nil {
		e.Fatal(err)
	}
	return e.mirror(name, r, pointers(b))
}

// lay adds an indirect key with a layout.
func (e *edges) lay(name string, l *mem.Layout, m *roctest.Mirror) *roctest.Mirror {
	e.Helper()
	r, err := e.keys.RegisterIndirect(e.by.Domain, l.Entries())
	if err != nil {
		e.Fatal(err)
	}
	access := edgeRights | mem.MWBind
	err = e.keys.ReregisterLayout(r, mem.ChangeTranslation|mem.ChangeAccess, l, nil, access)
	if err != nil {
		e.Fatal(name, err)
	}
	return e.mirror(name, r, m.Bytes)
}

// pieces lays [off, n) of mirrors end to end.
func (e *edges) pieces(name string, from []*roctest.Mirror, parts ...[2]uint64) *roctest.Mirror {
	e.Helper()
	var list []mem.Piece
	for i, p := range parts {
		r := from[i].Region
		list = append(list, mem.Piece{Addr: r.Addr() + p[0], Length: p[1], LKey: r.LKey()})
	}
	l, m := roctest.List(list, from)
	return e.lay(name, l, m)
}

// window binds a window to n bytes of a mirror.
func (e *edges) window(t mem.WindowType, m *roctest.Mirror, off, n uint64, access mem.Access) {
	e.Helper()
	w, err := e.keys.AllocWindow(e.by.Domain, t)
	if err != nil {
		e.Fatal(err)
	}
	if f := e.keys.Bind(e.by, mem.Bind{
		Window: w.RKey(), NewKey: mem.NextKey(w.RKey()), LKey: m.Region.LKey(),
		Addr: m.Region.Addr() + off, Length: n, Access: access,
	}); f != mem.OK {
		e.Fatalf("bind of %d bytes at %d: %s", n, off, f)
	}
	e.list = append(e.list, edgeKey{
		fmt.Sprintf("window %d of [%d, %d)", t, off, off+n), w.RKey(), w.Addr(),
		access&mem.FlushPersistent != 0,
		roctest.Mirror{Bytes: m.Bytes[off : off+n]},
	})
}

// presentPager is memory from 1<<20 on whose pages are all there.
type presentPager []byte

func (p presentPager) Present(_, _ uint64, _ bool) mem.Fault { return mem.OK }

func (p presentPager) Load(addr uint64, dst []byte) mem.Fault {
	copy(dst, p[addr-1<<20:])
	return mem.OK
}

func (p presentPager) Store(addr uint64, src []byte) mem.Fault {
	copy(p[addr-1<<20:], src)
	return mem.OK
}

func (p presentPager) Word(addr uint64, op mem.WordOp, x, y uint64) (uint64, mem.Fault) {
	return op.Do((*uint64)(unsafe.Pointer(&p[addr-1<<20])), x, y), mem.OK
}

// plainGuard accesses memory that nobody takes away.
type plainGuard struct{}

func (plainGuard) Load(dst, src []byte) mem.Fault  { copy(dst, src); return mem.OK }
func (plainGuard) Store(dst, src []byte) mem.Fault { copy(dst, src); return mem.OK }

func (plainGuard) Word(w *uint64, op mem.WordOp, x, y uint64) (uint64, mem.Fault) {
	return op.Do(w, x, y), mem.OK
}

// everyKind makes keys of every kind, with pieces of no bytes and ends of every sort.
func (e *edges) everyKind() {
	const access = edgeRights | mem.MWBind
	synced := func(off, n int) error {
		if off < 0 || n <= 0 || off+n > 17 {
			e.Errorf("sync of %d bytes at %d", n, off)
		}
		return nil
	}
	plain := e.region("region", 17, mem.Memory{Addr: 0x1000}, access)
	top := e.region("region at the top", 16, mem.Memory{Addr: ^uint64(0) - 16}, access)
	e.region("zero based", 9, mem.Memory{}, edgeRights|mem.ZeroBased)
	e.region("no bytes", 0, mem.Memory{Addr: 0x2000}, access)
	e.region("persistent", 17, mem.Memory{Addr: 0x3000, Sync: synced},
		access|mem.FlushPersistent)
	guarded := e.region("guarded", 18, mem.Memory{Addr: 0x5000, Guard: plainGuard{}}, access)
	paged := e.region("paged", 20, mem.Memory{Addr: 0x4000, Pager: presentPager{}},
		access|mem.OnDemand)

	one := e.pieces("one piece", []*roctest.Mirror{plain}, [2]uint64{1, 16})
	two := e.pieces("two pieces", []*roctest.Mirror{plain, top}, [2]uint64{0, 8}, [2]uint64{3, 9})
	e.pieces("pieces with none between", []*roctest.Mirror{plain, top, plain, paged},
		[2]uint64{17, 0}, [2]uint64{0, 3}, [2]uint64{5, 0}, [2]uint64{2, 11})
	many := []*roctest.Mirror{plain, top, paged, one, two, guarded}
	lots := e.pieces("many keys", many, [2]uint64{0, 2}, [2]uint64{1, 2}, [2]uint64{2, 9},
		[2]uint64{3, 2}, [2]uint64{4, 3}, [2]uint64{9, 1})
	l, m := roctest.Interleaved([]uint64{2}, []mem.Block{{
		LKey: plain.Region.LKey(), Addr: plain.Region.Addr(), Bytes: 8, Strides: []uint64{8},
	}}, []*roctest.Mirror{plain})
	column := e.lay("column to be a piece", l, m)
	e.pieces("column of plain memory behind paged", []*roctest.Mirror{paged, column, guarded},
		[2]uint64{3, 8}, [2]uint64{0, 16}, [2]uint64{1, 2})
	below := e.pieces("of layouts", []*roctest.Mirror{two, lots}, [2]uint64{2, 15},
		[2]uint64{1, 18})

	for _, from := range []*roctest.Mirror{plain, top, guarded, paged, two, lots, below} {
		at := func(off, n uint64, strides ...uint64) mem.Block {
			r := from.Region
			return mem.Block{Addr: r.Addr() + off, Bytes: n, Strides: strides, LKey: r.LKey()}
		}
		for _, p := range []struct {
			name   string
			repeat []uint64
			blocks []mem.Block
		}{
			{"column", []uint64{4}, []mem.Block{at(1, 2, 4)}},
			{"column of words", []uint64{2}, []mem.Block{at(0, 8, 8)}},
			{"column of odd ones", []uint64{3}, []mem.Block{at(0, 3, 5)}},
			{"not repeated", []uint64{1}, []mem.Block{at(2, 12, 99)}},
			{"two blocks", []uint64{2}, []mem.Block{at(0, 3, 8), at(3, 1, 8)}},
			{"blocks with none between", []uint64{3}, []mem.Block{
				at(0, 2, 4), at(1, 0, 1), at(2, 1, 4),
			}},
			{"dimensions", []uint64{2, 1, 3}, []mem.Block{at(0, 1, 2, 0, 5)}},
			{"dimensions and blocks", []uint64{2, 2}, []mem.Block{at(0, 1, 2, 7), at(1, 1, 2, 7)}},
		} {
			keys := make([]*roctest.Mirror, len(p.blocks))
			for i := range keys {
				keys[i] = from
			}
			l, m := roctest.Interleaved(p.repeat, p.blocks, keys)
			e.lay(p.name, l, m)
		}
	}
	for i := range e.list {
		m, n := e.list[i].Mirror, uint64(len(e.list[i].Bytes))
		if m.Region == nil || m.Region.Access()&mem.MWBind == 0 || n == 0 {
			continue
		}
		access := m.Region.Access() &^ (mem.LocalWrite | mem.MWBind | mem.OnDemand)
		e.window(mem.WindowType1, &m, 0, n, access)
		e.window(mem.WindowType2, &m, n-1, 1, access|mem.ZeroBased)
	}
}

// flush makes a FLUSH, and what is left to do of it.
func (e *edges) flush(k *edgeKey, addr uint64, n int, whole, persistent bool) mem.Fault {
	job, f := e.keys.Flush(e.by, k.key, addr, n, whole, persistent)
	if !job.None() {
		if err := job.Run(); err != nil {
			e.Errorf("%s: flush of %d bytes at %#x: %v", k.name, n, addr, err)
		}
	}
	return f
}

// access makes every call about n bytes at addr, off bytes into a key.
func (e *edges) access(k *edgeKey, off int, n int) {
	addr, want := k.base+uint64(off), mem.OK
	if off < 0 || off+n > len(k.Bytes) {
		want = mem.FaultOutOfRange
	}
	buf := bytes.Repeat([]byte{0xee}, n)
	before := bytes.Join(e.memory, nil)
	_, steady := e.keys.Steady(e.by, k.key, addr, n, mem.RemoteWrite)
	for name, f := range map[string]mem.Fault{
		"check":  e.keys.Check(e.by, k.key, addr, n, mem.RemoteRead),
		"ready":  e.keys.Ready(e.by, k.key, addr, n, mem.RemoteWrite),
		"steady": steady,
		"flush":  e.flush(k, addr, n, false, false),
		"whole":  e.flush(k, addr, n, true, false),
		"load":   e.keys.Load(e.by, k.key, addr, buf, mem.RemoteRead),
	} {
		if f != want && (name != "whole" || f != mem.OK) {
			e.Errorf("%s: %s of %d bytes at %d: %s, want %s", k.name, name, n, off, f, want)
		}
	}
	if k.persistent {
		if f := e.flush(k, addr, n, false, true); f != want {
			e.Errorf("%s: flush of %d bytes at %d: %s, want %s", k.name, n, off, f, want)
		}
	}
	model := bytes.Repeat([]byte{0xee}, n)
	if want == mem.OK {
		model = k.Load(off, n)
	}
	if !bytes.Equal(buf, model) {
		e.Errorf("%s: loaded %x of %d bytes at %d, want %x", k.name, buf, n, off, model)
	}
	for i := range buf {
		buf[i] = ^buf[i]
	}
	f := e.keys.Store(e.by, k.key, addr, buf, mem.RemoteWrite)
	after := bytes.Join(e.memory, nil)
	e.restore(before)
	if want == mem.OK {
		k.Store(off, buf)
	}
	if f != want || !bytes.Equal(after, bytes.Join(e.memory, nil)) {
		e.Errorf("%s: store of %d bytes at %d: %s, want %s", k.name, n, off, f, want)
	}
	e.restore(before)
}

func (e *edges) restore(all []byte) {
	for _, b := range e.memory {
		all = all[copy(b, all):]
	}
}

// word makes atomic accesses at addr: they may be refused as misaligned, but what is done
// is done to the eight bytes of the mirror.
func (e *edges) word(k *edgeKey, off int) {
	addr, before := k.base+uint64(off), bytes.Join(e.memory, nil)
	outside := off < 0 || off > len(k.Bytes)-8
	for name, f := range map[string]mem.Fault{
		"fetch and add": second(e.keys.FetchAdd(e.by, k.key, addr, 0)),
		"swap":          second(e.keys.CompareSwap(e.by, k.key, addr, 1, 1)),
	} {
		if outside != (f == mem.FaultOutOfRange) || !outside && f != mem.OK &&
			f != mem.FaultMisaligned {
			e.Errorf("%s: %s at %d: %s", k.name, name, off, f)
		}
	}
	f := e.keys.StoreWord(e.by, k.key, addr, 0xa5a5a5a5a5a5a5a5)
	after := bytes.Join(e.memory, nil)
	e.restore(before)
	if f == mem.OK {
		k.Store(off, bytes.Repeat([]byte{0xa5}, 8))
	}
	if outside != (f == mem.FaultOutOfRange) || !bytes.Equal(after, bytes.Join(e.memory, nil)) {
		e.Errorf("%s: word at %d: %s", k.name, off, f)
	}
	e.restore(before)
}

func second(_ uint64, f mem.Fault) mem.Fault { return f }

// TestEdges makes every access at every place of keys of every kind, from before the first
// byte to behind the last, and of every length from none on.
func TestEdges(t *testing.T) {
	e := newEdges(t)
	e.everyKind()
	for i := range e.list {
		k := &e.list[i]
		for off := -1; off <= len(k.Bytes)+1; off++ {
			for n := range len(k.Bytes) - max(off, 0) + 3 {
				e.access(k, off, n)
			}
			e.word(k, off)
		}
	}
}

// TestBindEdges binds windows at every place of keys of every kind, of every length from
// none on, and looks through them at both ends.
func TestBindEdges(t *testing.T) {
	e := newEdges(t)
	e.everyKind()
	for _, k := range e.list {
		if k.Region == nil || k.Region.Access()&mem.MWBind == 0 {
			continue
		}
		for off := -1; off <= len(k.Bytes)+1; off++ {
			for n := range len(k.Bytes) - max(off, 0) + 3 {
				for _, typ := range []mem.WindowType{mem.WindowType1, mem.WindowType2} {
					e.bind(&k, typ, off, n)
				}
			}
		}
	}
}

// bind binds a window to n bytes, off bytes into a key, and gives it back.
func (e *edges) bind(k *edgeKey, typ mem.WindowType, off, n int) {
	w, err := e.keys.AllocWindow(e.by.Domain, typ)
	if err != nil {
		e.Fatal(err)
	}
	want := mem.OK
	// A window of type 1 that is bound to no bytes is unbound, wherever that is.
	unbound := n == 0 && typ == mem.WindowType1
	if !unbound && (n == 0 || off < 0 || off+n > len(k.Bytes)) {
		want = mem.FaultOutOfRange
	}
	if f := e.keys.Bind(e.by, mem.Bind{
		Window: w.RKey(), NewKey: w.RKey(), LKey: k.key, Addr: k.base + uint64(off),
		Length: uint64(n),
		Access: k.Region.Access() &^ (mem.LocalWrite | mem.MWBind | mem.OnDemand),
	}); f != want {
		e.Errorf("%s: bind of %d bytes at %d: %s, want %s", k.name, n, off, f, want)
	}
	if want == mem.OK && !unbound {
		part := edgeKey{
			k.name, w.RKey(), w.Addr(), k.persistent,
			roctest.Mirror{Bytes: k.Bytes[off : off+n]},
		}
		e.access(&part, 0, n)
		for _, at := range []int{-1, 0, 1, n - 1, n, n + 1} {
			e.access(&part, at, 0)
			e.access(&part, at, 1)
		}
	}
	if err := e.keys.DeallocWindow(w); err != nil {
		e.Error(err)
	}
}

// TestEdgesFarAway makes accesses whose address or length is where 31, 32, 63 and 64 bits
// end, through keys of every kind: what is not inside is refused, and nothing is touched.
func TestEdgesFarAway(t *testing.T) {
	e := newEdges(t)
	e.everyKind()
	corners := []uint64{1 << 31, 1 << 32, 1 << 47, 1 << 62, 1 << 63, 0}
	before := bytes.Join(e.memory, nil)
	for i := range e.list {
		k := &e.list[i]
		length := uint64(len(k.Bytes))
		for _, corner := range corners {
			for delta := range uint64(5) {
				far, n := corner+delta-2, int(corner+delta-2)
				for _, addr := range []uint64{k.base, k.base + length, k.base + far} {
					inside := addr-k.base <= length && uint64(n) <= length-(addr-k.base)
					_, steady := e.keys.Steady(e.by, k.key, addr, n, mem.RemoteWrite)
					for name, f := range map[string]mem.Fault{
						"check":  e.keys.Check(e.by, k.key, addr, n, mem.RemoteRead),
						"ready":  e.keys.Ready(e.by, k.key, addr, n, mem.RemoteWrite),
						"steady": steady,
						"flush":  e.flush(k, addr, n, false, false),
					} {
						if (f == mem.OK) != inside || !inside && f != mem.FaultOutOfRange {
							t.Errorf("%s: %s of %d bytes at %#x: %s", k.name, name, n, addr, f)
						}
					}
				}
				if far > length {
					e.word(k, int(far))
				}
			}
		}
	}
	if !bytes.Equal(before, bytes.Join(e.memory, nil)) {
		t.Error("memory was written")
	}
}
