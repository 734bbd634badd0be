package xsk

import "time"

// A Link is one queue of one network device, or several, or a simulated one, as the
// engine sees it: frames in, frames out, a way to sleep and a way to be woken.
// Socket implements it over AF_XDP, and Group for several queues; xsk/asavie and
// engine/sim implement it too.
//
// One goroutine at a time drives a Link, which is to call any method but Wait,
// Wake and Info. Beside it one goroutine may be in Wait, and any may call Wake and
// Info. Close comes after both have left. No method but Close and Wait blocks, and
// none allocates.
type Link interface {
	// Info says what the link is. It does not change while the link is open.
	Info() Info

	// Receive fills dst with complete received frames and returns how many.
	// The frames are borrowed: their bytes are valid until Release.
	Receive(dst []RxFrame) int

	// Release gives received frames back so that they can receive again.
	Release(frames []RxFrame)

	// Reserve fills dst with free transmit frames and returns how many there
	// were; fewer than len(dst) means that the others are still on their way
	// out. Each reserved frame goes to Transmit or to Return, once.
	Reserve(dst []TxFrame) int

	// Transmit queues the first Len bytes of each frame for sending, in order.
	// It takes every frame that Reserve handed out: the transmit ring is at
	// least as large as the transmit share of the frames.
	Transmit(frames []TxFrame)

	// Return gives reserved frames back unsent.
	Return(frames []TxFrame)

	// Flush makes the kernel send what Transmit queued, with as many system
	// calls as that takes without blocking. A nil error with frames still
	// queued is possible (the device is full): call it again. Loss on the
	// device is counted in Stats, not returned. An error means that the link
	// cannot send now: unix.ENETDOWN until the interface is up again, anything
	// else for good.
	Flush() error

	// Pending reports whether Transmit queued frames that Flush could not hand
	// to the kernel yet.
	Pending() bool

	// Wait blocks until a frame can be received, until Wake is called, or
	// until the time-out passes. A negative time-out waits for ever. A Wake
	// that came before Wait makes it return at once. It may return early for no
	// reason. An error is for good: the device was deleted (unix.ENODEV), or the
	// link closed.
	//
	// It takes and gives back no frame, so another goroutine may drive the link
	// meanwhile. Frames that were sent come back in Receive, Reserve and Flush.
	Wait(timeout time.Duration) error

	// Wake ends the current Wait, or the next. Safe for concurrent use.
	Wake()

	// Stats reads the link's counters, including the kernel's own.
	Stats() (Stats, error)

	// Close gives everything back. It is idempotent.
	Close() error
}

// A Filler is a Link whose kernel does not have all receive frames at once.
type Filler interface {
	// RaiseFillTarget says that so many frames may come before the next Receive. From then on
	// the kernel has at least as many to receive into, if there are.
	RaiseFillTarget(frames int)
}

// An FDWaiter is a Link whose Wait ends, too, when a descriptor of somebody else can be read.
type FDWaiter interface {
	// WakeOn says which descriptor that is, -1 for none, from the next Wait on; one that sleeps
	// ends. It is for who drives the link on a thread of its own, as Config.Dedicated is,
	// where there is more than one processor. The descriptor must outlive that: one that is
	// closed, or broken, ends every Wait. Safe for concurrent use.
	WakeOn(fd int)
}

// A Drainer is a Link that knows when what it was given to send has left the device.
type Drainer interface {
	// Drained reports whether all frames that Transmit took have left or are lost.
	Drained() bool
}

// An RxFrame is one received frame: the bytes from the Ethernet header on,
// without FCS, in one piece or, when the frame outgrew one chunk, in two.
type RxFrame struct {
	Head []byte // the first piece: at least every header of a RoCE packet
	Tail []byte // the rest, nil for most frames

	Ref [2]uint64 // bookkeeping of the link that made it; leave alone
}

// Len is the length of the whole frame in bytes.
func (f *RxFrame) Len() int { return len(f.Head) + len(f.Tail) }

// A TxFrame is one frame to send. The owner writes Data and sets Len.
type TxFrame struct {
	Data []byte // room for Info.MaxFrame bytes, contiguous
	Len  int    // bytes to send, from the Ethernet header on, without FCS

	Ref uint64 // bookkeeping of the link that made it; leave alone
}

// Info describes an open link.
type Info struct {
	Backend     string // "xsk", "asavie" or "sim"
	Interface   string // interface name
	Ifindex     int    // interface index, 0 on a simulated link
	Queue       int    // queue number of the device, the first of several
	Queues      int    // how many queues of the device, 0 on a simulated link
	MTU         int    // interface MTU in bytes, without the Ethernet header
	MaxFrame    int    // longest frame in bytes that can be sent and received
	ZeroCopy    bool   // the driver reads and writes our frames itself
	MultiBuffer bool   // a frame may span two chunks
	TxFrames    int    // transmit frames in all
	// Limited says why there are fewer frames than by default, "" when there are not.
	Limited string
}

// Stats are the counters of a link since it was opened.
type Stats struct {
	RxPackets, RxBytes uint64 // frames and bytes handed out by Receive
	TxPackets, TxBytes uint64 // frames and bytes taken by Transmit

	KernelStats // zero on a link that has no kernel

	// TxOutstanding is the number of descriptors, one or two a frame, that Transmit took and
	// that have not come back: now, not since the link was opened.
	TxOutstanding uint64

	// What the send calls of Flush came back with.
	TxKicks   uint64 // send calls
	TxAgain   uint64 // EAGAIN: budget or buffer used up, called again
	TxBusy    uint64 // EBUSY: the device dropped one frame of ours
	TxNoBufs  uint64 // ENOBUFS: the kernel had no memory, called again later
	TxNetDown uint64 // ENETDOWN: the interface is down, frames stay queued
	RxKicks   uint64 // receive calls that woke the driver

	RxOversize uint64 // frames dropped because they span more than two chunks

	// KernelFaults counts ring entries that named a frame the kernel did not
	// hold. They are ignored. Anything but 0 is a fault of the kernel or of
	// memory.
	KernelFaults uint64
}
