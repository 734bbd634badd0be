package pager_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/engine/pager"
	"xroce/roce/mem"
)

// guarded returns the guard of a pager.
func guarded(t *testing.T, p *pager.Pager) mem.Guard {
	t.Helper()
	g, err := p.Guard()
	must(t, err)
	return g
}

// wordAt is a word of memory.
func wordAt(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(unsafe.SliceData(b))) }

// TestGuard: memory is as it is with a plain access, what a file lost is a fault that is
// counted, and memory is good again when the file has it again.
func TestGuard(t *testing.T) {
	p := newPager(t)
	g := guarded(t, p)
	f := newFile(t)
	must(t, f.Truncate(int64(2*page)))
	b := mapFile(t, f, 2, readWrite)
	far := b[page:][:64]
	for round := range uint64(2) {
		if f := g.Store(far, bytes.Repeat([]byte{1}, 64)); f != mem.OK || far[63] != 1 {
			t.Fatalf("store: %s", f)
		}
		if old, f := g.Word(wordAt(far), mem.FetchAddOp, 1, 0); f != mem.OK ||
			old != 0x0101010101010101 {
			t.Fatalf("word: %#x, %s", old, f)
		}
		got := make([]byte, 64)
		if f := g.Load(got, far); f != mem.OK || got[63] != 1 {
			t.Fatalf("load: %s, %x", f, got)
		}
		must(t, f.Truncate(int64(page)))
		if f := g.Load(got, far); f != mem.FaultUnmapped {
			t.Errorf("load of what is gone: %s", f)
		}
		if f := g.Load(make([]byte, 8), b[page-4:][:8]); f != mem.FaultUnmapped {
			t.Errorf("load of what is gone in part: %s", f)
		}
		if f := g.Store(far, got); f != mem.FaultUnmapped {
			t.Errorf("store to what is gone: %s", f)
		}
		if _, f := g.Word(wordAt(far), mem.StoreOp, 1, 0); f != mem.FaultUnmapped {
			t.Errorf("word of what is gone: %s", f)
		}
		if n := p.Gone(); n < 3+4*round {
			t.Errorf("%d accesses are counted", n)
		}
		must(t, f.Truncate(int64(2*page)))
	}
}

// TestGuardOfConstantMemory: memory that may not be written says so.
func TestGuardOfConstantMemory(t *testing.T) {
	g := guarded(t, newPager(t))
	b := mapped(t, 1, unix.PROT_READ)
	if f := g.Store(b[:8], make([]byte, 8)); f != mem.FaultUnmapped {
		t.Errorf("store: %s", f)
	}
	if _, f := g.Word(wordAt(b), mem.StoreOp, 1, 0); f != mem.FaultUnmapped {
		t.Errorf("word: %s", f)
	}
	if f := g.Load(make([]byte, 8), b[:8]); f != mem.OK {
		t.Errorf("load: %s", f)
	}
}

// TestGuardLeavesOtherFaults: what is not a fault of the memory is not swallowed.
func TestGuardLeavesOtherFaults(t *testing.T) {
	g := guarded(t, newPager(t))
	none := mapped(t, 1, unix.PROT_NONE) // of the caller
	for name, access := range map[string]func(){
		"load":  func() { g.Load(none[:8], make([]byte, 8)) },
		"store": func() { g.Store(make([]byte, 8), none[:8]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s went well", name)
				}
			}()
			access()
		}()
	}
}

// TestGuardAgainstTruncation accesses a file that is cut off and grows all the time. Words
// are left out under the race detector: they are looked at before, but the file may be cut
// off between that look and the operation, which the detector does not survive.
func TestGuardAgainstTruncation(t *testing.T) {
	const pages = 8
	kinds := 3
	if pager.RaceDetector {
		kinds = 2
	}
	p := newPager(t)
	g := guarded(t, p)
	f := newFile(t)
	b := mapFile(t, f, pages, readWrite)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		rnd := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := f.Truncate(rnd.Int64N(int64(pages*page) + 1)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	rnd, buf := rand.New(rand.NewPCG(3, 4)), make([]byte, page)
	for fine := 0; fine < 100 || p.Gone() < 100; {
		n := 8 + rnd.IntN(len(buf)-8)
		at := rnd.IntN((len(b)-n)/8) * 8
		var fault mem.Fault
		switch rnd.IntN(kinds) {
		case 0:
			fault = g.Load(buf[:n], b[at:][:n])
		case 1:
			fault = g.Store(b[at:][:n], buf[:n])
		default:
			_, fault = g.Word(wordAt(b[at:]), mem.FetchAddOp, 1, 0)
		}
		switch fault {
		case mem.OK:
			fine++
		case mem.FaultUnmapped:
		default:
			t.Fatal(fault)
		}
	}
	close(stop)
	<-stopped
}

// TestGuardAllocatesNothing an access.
func TestGuardAllocatesNothing(t *testing.T) {
	g := guarded(t, newPager(t))
	b, buf := mapped(t, 1, readWrite), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		g.Load(buf, b[:64])
		g.Store(b[:64], buf)
		g.Word(wordAt(b), mem.FetchAddOp, 1, 0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkGuard is what a guard costs a copy of a packet.
func BenchmarkGuard(b *testing.B) {
	var p pager.Pager
	g, err := p.Guard()
	if err != nil {
		b.Fatal(err)
	}
	dst, src := make([]byte, 1024), make([]byte, 1024)
	for b.Loop() {
		g.Load(dst, src)
	}
}
