package engine_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// mark is what a test writes to memory that is to be unmapped. Its address alone tells nothing:
// whoever maps memory next, the Go run time included, may get it.
var mark = []byte("xroce: this memory is ours")

// marked reports whether memory with the mark is still mapped at an address.
func marked(t *testing.T, addr uint64) bool {
	t.Helper()
	b := make([]byte, len(mark))
	n, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
	if err != nil && err != unix.EFAULT {
		t.Fatal(err)
	}
	return n == len(b) && bytes.Equal(b, mark)
}

// TestAllocMR: memory of the device's own is page-aligned, zero, of use to both ends
// of a transfer, and gone with Deregister.
func TestAllocMR(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	for _, n := range []int{1, 4095, 4096, 70_000, 5 << 20} {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		from, err := a.dev.AllocMR(a.pd, n, mem.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		to, err := b.dev.AllocMR(b.pd, n, mem.LocalWrite|mem.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(to.Bytes()))))
		switch {
		case to.Addr() != addr || addr%uint64(os.Getpagesize()) != 0:
			t.Errorf("%d bytes: address %#x, memory at %#x", n, to.Addr(), addr)
		case len(to.Bytes()) != n || cap(to.Bytes()) != n,
			len(bytes.Trim(to.Bytes(), "\x00")) > 0:
			t.Errorf("%d bytes: %d, not all zero", n, len(to.Bytes()))
		case to.Huge() && n < 2<<20:
			t.Errorf("%d bytes of huge pages", n)
		}
		for i := range from.Bytes() {
			from.Bytes()[i] = byte(i * 7)
		}
		a.send(t, roce.SendWR{
			Opcode: roce.OpWrite, Flags: roce.SendSignaled, SGList: []roce.SGE{from.SGE(0, n)},
			RemoteAddr: to.Addr(), RKey: to.RKey(),
		})
		w.succeed(a.cq, 1)
		if !bytes.Equal(from.Bytes(), to.Bytes()) {
			t.Errorf("%d bytes: the copy differs", n)
		}
		// Not one byte beyond, though the pages go on.
		if n%os.Getpagesize() != 0 {
			a.send(t, roce.SendWR{
				Opcode: roce.OpWrite, Flags: roce.SendSignaled, SGList: []roce.SGE{from.SGE(0, 1)},
				RemoteAddr: to.Addr() + uint64(n), RKey: to.RKey(),
			})
			if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr {
				t.Errorf("%d bytes: the byte behind: %s", n, wc.Status)
			}
		}
		for range 2 { // it is idempotent
			if err := errors.Join(from.Deregister(), to.Deregister()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAllocMRIsUnmapped: Deregister unmaps the memory, also of a device that is
// closed, and so does an AllocMR that is refused.
func TestAllocMRIsUnmapped(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	dev := w.devs[0]
	pd := dev.AllocPD()
	const n = 64 << 20 // Go's own heap has nothing of that size here
	m, err := dev.AllocMR(pd, n, mem.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	last := m.Addr() + n - uint64(len(mark))
	copy(m.Bytes(), mark)
	copy(m.Bytes()[n-len(mark):], mark)
	if !marked(t, m.Addr()) || !marked(t, last) {
		t.Fatal("not mapped")
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	m.Bytes()[n/2] = 1 // still the application's
	if err := m.Deregister(); err != nil {
		t.Fatal(err)
	}
	if marked(t, m.Addr()) || marked(t, last) {
		t.Error("still mapped")
	}
}

// TestAllocMRReregistered: memory of the device's own stays until Deregister, whatever
// the region becomes meanwhile: a part of that memory, or other.
func TestAllocMRReregistered(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	page := os.Getpagesize()
	m, err := b.dev.AllocMR(b.pd, 2*page, rights)
	must(t, err)
	whole, addr := m.Bytes(), m.Addr()
	for i, memory := range [][]byte{whole[page:], make([]byte, page), whole[:page]} {
		must(t, m.Rereg(mem.ChangeTranslation, memory, nil, 0))
		copy(whole, mark)
		copy(whole[page:], mark)
		if !marked(t, addr) || !marked(t, addr+uint64(page)) {
			t.Fatalf("%d: unmapped", i)
		}
		a.mr.Bytes()[0] = byte(i + 1)
		a.send(t, through(a, roce.OpWrite, m.RKey(), m.Addr(), 1))
		w.succeed(a.cq, 1)
		if memory[0] != byte(i+1) {
			t.Errorf("%d: memory holds %d", i, memory[0])
		}
	}
	copy(whole, mark)
	must(t, m.Deregister())
	if marked(t, addr) {
		t.Error("still mapped")
	}
}

// TestAllocMRRefused: on-demand paging and what no region can be.
func TestAllocMRRefused(t *testing.T) {
	dev := simWorld(t, 2, sim.Faults{}, engine.Options{}).devs[0]
	pd := dev.AllocPD()
	for _, tt := range []struct {
		n      int
		access mem.Access
		want   error
	}{
		{4096, mem.OnDemand, mem.ErrAccess},
		{4096, mem.OnDemand | mem.HugeTLB | mem.LocalWrite, mem.ErrAccess},
		{4096, mem.HugeTLB, mem.ErrAccess},
		{4096, mem.RemoteWrite, mem.ErrAccess}, // without LOCAL_WRITE
		{0, mem.LocalWrite, roce.ErrInvalid},
		{-1, mem.LocalWrite, roce.ErrInvalid},
		{1<<46 + 1, mem.LocalWrite, roce.ErrInvalid},
	} {
		if _, err := dev.AllocMR(pd, tt.n, tt.access); !errors.Is(err, tt.want) {
			t.Errorf("%d bytes, %s: error %v, want %v", tt.n, tt.access, err, tt.want)
		}
	}
	if err := pd.Close(); err != nil { // nothing is left of them
		t.Error(err)
	}
	if _, err := dev.AllocMR(pd, 1, 0); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("in a closed domain: %v", err)
	}
}

// TestSharedRegionsAreRefused: a region that is shared with others is asked for by
// flags that verbs does not call optional: they are refused, and nothing is
// registered. A region has one memory and one key in one process; there is no call
// for dma-buf.
func TestSharedRegionsAreRefused(t *testing.T) {
	dev := simWorld(t, 1, sim.Faults{}, engine.Options{}).devs[0]
	pd := dev.AllocPD()
	for bit := 10; bit < 20; bit++ {
		_, err := dev.RegMR(pd, make([]byte, 8), mem.LocalWrite|1<<bit)
		if !errors.Is(err, mem.ErrAccess) || !strings.Contains(err.Error(), "UNKNOWN") {
			t.Errorf("flag %#x: %v", 1<<bit, err)
		}
	}
	if err := pd.Close(); err != nil {
		t.Error(err)
	}
}
