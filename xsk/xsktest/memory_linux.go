package xsktest

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// The memory that a socket shares with its user: frames and rings.

// MemoryLimits implements xsk.Kernel with those of the options.
func (k *Kernel) MemoryLimits() xsk.MemoryLimits {
	if k.o.Limits == (xsk.MemoryLimits{}) {
		return xsk.MemoryLimits{Locked: xsk.Unlimited, Charged: xsk.Unlimited}
	}
	return k.o.Limits
}

// MapUMEM implements xsk.Kernel. All pages are alike; a hook may fail it.
func (k *Kernel) MapUMEM(size int, _ bool) ([]byte, error) {
	err := k.enter("MapUMEM")
	defer k.mu.Unlock()
	if err != nil {
		return nil, err
	}
	mem := make([]byte, size)
	k.memory[&mem[0]] = nil
	return mem, nil
}

// UnmapUMEM implements xsk.Kernel. A hook cannot fail it.
func (k *Kernel) UnmapUMEM(mem []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f, ok := k.memory[&mem[0]]; !ok || f != nil {
		return unix.EINVAL
	}
	delete(k.memory, &mem[0])
	return nil
}

// RegisterUMEM implements xsk.Kernel.
func (k *Kernel) RegisterUMEM(fd int, mem []byte, chunkSize uint32) error {
	err := k.enter("RegisterUMEM")
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := k.socket(fd)
	if err != nil {
		return err
	}
	if f.sock.mem != nil {
		return unix.EBUSY
	}
	if chunkSize < 2048 || chunkSize > 4096 || chunkSize&(chunkSize-1) != 0 ||
		len(mem) == 0 || len(mem)%int(chunkSize) != 0 {
		return unix.EINVAL
	}
	f.sock.mem, f.sock.chunk = mem, chunkSize
	return nil
}

// SetRing implements xsk.Kernel.
func (k *Kernel) SetRing(fd int, kind xsk.RingKind, entries uint32) error {
	err := k.enter("SetRing")
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := k.socket(fd)
	if err != nil {
		return err
	}
	if entries == 0 || entries&(entries-1) != 0 || f.sock.sizes[kind] != 0 {
		return unix.EINVAL
	}
	f.sock.sizes[kind] = entries
	return nil
}

// mapRing makes the memory of a ring.
func mapRing[T uint64 | xsk.Desc](k *Kernel, call string, fd int, kind xsk.RingKind,
	entries uint32, ring func(*sock) *xsk.RingMemory[T],
) (xsk.RingMemory[T], error) {
	err := k.enter(call)
	defer k.mu.Unlock()
	if err != nil {
		return xsk.RingMemory[T]{}, err
	}
	f, err := k.socket(fd)
	if err != nil {
		return xsk.RingMemory[T]{}, err
	}
	if f.sock.sizes[kind] != entries {
		return xsk.RingMemory[T]{}, unix.EINVAL
	}
	m := xsk.RingMemory[T]{
		Producer: new(atomic.Uint32), Consumer: new(atomic.Uint32), Flags: new(atomic.Uint32),
		Entries: make([]T, entries),
		Mapping: make([]byte, 1),
	}
	m.Producer.Store(Start)
	m.Consumer.Store(Start)
	switch kind {
	case xsk.TxRing:
		m.Flags.Store(1)
		f.sock.txRead = Start
	case xsk.FillRing:
		f.sock.fillRead = Start
	}
	f.sock.mappings++
	k.memory[&m.Mapping[0]] = f
	*ring(f.sock) = m
	return m, nil
}

// MapAddrRing implements xsk.Kernel.
func (k *Kernel) MapAddrRing(fd int, kind xsk.RingKind, n uint32) (xsk.RingMemory[uint64], error) {
	return mapRing(k, "MapAddrRing", fd, kind, n, func(s *sock) *xsk.RingMemory[uint64] {
		if kind == xsk.FillRing {
			return &s.fill
		}
		return &s.comp
	})
}

// MapDescRing implements xsk.Kernel.
func (k *Kernel) MapDescRing(fd int, kind xsk.RingKind, n uint32) (
	xsk.RingMemory[xsk.Desc], error,
) {
	return mapRing(k, "MapDescRing", fd, kind, n, func(s *sock) *xsk.RingMemory[xsk.Desc] {
		if kind == xsk.RxRing {
			return &s.rx
		}
		return &s.tx
	})
}

// UnmapRing implements xsk.Kernel. A hook cannot fail it.
func (k *Kernel) UnmapRing(mapping []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.memory[&mapping[0]]
	if f == nil {
		return unix.EINVAL
	}
	delete(k.memory, &mapping[0])
	f.sock.mappings--
	k.releaseSocket(f)
	return nil
}
