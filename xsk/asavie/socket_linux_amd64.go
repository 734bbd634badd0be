package asavie

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// A Socket is an asavie/xdp socket on one queue. The concurrency rules are those
// of xsk.Link. doc.go lists its limits.
//
// Frames handed out live in memory of this package; the library's frames are
// only touched inside Receive and Transmit.
type Socket struct {
	sock   *xdp.Socket
	waiter *xsk.Waiter
	kernel xsk.Kernel
	info   xsk.Info
	stats  xsk.Stats

	rxLimit int      // frames of the library that may be in the fill ring or beyond
	rxFree  []uint32 // buffers for received frames, by number
	txFree  []uint32
	rxBuf   []byte
	txBuf   []byte
	txRing  int // entries

	failed  error // of a Transmit, for the next Flush
	closed  bool
	closing sync.Mutex
}

var _ xsk.Link = (*Socket)(nil)

// place is a queue of a device, in the namespace that it is in.
type place struct {
	namespace      string
	ifindex, queue int
}

// opening serialises Open, since the library takes bind flags from a global
// variable, and remembers the queues that it keeps for ever.
var opening = struct {
	sync.Mutex
	used map[place]bool
}{used: map[place]bool{}}

// Open makes a socket on one queue, which must not have had one of this package
// in this process. Frames arrive once FD is registered in the XSKMAP of an XDP
// program. It needs CAP_NET_RAW, and CAP_IPC_LOCK for many frames.
func Open(cfg Config) (*Socket, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	kernel := xsk.Linux()
	dev, err := kernel.Device(cfg.Interface, cfg.Ifindex)
	if err != nil {
		return nil, &xsk.Error{
			Op: "look up " + cfg.Interface, Ifindex: cfg.Ifindex,
			Queue: cfg.Queue, Err: err,
		}
	}
	s := &Socket{kernel: kernel, rxLimit: cfg.RxFrames}
	s.info = xsk.Info{
		Backend:   "asavie",
		Interface: dev.Name,
		Ifindex:   dev.Index,
		Queue:     cfg.Queue,
		Queues:    1,
		MTU:       dev.MTU,
		MaxFrame:  min(dev.MTU+headerLen, chunkSize-rxHeadroom),
		TxFrames:  cfg.TxFrames,
	}
	if err := s.open(cfg); err != nil {
		return nil, err
	}
	s.rxBuf, s.rxFree = buffers(cfg.RxFrames)
	s.txBuf, s.txFree = buffers(cfg.TxFrames)
	s.refill()
	return s, nil
}

// open makes the library's socket and what is around it.
func (s *Socket) open(cfg Config) error {
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return s.fail("find the network namespace", err)
	}
	where := place{namespace, s.info.Ifindex, s.info.Queue}
	opening.Lock()
	defer opening.Unlock()
	if opening.used[where] {
		return s.fail("open", ErrReopen)
	}
	xdp.DefaultSocketFlags = map[xsk.Mode]uint16{
		xsk.ModeCopy: unix.XDP_COPY, xsk.ModeZeroCopy: unix.XDP_ZEROCOPY,
	}[cfg.Mode]
	s.txRing = ceilPow2(cfg.TxFrames)
	s.sock, err = newSocket(s.info.Ifindex, s.info.Queue, &xdp.SocketOptions{
		NumFrames:              cfg.RxFrames + cfg.TxFrames,
		FrameSize:              chunkSize,
		FillRingNumDescs:       ceilPow2(cfg.RxFrames),
		RxRingNumDescs:         ceilPow2(cfg.RxFrames),
		CompletionRingNumDescs: s.txRing,
		TxRingNumDescs:         s.txRing,
	})
	if err != nil {
		// The library has closed what it opened, but may have left rings mapped.
		// Those hold an unbound socket and not the queue.
		return s.fail("new socket", err)
	}
	opening.used[where] = true
	s.waiter, err = xsk.NewWaiter(s.kernel, s.sock.FD())
	if err != nil {
		return errors.Join(s.fail("eventfd", err), s.sock.Close())
	}
	if s.info.ZeroCopy, err = s.kernel.ZeroCopy(s.sock.FD()); err != nil {
		return errors.Join(s.fail("read XDP_OPTIONS", err), s.waiter.Close(), s.sock.Close())
	}
	return nil
}

// The waits for a queue that is taken: nine, 5.1 s in all.
const (
	firstBusyWait = 10 * time.Millisecond
	lastBusyWait  = 2560 * time.Millisecond
)

// newSocket makes the library's socket. A queue whose socket was closed a moment
// ago is still taken, since the kernel lets go of it later; the library does not
// wait for that. Each try in vain leaves its rings mapped, so there are few. The
// library's errors have no errno in them, but its text.
func newSocket(ifindex, queue int, o *xdp.SocketOptions) (*xdp.Socket, error) {
	for wait := firstBusyWait; ; wait *= 2 {
		sock, err := xdp.NewSocket(ifindex, queue, o)
		if err == nil || wait > lastBusyWait ||
			!strings.HasSuffix(err.Error(), unix.EBUSY.Error()) {
			return sock, err
		}
		time.Sleep(wait)
	}
}

// buffers makes n buffers and the stack of their numbers.
func buffers(n int) ([]byte, []uint32) {
	free := make([]uint32, n)
	for i := range free {
		free[i] = uint32(n - 1 - i)
	}
	return make([]byte, n*chunkSize), free
}

// ceilPow2 returns the smallest power of two that is at least n, for n >= 1.
func ceilPow2(n int) int { return 1 << bits.Len(uint(n-1)) }

// fail says where an error happened.
func (s *Socket) fail(op string, err error) error {
	return &xsk.Error{Op: "asavie " + op, Ifindex: s.info.Ifindex, Queue: s.info.Queue, Err: err}
}

// FD returns the socket's descriptor, for the XSKMAP.
func (s *Socket) FD() int { return s.sock.FD() }

// Sockets calls f with the queue and FD.
func (s *Socket) Sockets(f func(queue, fd int) error) error { return f(s.info.Queue, s.FD()) }

// Info implements xsk.Link.
func (s *Socket) Info() xsk.Info { return s.info }

// Wait implements xsk.Link.
func (s *Socket) Wait(timeout time.Duration) error {
	if s.closed {
		return xsk.ErrClosed
	}
	if err := s.waiter.Wait(timeout); err != nil {
		return s.fail("poll", err)
	}
	return nil
}

// WakeOn implements xsk.FDWaiter.
func (s *Socket) WakeOn(fd int) { s.waiter.WakeOn(fd) }

// Wake implements xsk.Link.
func (s *Socket) Wake() { s.waiter.Wake() }

// Stats implements xsk.Link. Of what send calls came back with only TxNetDown is
// counted: the library hides the rest.
func (s *Socket) Stats() (xsk.Stats, error) {
	if s.closed {
		return xsk.Stats{}, xsk.ErrClosed
	}
	k, err := s.kernel.Statistics(s.sock.FD())
	if err != nil {
		return xsk.Stats{}, s.fail("read XDP_STATISTICS", err)
	}
	st := s.stats
	st.KernelStats = k
	st.TxOutstanding = uint64(s.sock.NumTransmitted())
	return st, nil
}

// Close implements xsk.Link. The queue stays taken until the process ends.
func (s *Socket) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := errors.Join(s.waiter.Close(), s.sock.Close()); err != nil {
		return fmt.Errorf("asavie: close: %w", err)
	}
	return nil
}
