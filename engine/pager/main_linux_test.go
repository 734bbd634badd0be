package pager_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine/internal/pagertest"
	"xroce/engine/pager"
	"xroce/roce/mem"
	"xroce/xsk/xsktest/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var page = os.Getpagesize()

// newPager returns a pager that the test closes.
func newPager(t *testing.T) *pager.Pager {
	t.Helper()
	p := new(pager.Pager)
	t.Cleanup(p.Close)
	return p
}

// mapped returns memory of the kernel's that nobody touched, of so many pages.
func mapped(t *testing.T, pages, prot int) []byte {
	t.Helper()
	return pagertest.Map(t, pages*page, prot, nil)
}

// mapFile maps a file.
func mapFile(t *testing.T, f *os.File, pages, prot int) []byte {
	t.Helper()
	return pagertest.Map(t, pages*page, prot, f)
}

// newFile returns an empty file.
func newFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// regionOf makes a region of some memory.
func regionOf(t *testing.T, p *pager.Pager, b []byte) (*pager.Region, uint64) {
	t.Helper()
	addr := pager.AddressOf(b)
	r, err := p.NewRegion(pager.RegionOptions{
		Range: pager.Range{Addr: addr, Length: uint64(len(b))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, addr
}

// settle makes an access until it is no longer for want of a page that it fails.
func settle(access func() mem.Fault) (f mem.Fault, waited bool) {
	for f = access(); f == mem.FaultPage; f = access() {
		waited = true
		runtime.Gosched()
	}
	return f, waited
}

// expect settles an access and wants it to end, and to wait or not. When it returns
// nothing is under way: a page may be seen before the worker is through with it, and
// asked for once more just when it came; the worker must not meet what the test does next.
func expect(
	t *testing.T, p *pager.Pager, what string, access func() mem.Fault, want mem.Fault, wait bool,
) {
	t.Helper()
	if f, waited := settle(access); f != want || waited != wait {
		t.Errorf("%s: %s, waited %t; want %s, %t", what, f, waited, want, wait)
	}
	p.Idle()
}

// expectStats compares what was counted.
func expectStats(t *testing.T, got, want pager.Stats) {
	t.Helper()
	if waited := got.PageFaultWait; (waited > 0) != (got.PageFaultsHandled > 0) {
		t.Errorf("%d faults took %v", got.PageFaultsHandled, waited)
	}
	got.PageFaultWait, want.PageFaultWait = 0, 0
	if got != want {
		t.Errorf("statistics are\n%+v, want\n%+v", got, want)
	}
}

// must is for what cannot fail.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("not expected: %w", err))
	}
}
