package mem_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/mem"
	"xroce/roce/roctest"
)

const layoutRights = mem.LocalWrite | mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic

// A heap is regions of every kind of memory, layouts over them and layouts over those, beside
// the mirrors.
type heap struct {
	keys    *mem.Keys
	domain  *mem.Domain
	memory  [][]byte
	pagers  []*absentPager
	mirrors []*roctest.Mirror
}

// An absentPager is memory from 1<<20 on that may be absent, all of it, until it is asked for.
type absentPager struct {
	presentPager
	absent bool
}

func (p *absentPager) Present(addr, n uint64, write bool) mem.Fault {
	if p.absent {
		p.absent = false
		return mem.FaultPage
	}
	return p.presentPager.Present(addr, n, write)
}

func (p *absentPager) Load(addr uint64, dst []byte) mem.Fault {
	if p.absent {
		return mem.FaultUnmapped // nobody asked
	}
	return p.presentPager.Load(addr, dst)
}

func (p *absentPager) Store(addr uint64, src []byte) mem.Fault {
	if p.absent {
		return mem.FaultUnmapped
	}
	return p.presentPager.Store(addr, src)
}

func newHeap(choose func(n int) int) *heap {
	h := &heap{keys: mem.NewKeys(rand.NewPCG(1, 2)), domain: new(mem.Domain)}
	for i := range 1 + choose(6) { // more than are looked at in any case
		b := make([]byte, 1+choose(700))
		for j := range b {
			b[j] = byte(i + j*7)
		}
		h.memory = append(h.memory, b)
		m, access := mem.Memory{Bytes: b, Addr: uint64(choose(1<<30)) << 3}, layoutRights
		switch choose(4) {
		case 0:
			p := &absentPager{presentPager: b}
			h.pagers = append(h.pagers, p)
			m.Bytes, m.Pager, m.Start, m.Length = nil, p, 1<<20, uint64(len(b))
			access |= mem.OnDemand
		case 1:
			m.Guard = plainGuard{}
		}
		r, err := h.keys.RegisterMemory(h.domain, m, access)
		if err != nil {
			panic(err)
		}
		h.mirrors = append(h.mirrors, &roctest.Mirror{Region: r, Bytes: pointers(b)})
	}
	return h
}

// lay puts a layout into a key of its own.
func (h *heap) lay(l *mem.Layout, m *roctest.Mirror, access mem.Access) error {
	r, err := h.keys.RegisterIndirect(h.domain, l.Entries())
	if err != nil {
		return err
	}
	err = h.keys.ReregisterLayout(r, mem.ChangeTranslation|mem.ChangeAccess, l, nil, access)
	if err != nil {
		return err
	}
	m.Region = r
	h.mirrors = append(h.mirrors, m)
	return nil
}

// compare loads and stores part of a mirror through its key.
func (h *heap) compare(
	fatalf func(string, ...any), choose func(n int) int, m *roctest.Mirror, writable bool,
) {
	off := choose(len(m.Bytes) + 1)
	n := choose(len(m.Bytes) - off + 1)
	addr := m.Region.Addr() + uint64(off)
	got := make([]byte, n)
	h.evict(choose)
	f := h.present(fatalf, func() mem.Fault {
		return h.keys.Load(h.domain.Local(), m.Region.LKey(), addr, got, 0)
	})
	if f != mem.OK {
		fatalf("load of %d at %d: %s", n, off, f)
	}
	if want := m.Load(off, n); !bytes.Equal(got, want) {
		fatalf("loaded %x, want %x", got, want)
	}
	right := mem.Access(0)
	if writable {
		right = mem.LocalWrite
	}
	h.evict(choose)
	for at := 0; at < n; {
		var looked int
		f := h.present(fatalf, func() (f mem.Fault) {
			looked, f = h.keys.Look(h.domain.Local(), m.Region.LKey(), addr+uint64(at), n-at,
				right)
			return f
		})
		if at += looked; f != mem.OK || looked == 0 || at > n {
			fatalf("look at %d at %d: saw %d: %s", n, off, at, f)
		}
	}
	for i := range got {
		got[i] = byte(choose(256))
	}
	before := h.snapshot()
	h.evict(choose)
	f = h.present(fatalf, func() mem.Fault {
		return h.keys.Store(h.domain.Local(), m.Region.RKey(), addr, got, mem.RemoteWrite)
	})
	if !writable {
		if f != mem.FaultRights || !bytes.Equal(before, h.snapshot()) {
			fatalf("a store to what nobody may write: %s", f)
		}
		return
	}
	after := h.snapshot()
	h.restore(before)
	m.Store(off, got)
	if f != mem.OK || !bytes.Equal(after, h.snapshot()) {
		fatalf("a store of %d at %d: %s, memory is\n%x, want\n%x", n, off, f, after, h.snapshot())
	}
}

// evict takes pages away.
func (h *heap) evict(choose func(n int) int) {
	for _, p := range h.pagers {
		p.absent = choose(2) == 0
	}
}

// present repeats an access until the pages that it asks for are there. Before that it changes
// nothing.
func (h *heap) present(fatalf func(string, ...any), access func() mem.Fault) (f mem.Fault) {
	before := h.snapshot()
	for range len(h.pagers) + 1 { // one is there after each
		if f = access(); f != mem.FaultPage {
			return f
		}
		if !bytes.Equal(before, h.snapshot()) {
			fatalf("part of an access to absent pages was done")
		}
	}
	fatalf("an access asks for pages again and again")
	return f
}

func (h *heap) snapshot() []byte { return bytes.Join(h.memory, nil) }

func (h *heap) restore(all []byte) {
	for _, b := range h.memory {
		all = all[copy(b, all):]
	}
}

// build stacks random layouts as deep as they may be.
func (h *heap) build(fatalf func(string, ...any), choose func(n int) int) {
	regions := len(h.mirrors)
	for range 2 + choose(14) {
		writable := choose(3) > 0
		from := h.mirrors[:regions]
		if !writable || choose(4) > 0 {
			from = h.mirrors
		}
		l, m := roctest.Draw(choose, from, writable)
		if l.Len() != uint64(len(m.Bytes)) {
			fatalf("length %d, want %d", l.Len(), len(m.Bytes))
		}
		access := mem.RemoteRead
		if writable {
			access = layoutRights
		}
		readOnly := false
		for _, s := range h.mirrors[regions:] {
			// Whether it is one of the sources the mirror does not tell; a refusal
			// is right or wrong by what it names, which tests of rows look at.
			readOnly = readOnly || s.Region.Access()&mem.LocalWrite == 0
		}
		err := h.lay(l, m, access)
		if err != nil && (m.Depth <= mem.MaxDepth && (!writable || !readOnly)) {
			fatalf("%d deep: %v", m.Depth, err)
		}
		if err == nil {
			if m.Depth > mem.MaxDepth {
				fatalf("a layout %d deep was taken", m.Depth)
			}
			for range 3 {
				h.compare(fatalf, choose, m, writable)
			}
		}
	}
}

// TestLayoutRandom: what a key stands for is what its layout says, byte by
// byte, loaded and stored, however layouts are stacked.
func TestLayoutRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		newHeap(choose).build(t.Fatalf, choose)
	})
}

// FuzzLayout is TestLayoutRandom, guided by coverage.
func FuzzLayout(f *testing.F) {
	f.Add([]byte{0, 10, 1, 0, 3, 1, 2, 1, 1, 2, 1, 0, 0, 7, 9})
	f.Add(bytes.Repeat([]byte{5, 250, 3, 7, 1}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		choose := func(n int) int {
			if len(b) == 0 {
				return 0
			}
			v := int(b[0])
			if b = b[1:]; n > 256 && len(b) > 0 {
				v, b = v<<8|int(b[0]), b[1:]
			}
			return v % n
		}
		newHeap(choose).build(t.Fatalf, choose)
	})
}
