package xsktest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// Start is where the index words of every ring begin: a few entries before the
// 32-bit wrap, so that each test goes across it.
const Start = 0xFFFFFFF0

// TxBatch is how many descriptors one send call handles without a budget option.
const TxBatch = 32

// KernelOptions say how an in-memory kernel behaves.
type KernelOptions struct {
	MTU      int  // of the device; default 1500
	Queues   int  // of the device; default 1
	ZeroCopy bool // the device can do zero-copy: no need to call it for sending
	OldTx    bool // there is no XDP_MAX_TX_SKB_BUDGET

	// Limits are what MemoryLimits returns; the zero value is none.
	Limits xsk.MemoryLimits

	// Lag is how many sent descriptors are kept back from the completion ring;
	// Settle brings them.
	Lag int
	// Linger is how many binds find the queue of a closed socket still taken.
	Linger int

	// Hook is asked before each call, by the name of the method of xsk.Kernel;
	// an error fails the call. EBUSY for "Send" also consumes one frame, as a
	// device does that drops it; other errors consume nothing. It runs with the
	// kernel locked.
	Hook func(call string) error
}

// Kernel is an AF_XDP in memory that follows the kernel's rules: bounds and
// alignment of descriptors, one owner per queue, sockets that live as long as
// their ring mappings, send budgets. It implements xsk.Kernel. Its device is
// called "fake0", with index 1, and is one end of a wire without loss: a sent
// frame is delivered during the send call to the socket on the same queue of the
// other end, of which those that it has not are its others again, as a card with fewer hashes.
// Safe for concurrent use.
type Kernel struct {
	o    KernelOptions
	mu   *sync.Mutex // one for both ends
	cond *sync.Cond
	peer *Kernel

	nextFD int
	files  map[int]*file
	memory map[*byte]*file // ring mapping -> its socket; UMEM -> nil
	bound  map[int]*file   // queue -> socket
	linger map[int]int     // queue -> binds that still fail
	down   bool
	gone   bool
}

var _ xsk.Kernel = (*Kernel)(nil)

// file is an open descriptor: a socket, or an event when sock is nil.
type file struct {
	sock  *sock
	event bool // readable
}

// sock is the kernel's side of a socket.
type sock struct {
	closed   bool
	mappings int
	queue    int
	bound    bool
	flags    uint16
	budget   int
	mem      []byte
	chunk    uint32
	sizes    [4]uint32
	fill     xsk.RingMemory[uint64]
	comp     xsk.RingMemory[uint64]
	rx, tx   xsk.RingMemory[xsk.Desc]
	// What the kernel has read of the rings it consumes. It publishes these
	// late, as Linux does.
	fillRead, txRead uint32
	sent             []uint64 // to be completed, oldest first
	stats            xsk.KernelStats
}

// NewWire returns the kernels of two hosts joined by a wire.
func NewWire(a, b KernelOptions) (*Kernel, *Kernel) {
	mu := new(sync.Mutex)
	cond := sync.NewCond(mu)
	var k [2]*Kernel
	for i, o := range []KernelOptions{a, b} {
		if o.MTU == 0 {
			o.MTU = 1500
		}
		if o.Queues == 0 {
			o.Queues = 1
		}
		k[i] = &Kernel{
			o: o, mu: mu, cond: cond, nextFD: 3,
			files:  map[int]*file{},
			memory: map[*byte]*file{},
			bound:  map[int]*file{},
			linger: map[int]int{},
		}
	}
	k[0].peer, k[1].peer = k[1], k[0]
	return k[0], k[1]
}

// enter locks the kernel and asks the hook. The caller unlocks.
func (k *Kernel) enter(call string) error {
	k.mu.Lock()
	if k.o.Hook == nil {
		return nil
	}
	return k.o.Hook(call)
}

// socket returns the socket with descriptor fd.
func (k *Kernel) socket(fd int) (*file, error) {
	f := k.files[fd]
	if f == nil {
		return nil, unix.EBADF
	}
	if f.sock == nil {
		return nil, unix.ENOTSOCK
	}
	return f, nil
}

// Leaks lists what is open: descriptors, mappings and taken queues.
func (k *Kernel) Leaks() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var l []string
	for fd := range k.files {
		l = append(l, fmt.Sprintf("fd %d", fd))
	}
	for _, f := range k.memory {
		l = append(l, fmt.Sprintf("mapping (of a ring: %t)", f != nil))
	}
	for q := range k.bound {
		l = append(l, fmt.Sprintf("queue %d", q))
	}
	slices.Sort(l)
	return l
}

// SetDown takes the interface down or up, administratively.
func (k *Kernel) SetDown(down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = down
}

// Delete deletes the device.
func (k *Kernel) Delete() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = true
	k.cond.Broadcast()
}

// Settle completes every sent descriptor.
func (k *Kernel) Settle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.bound {
		f.sock.complete(0)
	}
}

// Device implements xsk.Kernel.
func (k *Kernel) Device(name string, ifindex int) (xsk.Device, error) {
	err := k.enter("Device")
	defer k.mu.Unlock()
	if err != nil {
		return xsk.Device{}, err
	}
	if k.gone || name != "fake0" && (name != "" || ifindex != 1) {
		return xsk.Device{}, unix.ENODEV
	}
	return xsk.Device{Name: "fake0", Index: 1, MTU: k.o.MTU}, nil
}

// open adds a descriptor.
func (k *Kernel) open(f *file) int {
	k.nextFD++
	k.files[k.nextFD] = f
	return k.nextFD
}

// Socket implements xsk.Kernel.
func (k *Kernel) Socket() (int, error) {
	err := k.enter("Socket")
	defer k.mu.Unlock()
	if err != nil {
		return -1, err
	}
	return k.open(&file{sock: &sock{budget: TxBatch}}), nil
}

// Close implements xsk.Kernel. A hook cannot fail it.
func (k *Kernel) Close(fd int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.files[fd]
	if f == nil {
		return unix.EBADF
	}
	delete(k.files, fd)
	if f.sock != nil {
		f.sock.closed = true
		k.releaseSocket(f)
	}
	return nil
}

// releaseSocket gives the queue back when neither a descriptor nor a mapping
// holds the socket any more.
func (k *Kernel) releaseSocket(f *file) {
	s := f.sock
	if s.closed && s.mappings == 0 && s.bound {
		s.bound = false
		delete(k.bound, s.queue)
		k.linger[s.queue] = k.o.Linger
	}
}

// SetTxBudget implements xsk.Kernel.
func (k *Kernel) SetTxBudget(fd, descriptors int) error {
	err := k.enter("SetTxBudget")
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := k.socket(fd)
	if err != nil {
		return err
	}
	if k.o.OldTx {
		return unix.ENOPROTOOPT
	}
	if descriptors < TxBatch || descriptors > int(f.sock.sizes[xsk.TxRing]) {
		return unix.EACCES
	}
	f.sock.budget = descriptors
	return nil
}

// SetSndBuf implements xsk.Kernel; the size has no effect.
func (k *Kernel) SetSndBuf(fd, _ int) error { return k.option("SetSndBuf", fd) }

// SetBusyPoll implements xsk.Kernel; it has no effect.
func (k *Kernel) SetBusyPoll(fd, _, _ int) error { return k.option("SetBusyPoll", fd) }

func (k *Kernel) option(call string, fd int) error {
	err := k.enter(call)
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = k.socket(fd)
	return err
}

// SetQueues gives the device so many queues, as ethtool -L does, but also where a socket is bound:
// that one keeps its queue, and nobody is bound to those that are gone any more.
func (k *Kernel) SetQueues(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.o.Queues = n
}

// Bind implements xsk.Kernel.
func (k *Kernel) Bind(fd int, flags uint16, ifindex, queue int) error {
	err := k.enter("Bind")
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := k.socket(fd)
	if err != nil {
		return err
	}
	s := f.sock
	switch {
	case ifindex != 1 || k.gone:
		return unix.ENODEV
	case s.mem == nil || s.incomplete() || queue >= k.o.Queues:
		return unix.EINVAL
	case flags&xsk.BindZeroCopy != 0 && !k.o.ZeroCopy:
		return unix.EOPNOTSUPP
	case k.bound[queue] != nil:
		return unix.EBUSY
	case k.linger[queue] > 0:
		k.linger[queue]--
		return unix.EBUSY
	}
	s.queue, s.flags, s.bound = queue, flags, true
	k.bound[queue] = f
	return nil
}

// incomplete reports whether a ring is missing that binding needs.
func (s *sock) incomplete() bool {
	return s.sizes[xsk.FillRing] == 0 || s.sizes[xsk.CompletionRing] == 0 ||
		s.sizes[xsk.RxRing] == 0 && s.sizes[xsk.TxRing] == 0
}

// BindShared implements xsk.Kernel.
func (k *Kernel) BindShared(fd, ifindex, queue, other int) error {
	k.mu.Lock()
	f, err := k.socket(fd)
	first, otherErr := k.socket(other)
	switch {
	case err != nil || otherErr != nil:
		err = unix.EBADF
	case f.sock.mem != nil || !first.sock.bound:
		err = unix.EINVAL
	default:
		f.sock.mem, f.sock.chunk = first.sock.mem, first.sock.chunk
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if err = k.Bind(fd, first.sock.flags, ifindex, queue); err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		f.sock.mem = nil
	}
	return err
}

// ZeroCopy implements xsk.Kernel.
func (k *Kernel) ZeroCopy(fd int) (bool, error) {
	err := k.enter("ZeroCopy")
	defer k.mu.Unlock()
	if err != nil {
		return false, err
	}
	f, err := k.socket(fd)
	if err != nil {
		return false, err
	}
	return k.o.ZeroCopy && f.sock.flags&xsk.BindCopy == 0, nil
}

// Statistics implements xsk.Kernel.
func (k *Kernel) Statistics(fd int) (xsk.KernelStats, error) {
	err := k.enter("Statistics")
	defer k.mu.Unlock()
	if err != nil {
		return xsk.KernelStats{}, err
	}
	f, err := k.socket(fd)
	if err != nil {
		return xsk.KernelStats{}, err
	}
	return f.sock.stats, nil
}

// Owner implements xsk.Kernel.
func (k *Kernel) Owner(_, queue int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bound[queue] == nil {
		return ""
	}
	return "pid 1 (fake)"
}

// Event implements xsk.Kernel.
func (k *Kernel) Event() (int, error) {
	err := k.enter("Event")
	defer k.mu.Unlock()
	if err != nil {
		return -1, err
	}
	return k.open(&file{}), nil
}

// setEvent makes an event readable or not.
func (k *Kernel) setEvent(call string, fd int, readable bool) error {
	err := k.enter(call)
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	f := k.files[fd]
	if f == nil || f.sock != nil {
		return unix.EBADF
	}
	f.event = readable
	k.cond.Broadcast()
	return nil
}

// Notify implements xsk.Kernel.
func (k *Kernel) Notify(event int) error { return k.setEvent("Notify", event, true) }

// Drain implements xsk.Kernel.
func (k *Kernel) Drain(event int) error { return k.setEvent("Drain", event, false) }

// Poll implements xsk.Kernel. Unlike Linux it does not send. The other descriptor is an event, too.
func (k *Kernel) Poll(fds []xsk.PollFD, timeout time.Duration, _ bool) (xsk.Ready, error) {
	err := k.enter("Poll")
	defer k.mu.Unlock()
	if err != nil {
		return xsk.Ready{}, err
	}
	over := timeout == 0
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			over = true
			k.cond.Broadcast()
		})
		defer timer.Stop()
	}
	for {
		last := len(fds) - 2
		e := k.files[int(fds[last].FD)]
		if e == nil {
			return xsk.Ready{}, unix.EBADF
		}
		other := k.files[int(fds[last+1].FD)]
		r := xsk.Ready{Event: e.event, Other: other != nil && other.event, Gone: k.gone}
		for _, p := range fds[:last] {
			f, err := k.socket(int(p.FD))
			if err != nil {
				return xsk.Ready{}, err
			}
			waiting := f.sock.rx.Producer.Load() != f.sock.rx.Consumer.Load()
			r.Receive = r.Receive || waiting
		}
		if over || r != (xsk.Ready{}) {
			return r, nil
		}
		k.cond.Wait()
	}
}

// errno returns the errno in err, EIO for an error without one.
func errno(err error) unix.Errno {
	var e unix.Errno
	if err == nil {
		return 0
	}
	if errors.As(err, &e) {
		return e
	}
	return unix.EIO
}
