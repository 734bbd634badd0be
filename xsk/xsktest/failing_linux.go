package xsktest

import (
	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// Failing passes everything on to a kernel, except that one call of those that
// Open makes fails with EIO without being made. For tests that a failed Open
// leaves nothing behind on a kernel that has no hook.
type Failing struct {
	xsk.Kernel
	At int // the call that fails, counted from 1; 0 for none

	calls int
}

// Calls returns how many of the calls that can fail were made.
func (f *Failing) Calls() int { return f.calls }

// fail counts a call and fails the chosen one.
func (f *Failing) fail() error {
	f.calls++
	if f.calls == f.At {
		return unix.EIO
	}
	return nil
}

// Device implements xsk.Kernel.
func (f *Failing) Device(name string, ifindex int) (xsk.Device, error) {
	if err := f.fail(); err != nil {
		return xsk.Device{}, err
	}
	return f.Kernel.Device(name, ifindex)
}

// Socket implements xsk.Kernel.
func (f *Failing) Socket() (int, error) {
	if err := f.fail(); err != nil {
		return -1, err
	}
	return f.Kernel.Socket()
}

// Event implements xsk.Kernel.
func (f *Failing) Event() (int, error) {
	if err := f.fail(); err != nil {
		return -1, err
	}
	return f.Kernel.Event()
}

// MapUMEM implements xsk.Kernel.
func (f *Failing) MapUMEM(size int, huge bool) ([]byte, error) {
	if err := f.fail(); err != nil {
		return nil, err
	}
	return f.Kernel.MapUMEM(size, huge)
}

// RegisterUMEM implements xsk.Kernel.
func (f *Failing) RegisterUMEM(fd int, mem []byte, chunkSize uint32) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Kernel.RegisterUMEM(fd, mem, chunkSize)
}

// SetRing implements xsk.Kernel.
func (f *Failing) SetRing(fd int, kind xsk.RingKind, entries uint32) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Kernel.SetRing(fd, kind, entries)
}

// MapAddrRing implements xsk.Kernel.
func (f *Failing) MapAddrRing(fd int, kind xsk.RingKind, n uint32) (xsk.RingMemory[uint64], error) {
	if err := f.fail(); err != nil {
		return xsk.RingMemory[uint64]{}, err
	}
	return f.Kernel.MapAddrRing(fd, kind, n)
}

// MapDescRing implements xsk.Kernel.
func (f *Failing) MapDescRing(fd int, kind xsk.RingKind, n uint32) (
	xsk.RingMemory[xsk.Desc], error,
) {
	if err := f.fail(); err != nil {
		return xsk.RingMemory[xsk.Desc]{}, err
	}
	return f.Kernel.MapDescRing(fd, kind, n)
}

// SetTxBudget implements xsk.Kernel.
func (f *Failing) SetTxBudget(fd, descriptors int) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Kernel.SetTxBudget(fd, descriptors)
}

// SetSndBuf implements xsk.Kernel.
func (f *Failing) SetSndBuf(fd, bytes int) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Kernel.SetSndBuf(fd, bytes)
}

// Bind implements xsk.Kernel.
func (f *Failing) Bind(fd int, flags uint16, ifindex, queue int) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Kernel.Bind(fd, flags, ifindex, queue)
}

// ZeroCopy implements xsk.Kernel.
func (f *Failing) ZeroCopy(fd int) (bool, error) {
	if err := f.fail(); err != nil {
		return false, err
	}
	return f.Kernel.ZeroCopy(fd)
}
