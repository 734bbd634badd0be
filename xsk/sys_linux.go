package xsk

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This is the only file of the package with unsafe and raw system calls. Each
// function is one call, and names the errors that the kernel (v6.18,
// net/xdp/xsk.c unless said otherwise) gives for it.

// The structs shared with the kernel have the sizes that its headers fix
// (include/uapi/linux/if_xdp.h). A difference does not compile.
var (
	_ [16]byte  = [unsafe.Sizeof(Desc{})]byte{}
	_ [128]byte = [unsafe.Sizeof(unix.XDPMmapOffsets{})]byte{}
	_ [32]byte  = [unsafe.Sizeof(umemReg{})]byte{}
	_ [48]byte  = [unsafe.Sizeof(unix.XDPStatistics{})]byte{}
	_ [48]byte  = [unsafe.Sizeof(KernelStats{})]byte{}
	_ [16]byte  = [unsafe.Sizeof(unix.RawSockaddrXDP{})]byte{}
	_ [4]byte   = [unsafe.Sizeof(atomic.Uint32{})]byte{}
	_ [8]byte   = [unsafe.Sizeof(PollFD{})]byte{}
	_ [8]byte   = [unsafe.Sizeof(unix.PollFd{})]byte{}
)

// umemReg is struct xdp_umem_reg. All 32 bytes are passed: with fewer the
// kernel takes the old form and ignores the flags.
type umemReg struct {
	addr          uint64
	len           uint64
	chunkSize     uint32
	headroom      uint32
	flags         uint32
	txMetadataLen uint32
}

type linux struct{}

// Linux returns the operating system's kernel.
func Linux() Kernel { return linux{} }

// Device needs no privilege. An unknown interface gives ENODEV; EMFILE, ENFILE and
// ENOMEM are of the asking.
func (linux) Device(name string, ifindex int) (Device, error) {
	var ifi *net.Interface
	var err error
	if name != "" {
		ifi, err = net.InterfaceByName(name)
	} else {
		ifi, err = net.InterfaceByIndex(ifindex)
	}
	var errno syscall.Errno
	if err != nil && !errors.As(err, &errno) {
		err = fmt.Errorf("%w: %w", unix.ENODEV, err)
	}
	if err != nil {
		return Device{}, err
	}
	return Device{Name: ifi.Name, Index: ifi.Index, MTU: ifi.MTU}, nil
}

// Socket: EAFNOSUPPORT (kernel without CONFIG_XDP_SOCKETS), EPERM (no
// CAP_NET_RAW in the network namespace's user namespace), EMFILE, ENFILE,
// ENOMEM.
func (linux) Socket() (int, error) {
	return unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
}

// Close: EBADF. The kernel releases the queue in a worker, some milliseconds
// later, and not before the rings are unmapped: a mapping holds the socket.
func (linux) Close(fd int) error { return unix.Close(fd) }

// MapUMEM: ENOMEM, also where too few huge pages are reserved.
//
// Huge pages are the system's, and are taken when they are asked for; ordinary ones the kernel
// may join (MADV_HUGEPAGE). Everything is faulted in here and not on the first packet, and kept out
// of core dumps. Only failing to have the memory is an error: the advice is not known to every
// kernel (EINVAL).
func (linux) MapUMEM(size int, huge bool) ([]byte, error) {
	const prot = unix.PROT_READ | unix.PROT_WRITE
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if huge {
		rounded := (size + hugePage - 1) &^ (hugePage - 1)
		mem, err := unix.Mmap(-1, 0, rounded, prot,
			flags|unix.MAP_HUGETLB|21<<unix.MAP_HUGE_SHIFT) // 21 = log2(2 MiB)
		if err != nil {
			return nil, err
		}
		if err := populate(mem); err != nil {
			return nil, err
		}
		return mem, nil
	}
	mem, err := unix.Mmap(-1, 0, size, prot, flags)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE) // EINVAL: kernel without THP
	if err := populate(mem); err != nil {
		return nil, err
	}
	return mem, nil
}

// populate faults mem in, and unmaps it when there is no memory for it.
func populate(mem []byte) error {
	// EINVAL before Linux 5.14: registering the UMEM faults it in then.
	err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return errors.Join(err, unix.Munmap(mem))
	}
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP) // without it core dumps are larger
	return nil
}

// UnmapUMEM: EINVAL for memory that MapUMEM did not make.
func (linux) UnmapUMEM(mem []byte) error { return unix.Munmap(mem) }

// RegisterUMEM (net/xdp/xdp_umem.c): EINVAL (chunk size, alignment, length),
// ENOBUFS (over RLIMIT_MEMLOCK without CAP_IPC_LOCK), EBUSY (registered
// already), ENOMEM, EFAULT.
func (linux) RegisterUMEM(fd int, mem []byte, chunkSize uint32) error {
	reg := umemReg{
		addr:      uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))),
		len:       uint64(len(mem)),
		chunkSize: chunkSize,
	}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP,
		unix.XDP_UMEM_REG, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	return errnoErr(errno)
}

var ringOptions = [...]struct {
	option int   // of setsockopt
	offset int64 // of mmap
}{
	FillRing:       {unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_PGOFF_FILL_RING},
	CompletionRing: {unix.XDP_UMEM_COMPLETION_RING, unix.XDP_UMEM_PGOFF_COMPLETION_RING},
	RxRing:         {unix.XDP_RX_RING, unix.XDP_PGOFF_RX_RING},
	TxRing:         {unix.XDP_TX_RING, unix.XDP_PGOFF_TX_RING},
}

// SetRing: EINVAL (not a power of two, or made already), EBUSY (bound), ENOMEM.
func (linux) SetRing(fd int, kind RingKind, entries uint32) error {
	return unix.SetsockoptInt(fd, unix.SOL_XDP, ringOptions[kind].option, int(entries))
}

// ringOffsets asks where the words of a ring are in its mapping. EOPNOTSUPP:
// not an AF_XDP socket. A kernel before 5.4 answers with a shorter struct
// without the flags words and is refused as not supported.
func ringOffsets(fd int, kind RingKind) (unix.XDPRingOffset, error) {
	var all unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(all))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP,
		unix.XDP_MMAP_OFFSETS, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return unix.XDPRingOffset{}, errno
	}
	if size != uint32(unsafe.Sizeof(all)) {
		err := fmt.Errorf("ring offsets of %d bytes: %w", size, ErrNotSupported)
		return unix.XDPRingOffset{}, err
	}
	switch kind {
	case FillRing:
		return all.Fr, nil
	case CompletionRing:
		return all.Cr, nil
	case RxRing:
		return all.Rx, nil
	}
	return all.Tx, nil
}

// mapRing: EINVAL (ring not made, or longer than made), ENOMEM, EAGAIN (locked
// memory).
func mapRing[T entry](fd int, kind RingKind, entries uint32) (RingMemory[T], error) {
	var zero T
	off, err := ringOffsets(fd, kind)
	if err != nil {
		return RingMemory[T]{}, err
	}
	length := int(off.Desc) + int(entries)*int(unsafe.Sizeof(zero))
	m, err := unix.Mmap(fd, ringOptions[kind].offset, length,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return RingMemory[T]{}, err
	}
	_ = unix.Madvise(m, unix.MADV_DONTDUMP) // without it core dumps are larger
	word := func(at uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&m[at])) }
	return RingMemory[T]{
		Producer: word(off.Producer),
		Consumer: word(off.Consumer),
		Flags:    word(off.Flags),
		Entries:  unsafe.Slice((*T)(unsafe.Pointer(&m[off.Desc])), entries),
		Mapping:  m,
	}, nil
}

// MapAddrRing: see mapRing.
func (linux) MapAddrRing(fd int, kind RingKind, entries uint32) (RingMemory[uint64], error) {
	return mapRing[uint64](fd, kind, entries)
}

// MapDescRing: see mapRing.
func (linux) MapDescRing(fd int, kind RingKind, entries uint32) (RingMemory[Desc], error) {
	return mapRing[Desc](fd, kind, entries)
}

// UnmapRing: EINVAL for memory that was not mapped by Map*Ring.
func (linux) UnmapRing(mapping []byte) error { return unix.Munmap(mapping) }

// SetTxBudget: ENOPROTOOPT (kernel without XDP_MAX_TX_SKB_BUDGET), EACCES (not
// in 32 to the size of the TX ring, or no TX ring).
func (linux) SetTxBudget(fd, descriptors int) error {
	return unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, descriptors)
}

// SetSndBuf goes past net.core.wmem_max with CAP_NET_ADMIN, else is cut to it
// by the kernel without an error.
func (linux) SetSndBuf(fd, bytes int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bytes) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
}

// SetBusyPoll: EPERM (no CAP_NET_ADMIN), ENOPROTOOPT (kernel before 5.11 or
// without CONFIG_NET_RX_BUSY_POLL).
func (linux) SetBusyPoll(fd, microseconds, budget int) error {
	for _, o := range []struct {
		name          string
		option, value int
	}{
		{"SO_PREFER_BUSY_POLL", unix.SO_PREFER_BUSY_POLL, 1},
		{"SO_BUSY_POLL", unix.SO_BUSY_POLL, microseconds},
		{"SO_BUSY_POLL_BUDGET", unix.SO_BUSY_POLL_BUDGET, budget},
	} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.option, o.value); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// Bind: EBUSY (the queue has an owner, or had one some milliseconds ago),
// EINVAL (no such queue, or MTU too large for zero-copy), EOPNOTSUPP (no
// zero-copy here), ENODEV (no such interface), ENETDOWN (interface down, some
// drivers), ENOMEM.
func (linux) Bind(fd int, flags uint16, ifindex, queue int) error {
	return unix.Bind(fd, &unix.SockaddrXDP{
		Flags:   flags,
		Ifindex: uint32(ifindex),
		QueueID: uint32(queue),
	})
}

// BindShared: as Bind; EBADF or EINVAL when other is no bound AF_XDP socket. A kernel before
// 5.10 knows no fill ring of another queue and gives EINVAL.
func (linux) BindShared(fd, ifindex, queue, other int) error {
	return unix.Bind(fd, &unix.SockaddrXDP{
		Flags:        BindSharedUMEM,
		Ifindex:      uint32(ifindex),
		QueueID:      uint32(queue),
		SharedUmemFD: uint32(other),
	})
}

// ZeroCopy: EINVAL before Linux 5.3, which cannot tell: taken as copy mode.
func (linux) ZeroCopy(fd int) (bool, error) {
	v, err := unix.GetsockoptInt(fd, unix.SOL_XDP, unix.XDP_OPTIONS)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOPROTOOPT) {
		return false, nil
	}
	return v&unix.XDP_OPTIONS_ZEROCOPY != 0, err
}

// Statistics: EINVAL for a short buffer, which this is not. A kernel before
// 5.9 fills in the first three counters.
func (linux) Statistics(fd int) (KernelStats, error) {
	var s KernelStats
	size := uint32(unsafe.Sizeof(s))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP,
		unix.XDP_STATISTICS, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&size)), 0)
	return s, errnoErr(errno)
}

// Send: see Socket.Flush for every errno and what is done about it.
//
// The call is raw: the Go scheduler does not learn of it. An announced call
// that takes over 20 us can lose its processor to another goroutine, and then
// waits for one on return; that is milliseconds on a small busy machine, in the
// middle of a burst. The price is that a garbage collection waits for the call.
// maxTxBudget keeps it short.
func (linux) Send(fd int) syscall.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// Recv: ENETDOWN (interface down), ENXIO (not bound any more), ENOBUFS (no RX
// ring), EOPNOTSUPP (no MSG_DONTWAIT). Raw as Send: it wakes the driver, or
// polls it once when busy polling is on, with at most the busy-poll budget.
func (linux) Recv(fd int) syscall.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// Event: EMFILE, ENFILE, ENOMEM.
func (linux) Event() (int, error) {
	return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
}

// Notify: EAGAIN when the count is at its maximum, which means readable.
func (linux) Notify(event int) error {
	one := [8]byte{}
	*(*uint64)(unsafe.Pointer(&one)) = 1 // the kernel reads a native uint64
	for {
		_, err := unix.Write(event, one[:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return nil
		}
		return err
	}
}

// Drain: EAGAIN when there was nothing to read.
func (linux) Drain(event int) error {
	var count [8]byte
	for {
		_, err := unix.Read(event, count[:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return nil
		}
		return err
	}
}

// Poll: EINTR, also from the Go runtime's preemption signals; ENOMEM.
//
// With keepCPU the call is raw, as Send is. An announced poll of over 20 us loses
// its processor to another thread of the runtime, and the two then wake each
// other for every burst. A garbage collection need not wait for it, since its
// signal interrupts the call; other goroutines find one processor less.
//
// poll on a socket with a TX ring runs the TX ring whatever events are asked
// for. That is harmless: what it sends is what Flush would send next. Frames
// that the device drops in that run are not counted in TxBusy.
func (linux) Poll(fds []PollFD, timeout time.Duration, keepCPU bool) (Ready, error) {
	var ts *unix.Timespec
	if timeout >= 0 {
		t := unix.NsecToTimespec(int64(timeout))
		ts = &t
	}
	var err error
	list := unsafe.SliceData(fds)
	if keepCPU {
		_, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(list)),
			uintptr(len(fds)), uintptr(unsafe.Pointer(ts)), 0, 0, 0)
		err = errnoErr(errno)
	} else {
		_, err = unix.Ppoll(unsafe.Slice((*unix.PollFd)(unsafe.Pointer(list)), len(fds)), ts, nil)
	}
	if err != nil {
		return Ready{}, err
	}
	const gone = unix.POLLERR | unix.POLLHUP | unix.POLLNVAL
	event := len(fds) - 2
	r := Ready{Event: fds[event].Revents&unix.POLLIN != 0, Other: fds[event+1].Revents != 0}
	for i := range fds[:event] {
		r.Receive = r.Receive || fds[i].Revents&unix.POLLIN != 0
		r.Gone = r.Gone || fds[i].Revents&gone != 0
	}
	return r, nil
}

// errnoErr turns the errno of a raw call into an error, nil for none.
func errnoErr(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
