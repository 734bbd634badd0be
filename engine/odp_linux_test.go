package engine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/internal/pagertest"
	"xroce/engine/pager"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// odpPage is the size of a page.
var odpPage = os.Getpagesize()

// odpMap maps memory that nobody touched, or a file.
func odpMap(t *testing.T, pages int, f *os.File) []byte {
	t.Helper()
	return pagertest.Map(t, pages*odpPage, unix.PROT_READ|unix.PROT_WRITE, f)
}

// odpFile is a file with a hole of so many pages.
func odpFile(t *testing.T, pages int) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(pages * odpPage)); err != nil {
		t.Fatal(err)
	}
	return f
}

// odpPair is two connected seats, the second with paged memory in the place of its own.
func odpPair(t *testing.T, w *world, b []byte) (from, to *seat) {
	t.Helper()
	from, to = seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, from, to, engine.ConnectOptions{})
	mr, err := to.dev.RegODP(to.pd, b, rights)
	if err != nil {
		t.Fatal(err)
	}
	to.mr = mr
	return from, to
}

// odpStats are the statistics of a seat's region.
func odpStats(t *testing.T, s *seat) pager.Stats {
	t.Helper()
	stats, ok := s.mr.ODPStats()
	if !ok {
		t.Fatal("the region has no statistics")
	}
	return stats
}

// refused posts a request and wants its status, and both ends in ERR or not.
func (w *world) refused(a *seat, wr roce.SendWR, want roce.Status) {
	w.t.Helper()
	a.send(w.t, wr)
	if wc := w.take(a.cq, 1)[0]; wc.Status != want {
		w.t.Fatalf("%s: %s, want %s", wr.Opcode, wc.Status, want)
	}
}

// TestODPOperationsBringPagesIn: memory that nobody touched is registered, and every
// operation brings in what it needs: at the requester and at the responder.
func TestODPOperationsBringPagesIn(t *testing.T) {
	const pages = 16
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		for name, file := range map[string]bool{"anonymous": false, "file": true} {
			t.Run(name, func(t *testing.T) {
				for _, op := range []roce.Opcode{
					roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm, roce.OpRead,
				} {
					ends := [2][]byte{odpMap(t, pages, nil), odpMap(t, pages, nil)}
					if file {
						ends[0], ends[1] = odpMap(t, pages, odpFile(t, pages)),
							odpMap(t, pages, odpFile(t, pages))
					}
					a, b := odpPair(t, w, ends[1])
					var err error
					a.mr, err = a.dev.RegODP(a.pd, ends[0], rights)
					if err != nil {
						t.Fatal(err)
					}
					odpTransfer(t, w, a, b, op)
				}
			})
		}
	})
}

// odpTransfer moves all of the paged memory of a to that of b, or back.
func odpTransfer(t *testing.T, w *world, a, b *seat, op roce.Opcode) {
	t.Helper()
	n := len(a.mr.Bytes())
	from, to := a, b
	if op == roce.OpRead {
		from, to = b, a
	}
	from.mr.Bytes()[n/2] = 7 // one page is there already; of a file those around it, too
	if op != roce.OpWrite && op != roce.OpRead {
		b.recv(t, 1, 0, n)
	}
	a.send(t, writeTo(a, b, op, n))
	w.succeed(a.cq, 1)
	if !bytes.Equal(from.mr.Bytes(), to.mr.Bytes()) || to.mr.Bytes()[n/2] != 7 {
		t.Errorf("%s: data differs", op)
	}
	// Then all is counted: a page may be there a while before who brought it in has counted that.
	must(t, errors.Join(to.mr.Deregister(), from.mr.Deregister()))
	stats := odpStats(t, to)
	// Of a file the kernel may bring in more than it was asked for, and both workers may
	// find the same page absent.
	if stats.PageFaults == 0 || stats.PageFaults > 2*uint64(n/odpPage) ||
		stats.PageFaultsHandled == 0 || stats.PageInvalidations != 0 {
		t.Errorf("%s: statistics of what was written are %+v", op, stats)
	}
	total, latency := to.dev.ODPStats()
	faults := uint64(0)
	for _, n := range latency {
		faults += n
	}
	if total.PageFaults < stats.PageFaults || faults != total.PageFaultsHandled {
		t.Errorf("%s: totals %+v with %d in the histogram", op, total, faults)
	}
}

// TestODPAtomicsBringPagesIn: atomics and their like find their page.
func TestODPAtomicsBringPagesIn(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := odpPair(t, w, odpMap(t, 4, nil))
	for i, op := range []roce.Opcode{
		roce.OpFetchAdd, roce.OpCmpSwap, roce.OpAtomicWrite, roce.OpFlush,
	} {
		wr := writeTo(a, b, op, 8)
		wr.RemoteAddr += uint64(i * odpPage)
		wr.CompareAdd, wr.Swap = 0, 9
		if op == roce.OpFetchAdd {
			wr.CompareAdd = 9
		}
		a.mr.Bytes()[0] = 9
		if op == roce.OpFlush {
			wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, 8
		}
		a.send(t, wr)
		w.succeed(a.cq, 1)
		if got := b.mr.Bytes()[i*odpPage]; got != 9 && op != roce.OpFlush {
			t.Errorf("%s left %d, want 9", op, got)
		}
	}
	if n := counterOf(t, b.dev, "page_rnr"); n < 4 {
		t.Errorf("%d RNR NAKs for pages, want at least 4", n)
	}
}

// TestODPHolesAreRefused: an access to what is not there is refused, and nothing crashes:
// a hole in the address space, a range behind the end of a file, memory without the
// right.
func TestODPHolesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(t *testing.T) []byte
		// spoil makes the memory what it is, after the region was made.
		spoil func(t *testing.T, b []byte)
		// reads says that it may be read.
		reads bool
	}{
		"unmapped": {nil, func(t *testing.T, b []byte) { pagertest.Unmap(t, b) }, false},
		"no right": {nil, func(t *testing.T, b []byte) {
			must(t, unix.Mprotect(b, unix.PROT_NONE))
		}, false},
		"constant": {nil, func(t *testing.T, b []byte) {
			must(t, unix.Mprotect(b, unix.PROT_READ))
		}, true},
		"behind a file": {func(t *testing.T) []byte {
			return odpMap(t, 4, odpFile(t, 0))
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := simWorld(t, 2, sim.Faults{}, engine.Options{})
			for _, op := range []roce.Opcode{roce.OpWrite, roce.OpRead, roce.OpFetchAdd} {
				if tt.reads && op == roce.OpRead {
					continue
				}
				memory := odpMap(t, 4, nil)
				if tt.make != nil {
					memory = tt.make(t)
				}
				a, b := odpPair(t, w, memory)
				if tt.spoil != nil {
					tt.spoil(t, memory)
				}
				w.refused(a, writeTo(a, b, op, 8), roce.StatusRemAccessErr)
				if e := w.event(b.dev); e.Type != roce.EventQPAccessErr {
					t.Errorf("%s: event %s", op, e.Type)
				}
			}
			// As the requester's own memory.
			memory := odpMap(t, 4, nil)
			if tt.make != nil {
				memory = tt.make(t)
			}
			b, a := odpPair(t, w, memory)
			if tt.spoil != nil {
				tt.spoil(t, memory)
			}
			w.refused(a, writeTo(a, b, roce.OpRead, 8), roce.StatusLocProtErr)
		})
	}
}

// TestODPMappedAfterRegistration: addresses are registered where nothing is mapped, and
// are good when something is.
func TestODPMappedAfterRegistration(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	place := odpMap(t, 4, nil)
	start := pager.AddressOf(place)
	must(t, unix.Mprotect(place, unix.PROT_NONE)) // reserved
	a, b := odpPair(t, w, nil)
	var err error
	b.mr, err = b.dev.RegODPMemory(b.pd, engine.ODPMemory{
		Start: start, Length: uint64(len(place)), Addr: 0x1000,
	}, rights)
	must(t, err)
	must(t, unix.Mprotect(place, unix.PROT_READ|unix.PROT_WRITE))
	a.mr.Bytes()[5] = 55
	wr := writeTo(a, b, roce.OpWrite, 8)
	if wr.RemoteAddr != 0x1000 || b.mr.Bytes() != nil {
		t.Errorf("the region is at %#x and has bytes %v", wr.RemoteAddr, b.mr.Bytes())
	}
	a.send(t, wr)
	w.succeed(a.cq, 1)
	if place[5] != 55 {
		t.Errorf("memory holds %d, want 55", place[5])
	}
}

// TestImplicitODPKey: the implicit key names every address of the process, those too
// that come later; an allow-list limits it, and without one there is a warning.
func TestImplicitODPKey(t *testing.T) {
	var log bytes.Buffer
	w := simWorld(t, 2, sim.Faults{}, engine.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	all := engine.ODPMemory{Length: math.MaxUint64}
	a, b := odpPair(t, w, nil)
	var err error
	b.mr, err = b.dev.RegODPMemory(b.pd, all, rights)
	must(t, err)
	if !strings.Contains(log.String(), "whole address space") {
		t.Errorf("no warning: %q", log.String())
	}
	for range 2 {
		later := odpMap(t, 2, nil)
		wr := writeTo(a, b, roce.OpWrite, 8)
		wr.RemoteAddr = pager.AddressOf(later) + uint64(odpPage) - 4
		a.mr.Bytes()[7] = 77
		a.send(t, wr)
		w.succeed(a.cq, 1)
		if later[odpPage+3] != 77 {
			t.Errorf("memory holds %d, want 77", later[odpPage+3])
		}
	}
	log.Reset()
	allowed := odpMap(t, 3, nil)
	all.Allow = []pager.Range{{Addr: pager.AddressOf(allowed), Length: uint64(odpPage)}}
	b.mr, err = b.dev.RegODPMemory(b.pd, all, rights)
	must(t, err)
	if log.Len() != 0 {
		t.Errorf("a warning for a list: %q", log.String())
	}
	wr := writeTo(a, b, roce.OpWrite, 8)
	wr.RemoteAddr = pager.AddressOf(allowed)
	a.send(t, wr)
	w.succeed(a.cq, 1)
	wr.RemoteAddr += uint64(odpPage) - 7
	w.refused(a, wr, roce.StatusRemAccessErr)
	for _, bad := range []struct {
		m      engine.ODPMemory
		access mem.Access
	}{
		{engine.ODPMemory{Length: math.MaxUint64, Addr: 1}, rights},
		{engine.ODPMemory{Length: math.MaxUint64}, rights | mem.HugeTLB},
	} {
		_, err := b.dev.RegODPMemory(b.pd, bad.m, bad.access)
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%+v: %v", bad.m, err)
		}
	}
	_, err = b.dev.RegODP(b.pd, allowed, rights|mem.HugeTLB)
	if !errors.Is(err, pager.ErrNotHuge) {
		t.Errorf("ordinary memory as huge: %v", err)
	}
}

// TestODPDeregisterWaitsForFaults: Deregister waits for faults that are being handled; then
// the key is dead, and what was being brought in is not touched any more.
func TestODPDeregisterWaitsForFaults(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	for range 50 {
		memory := odpMap(t, 64, nil)
		a, b := odpPair(t, w, memory)
		wr := writeTo(a, b, roce.OpWrite, len(memory)/4)
		a.send(t, wr)
		before := counterOf(t, b.dev, "page_rnr")
		// It comes, and pages are asked for.
		asked := func() bool { return counterOf(t, b.dev, "page_rnr") > before }
		w.run(asked)
		must(t, b.mr.Deregister())
		must(t, b.mr.Deregister())
		pagertest.Unmap(t, memory)
		if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr {
			t.Fatalf("a WRITE with a dead key: %s", wc.Status)
		}
		a.qp.Close()
		b.qp.Close()
	}
}
