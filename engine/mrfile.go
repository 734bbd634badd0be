package engine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"xroce/roce"
	"xroce/roce/mem"
)

// RegFile registers n bytes of a file from off on, mapped and shared: what peers write
// is in the file, and other processes that map it see it. With FLUSH_PERSISTENT a FLUSH
// writes the pages back (msync with MS_SYNC), with the queue's progress lock held. The
// address is that of the mapping, or 0 with ZERO_BASED; off needs no alignment. The
// mapping ends with Deregister, whatever Rereg makes of the region before.
//
// The file must be open for writing where LOCAL_WRITE is asked; it may be closed
// afterwards. It must not get shorter while it is registered: touching what is gone
// raises SIGBUS, as with every mapping. No Rereg gives LOCAL_WRITE to a mapping that was
// made without. The error is roce.ErrInvalid when the file has fewer bytes, and else that
// of mmap or RegMR.
func (d *Device) RegFile(pd *PD, f *os.File, off int64, n int, access mem.Access) (*MR, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("engine: registering a file: %w", err)
	}
	if off < 0 || n <= 0 || off > info.Size() || int64(n) > info.Size()-off {
		return nil, fmt.Errorf("%w: %d bytes at %d of %s, which has %d", roce.ErrInvalid, n, off,
			f.Name(), info.Size())
	}
	protection := unix.PROT_READ
	if access&mem.LocalWrite != 0 {
		protection |= unix.PROT_WRITE
	}
	page := int64(os.Getpagesize())
	lead := int(off % page)
	mapping, err := unix.Mmap(int(f.Fd()), off-int64(lead), lead+n, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("engine: mapping %d bytes at %d of %s: %w", n, off, f.Name(), err)
	}
	m := mem.MemoryOf(mapping[lead:][:n:n], access)
	m.Sync = func(off, n int) error {
		// msync wants the beginning of a page; the mapping begins with one.
		from := (lead + off) / int(page) * int(page)
		return unix.Msync(mapping[from:lead+off+n], unix.MS_SYNC)
	}
	mr, err := d.register(pd, m, access)
	if err != nil {
		// The mapping was not given to the caller yet.
		_ = unix.Munmap(mapping)
		return nil, err
	}
	if access&mem.LocalWrite == 0 {
		mr.constant = mapping
	}
	mr.free = func() error { return unix.Munmap(mapping) }
	return mr, nil
}
