package xsk

import (
	"syscall"
	"time"
)

// A Kernel is everything that a Socket asks of the operating system. Linux
// returns the real one; xsktest has one in memory, so that the rings, the
// frames and every error path run without privileges and under the race
// detector. Errors are syscall.Errno values where the kernel gave one.
type Kernel interface {
	// Device looks an interface up, by name unless that is empty.
	Device(name string, ifindex int) (Device, error)

	// Socket makes an unbound AF_XDP socket, Close closes any descriptor that
	// this Kernel made.
	Socket() (fd int, err error)
	Close(fd int) error

	// MemoryLimits says how much more memory the process may have.
	MemoryLimits() MemoryLimits

	// MapUMEM allocates page-aligned zeroed memory of at least size bytes, of huge pages that
	// are reserved for such or of ordinary ones, that
	// the kernel may pin; UnmapUMEM frees it.
	MapUMEM(size int, huge bool) ([]byte, error)
	UnmapUMEM(mem []byte) error

	// RegisterUMEM makes mem the socket's frames, cut into chunks of chunkSize.
	RegisterUMEM(fd int, mem []byte, chunkSize uint32) error

	// SetRing makes one of the socket's rings; MapAddrRing maps the fill or
	// completion ring, MapDescRing the RX or TX ring. UnmapRing takes the
	// Mapping of what those returned.
	SetRing(fd int, kind RingKind, entries uint32) error
	MapAddrRing(fd int, kind RingKind, entries uint32) (RingMemory[uint64], error)
	MapDescRing(fd int, kind RingKind, entries uint32) (RingMemory[Desc], error)
	UnmapRing(mapping []byte) error

	// SetTxBudget, SetSndBuf and SetBusyPoll set the options of the same names
	// in Config.
	SetTxBudget(fd, descriptors int) error
	SetSndBuf(fd, bytes int) error
	SetBusyPoll(fd, microseconds, budget int) error

	// Bind attaches the socket to a queue, with the flags of sockaddr_xdp.
	Bind(fd int, flags uint16, ifindex, queue int) error
	// BindShared attaches the socket to a queue with the frames, the mode and the flags of
	// another socket, which is bound.
	BindShared(fd, ifindex, queue, other int) error
	// ZeroCopy reports whether the bound socket runs without copies.
	ZeroCopy(fd int) (bool, error)
	// Statistics reads the kernel's counters of the socket.
	Statistics(fd int) (KernelStats, error)
	// Owner describes the process that holds the queue, or returns "".
	Owner(ifindex, queue int) string

	// Send makes the kernel look at the TX ring, Recv at the fill ring; neither
	// blocks.
	Send(fd int) syscall.Errno
	Recv(fd int) syscall.Errno

	// Event makes a descriptor that Notify makes readable and Drain unreadable.
	Event() (fd int, err error)
	Notify(event int) error
	Drain(event int) error
	// Poll waits until one of the sockets can receive, the event or another descriptor is
	// readable or the time is over; for ever when timeout is negative. The last two of the
	// descriptors, which it may write to, are the event and the other one, -1 for none. With
	// keepCPU the calling thread keeps its Go processor while it sleeps; the time should be
	// short.
	Poll(fds []PollFD, timeout time.Duration, keepCPU bool) (Ready, error)
}

// A PollFD is a descriptor that Poll waits for. It has the layout of struct pollfd.
type PollFD struct {
	FD              int32
	Events, Revents int16
}

// Device is what Open needs to know about an interface.
type Device struct {
	Name  string
	Index int
	MTU   int // bytes without the Ethernet header
}

// Ready says what ended a Poll. All false means the time-out.
type Ready struct {
	Receive bool // an RX ring has entries
	Event   bool // the event is readable
	Other   bool // the other descriptor is readable, or can never be
	Gone    bool // the device was deleted
}

// KernelStats are the counters of struct xdp_statistics, under its names. They
// count from the socket's creation and are never reset.
type KernelStats struct {
	RxDropped            uint64 // no room in the frame or no frame
	RxInvalidDescs       uint64
	TxInvalidDescs       uint64
	RxRingFull           uint64 // we were too slow
	RxFillRingEmptyDescs uint64 // we gave too few frames
	TxRingEmptyDescs     uint64 // send calls that drained the ring: not a fault
}

// The flags of struct sockaddr_xdp that Bind takes. BindShared has none but its own.
const (
	BindSharedUMEM = 1 << 0 // XDP_SHARED_UMEM: frames of another socket
	BindCopy       = 1 << 1 // XDP_COPY: no zero-copy
	BindZeroCopy   = 1 << 2 // XDP_ZEROCOPY: zero-copy or failure
	BindNeedWakeup = 1 << 3 // XDP_USE_NEED_WAKEUP: kernel says when to call
	BindMulti      = 1 << 4 // XDP_USE_SG: frames of several chunks
)
