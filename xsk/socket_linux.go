package xsk

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Socket is an AF_XDP socket on one queue of one device. It implements Link;
// doc.go has the picture. The methods that move frames belong to one goroutine
// at a time, beside which another may be in Wait.
type Socket struct {
	// Read and written for each batch, by the driving goroutine only.
	rx          rxRing
	fill        fillRing
	tx          txRing
	comp        completionRing
	umem        umem
	fillTarget  fillTarget
	part        partial // frame whose last piece has not come yet
	stats       Stats
	outstanding uint32 // chunks queued for sending and not completed

	// Fixed after Open.
	kernel Kernel
	info   Info
	waiter *Waiter
	fd     int
	opened []func() error // undoes each step of Open, in order of the steps

	busyPoll bool

	// closed is read by the goroutines that drive and wait, which have left when Close
	// comes. closing orders two calls of Close.
	closed  bool
	closing sync.Mutex
}

var _ Link = (*Socket)(nil)

// Open makes a socket on one queue and fills its fill ring. Frames arrive once
// the socket is registered in the XSKMAP of an XDP program, under FD; sending
// works at once.
//
// Needs CAP_NET_RAW; CAP_IPC_LOCK, or fewer frames, when those exceed the
// locked-memory limit; CAP_NET_ADMIN for BusyPoll. Blocks for up to BindTimeout when the
// queue is taken. A failure is an *Error, or a plain error for a configuration
// that cannot be; nothing is left open.
func Open(cfg Config) (*Socket, error) { return openFitting(cfg, openSocket) }

// openFitting opens a link with as many frames as the configuration says and, where it does not,
// as there is memory for.
func openFitting[T any](cfg Config, open func(cfg Config, dev Device, limited string) (T, error),
) (link T, err error) {
	if err := cfg.Validate(); err != nil {
		return link, err
	}
	cfg.fitRx, cfg.fitTx = cfg.RxFrames == 0, cfg.TxFrames == 0
	cfg = cfg.withDefaults()
	if cfg.Kernel == nil {
		cfg.Kernel = Linux()
	}
	dev, err := cfg.Kernel.Device(cfg.Interface, cfg.Ifindex)
	if err != nil {
		return link, &Error{
			Op: strings.TrimSpace("look up interface " + cfg.Interface), Ifindex: cfg.Ifindex,
			Queue: cfg.Queue, Err: err, Hint: filesHint(err),
		}
	}
	limited, err := cfg.fit(dev.MTU, cfg.Kernel.MemoryLimits())
	if err != nil {
		return link, &Error{Op: "allocate UMEM", Ifindex: dev.Index, Queue: cfg.Queue, Err: err}
	}
	for {
		link, err = open(cfg, dev, limited)
		// What others of this user have locked counts, too, and nobody tells how much.
		if !errors.Is(err, unix.ENOBUFS) || !cfg.halve() {
			return link, err
		}
		limited = "what this user may lock (ulimit -l) is locked by others"
	}
}

// openSocket is Open with as many frames as the configuration says.
func openSocket(cfg Config, dev Device, limited string) (*Socket, error) {
	lay, err := cfg.layout(dev.MTU)
	if err != nil {
		return nil, err
	}
	s := newSocket(cfg, dev, limited)
	if err := s.open(cfg, lay); err != nil {
		if closeErr := s.Close(); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
		return nil, err
	}
	return s, nil
}

// newSocket makes a socket that is not open.
func newSocket(cfg Config, dev Device, limited string) *Socket {
	return &Socket{
		kernel: cfg.Kernel, fd: -1, busyPoll: cfg.BusyPoll > 0,
		info: Info{
			Backend:   "xsk",
			Interface: dev.Name,
			Ifindex:   dev.Index,
			Queue:     cfg.Queue,
			Queues:    1,
			MTU:       dev.MTU,
			TxFrames:  cfg.TxFrames,
			Limited:   limited,
		},
	}
}

// mapUMEM allocates the frames.
func (s *Socket) mapUMEM(cfg Config, lay layout) ([]byte, error) {
	mem, err := s.kernel.MapUMEM(lay.umemSize, cfg.HugePages)
	if err == nil {
		return mem, nil
	}
	e := &Error{
		Op: "allocate UMEM", Ifindex: s.info.Ifindex, Queue: s.info.Queue, Err: err,
		Hint: s.hint("allocate UMEM", err),
	}
	if cfg.HugePages && errors.Is(err, unix.ENOMEM) {
		e.Err, e.Hint = fmt.Errorf("%w: %w", ErrHugePages, err), hugePagesHint(lay.umemSize)
	}
	return nil, e
}

// open does the steps of Open that have to be undone.
func (s *Socket) open(cfg Config, lay layout) error {
	mem, err := s.mapUMEM(cfg, lay)
	if err != nil {
		return err
	}
	s.undo(func() error { return s.kernel.UnmapUMEM(mem) })
	if err := s.openOn(cfg, lay, part{mem: mem[:lay.umemSize]}); err != nil {
		return err
	}
	if s.waiter, err = NewWaiter(s.kernel, s.fd); err != nil {
		return s.fail("eventfd", err)
	}
	s.waiter.keepCPU = cfg.Dedicated
	s.undo(s.waiter.Close)
	return nil
}

// A part is what a socket has of memory that may be shared.
type part struct {
	mem   []byte  // all of it
	base  uint64  // where the part begins
	first *Socket // the one that registered the memory, nil for that itself
}

// openOn makes the socket on memory that there is, and binds it.
func (s *Socket) openOn(cfg Config, lay layout, p part) (err error) {
	s.umem.init(p.mem, p.base, uint32(cfg.ChunkSize), uint32(cfg.RxFrames), uint32(cfg.TxFrames),
		lay.perTx)
	s.fillTarget.init(uint32(cfg.FillTarget), uint32(cfg.RxFrames))
	if s.fd, err = s.kernel.Socket(); err != nil {
		return s.fail("socket", err)
	}
	fd := s.fd
	s.undo(func() error { return s.kernel.Close(fd) })
	if p.first == nil {
		if err := s.kernel.RegisterUMEM(s.fd, p.mem, uint32(cfg.ChunkSize)); err != nil {
			return s.fail("register UMEM", err)
		}
	}
	if err := s.openRings(lay); err != nil {
		return err
	}
	if err := s.setOptions(cfg, lay); err != nil {
		return err
	}
	s.fillSpare() // the driver may take chunks as soon as it is bound
	multi, err := s.bind(cfg, lay, p.first)
	if err != nil {
		return err
	}
	zc, err := s.kernel.ZeroCopy(s.fd)
	if err != nil {
		return s.fail("read XDP_OPTIONS", err)
	}
	s.info.ZeroCopy = zc
	if zc {
		// The driver looks for more as long as its own ring has room.
		s.RaiseFillTarget(cfg.RxFrames)
	}
	s.info.MultiBuffer = multi
	pieces := int(lay.perTx)
	s.info.MaxFrame = min(s.info.MTU+ethLen+vlanLen,
		rxRoom(uint32(cfg.ChunkSize), zc, s.info.MultiBuffer)*pieces)
	return nil
}

// undo notes how to take the last step back.
func (s *Socket) undo(f func() error) { s.opened = append(s.opened, f) }

// openRings makes and maps the four rings. All rings are made before the first
// is mapped, since a mapping keeps the socket alive.
func (s *Socket) openRings(lay layout) error {
	sizes := [...]uint32{
		FillRing:       lay.fillRing,
		CompletionRing: lay.compRing,
		RxRing:         lay.rxRing,
		TxRing:         lay.txRing,
	}
	for kind, n := range sizes {
		if n == 0 {
			continue
		}
		if err := s.kernel.SetRing(s.fd, RingKind(kind), n); err != nil {
			return s.fail("make "+RingKind(kind).String()+" ring", err)
		}
	}
	err := errors.Join(
		mapRingInto(s, &s.fill.ring, FillRing, s.kernel.MapAddrRing, lay.fillRing),
		mapRingInto(s, &s.comp.ring, CompletionRing, s.kernel.MapAddrRing, lay.compRing),
		mapRingInto(s, &s.rx.ring, RxRing, s.kernel.MapDescRing, lay.rxRing),
	)
	if lay.txRing == 0 {
		s.tx.detach() // there is nothing to send, ever
		return err
	}
	return errors.Join(err,
		mapRingInto(s, &s.tx.ring, TxRing, s.kernel.MapDescRing, lay.txRing))
}

// mapRingInto maps one ring and takes it over.
func mapRingInto[T entry](s *Socket, r *ring[T], kind RingKind,
	mapRing func(int, RingKind, uint32) (RingMemory[T], error), entries uint32,
) error {
	m, err := mapRing(s.fd, kind, entries)
	if err != nil {
		return s.fail("map "+kind.String()+" ring", err)
	}
	r.init(m, kind == FillRing || kind == TxRing)
	s.undo(func() error { return s.kernel.UnmapRing(m.Mapping) })
	return nil
}

// setOptions sets what the configuration asks for. Only the send budget is
// optional: without it the kernel handles 32 descriptors a call, and Flush
// calls again.
func (s *Socket) setOptions(cfg Config, lay layout) error {
	if lay.txBudget >= minTxBudget {
		err := s.kernel.SetTxBudget(s.fd, lay.txBudget)
		if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			return s.fail("set XDP_MAX_TX_SKB_BUDGET", err)
		}
	}
	if cfg.SndBuf > 0 {
		if err := s.kernel.SetSndBuf(s.fd, cfg.SndBuf); err != nil {
			return s.fail("set SO_SNDBUF", err)
		}
	}
	if cfg.BusyPoll > 0 {
		if err := s.kernel.SetBusyPoll(s.fd, cfg.BusyPoll, cfg.BusyPollBudget); err != nil {
			return s.fail("set busy polling", err)
		}
	}
	return nil
}

// bind attaches the socket to its queue and reports whether frames may span two chunks. One that
// shares the frames of another inherits its mode and flags. The kernel releases the queue of a
// closed socket in a worker, so a queue that was just given up is busy for some milliseconds:
// bind tries again until BindTimeout, and for a quarter of it where a process is seen to hold the
// queue.
func (s *Socket) bind(cfg Config, lay layout, first *Socket) (multi bool, err error) {
	flags := uint16(BindNeedWakeup)
	switch cfg.Mode {
	case ModeCopy:
		flags |= BindCopy
	case ModeZeroCopy:
		flags |= BindZeroCopy
	}
	if lay.multi {
		flags |= BindMulti
	}
	asked := false
	for began := time.Now(); ; time.Sleep(bindPoll) {
		if first == nil {
			err = s.kernel.Bind(s.fd, flags, s.info.Ifindex, s.info.Queue)
		} else {
			err = s.kernel.BindShared(s.fd, s.info.Ifindex, s.info.Queue, first.fd)
		}
		if err == nil {
			return lay.multi, nil
		}
		waited := time.Since(began)
		if !errors.Is(err, unix.EBUSY) || waited >= cfg.BindTimeout {
			return false, s.fail("bind", err)
		}
		if !asked && waited >= cfg.BindTimeout/4 {
			asked = true // once: all processes are looked through
			if s.kernel.Owner(s.info.Ifindex, s.info.Queue) != "" {
				return false, s.fail("bind", err)
			}
		}
	}
}

// FD returns the socket's descriptor, for the XSKMAP. It is valid until Close
// and must not be closed, read or bound.
func (s *Socket) FD() int { return s.fd }

// Sockets calls f with the queue and FD, as Group.Sockets does for each of several.
func (s *Socket) Sockets(f func(queue, fd int) error) error { return f(s.info.Queue, s.fd) }

// Info implements Link.
func (s *Socket) Info() Info { return s.info }

// Wait implements Link. The kernel sends queued frames of a copy-mode socket as
// a side effect. It returns an Error with ENODEV when the device was deleted,
// within a second of that.
func (s *Socket) Wait(timeout time.Duration) error {
	if s.closed {
		return ErrClosed
	}
	if err := s.waiter.Wait(timeout); err != nil {
		return s.fail("poll", err)
	}
	return nil
}

// WakeOn implements FDWaiter.
func (s *Socket) WakeOn(fd int) { s.waiter.WakeOn(fd) }

// Wake implements Link. It makes a system call only when a Wait may be sleeping.
func (s *Socket) Wake() { s.waiter.Wake() }

// Stats implements Link. It makes one system call.
func (s *Socket) Stats() (Stats, error) {
	if s.closed {
		return Stats{}, ErrClosed
	}
	k, err := s.kernel.Statistics(s.fd)
	if err != nil {
		return Stats{}, s.fail("read XDP_STATISTICS", err)
	}
	st := s.stats
	st.KernelStats = k
	st.TxOutstanding = uint64(s.outstanding)
	return st, nil
}

// Close implements Link. It unmaps the rings, closes the socket, which also
// clears its XSKMAP slot, and unmaps the frames, in this order: a mapped ring
// keeps a closed socket, and with it the queue, alive. Frames that are still
// borrowed are gone; frames that are still queued are not sent.
func (s *Socket) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.rx.detach()
	s.fill.detach()
	s.tx.detach()
	s.comp.detach()
	s.umem = umem{}
	s.part = partial{}
	s.outstanding = 0
	var errs []error
	for i := len(s.opened) - 1; i >= 0; i-- {
		errs = append(errs, s.opened[i]())
	}
	s.opened = nil
	return errors.Join(errs...)
}

// fail wraps an error of the kernel with where it happened and what to do.
func (s *Socket) fail(op string, err error) error {
	e := &Error{Op: op, Ifindex: s.info.Ifindex, Queue: s.info.Queue, Err: err}
	e.Hint = s.hint(op, err)
	return e
}

// lockHint says what helps when the frames may not be locked. Those of others of this user count
// against the limit as well.
func (s *Socket) lockHint() string {
	limit := ""
	if n := s.kernel.MemoryLimits().Locked; n != Unlimited {
		limit = fmt.Sprintf(" of %d KiB", n>>10)
	}
	return fmt.Sprintf("%d KiB of frames are over the locked-memory limit%s, with what this user "+
		"has locked already: raise it (ulimit -l), grant CAP_IPC_LOCK, or ask for fewer frames",
		len(s.umem.mem)>>10, limit)
}

// filesHint says what helps against too many open files, nothing for other errors.
func filesHint(err error) string {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return "raise the limit (ulimit -n)"
	}
	return ""
}

// hint says what usually helps.
func (s *Socket) hint(op string, err error) string {
	switch {
	case filesHint(err) != "":
		return filesHint(err)
	case errors.Is(err, unix.EPERM) && op == "socket":
		return "needs CAP_NET_RAW"
	case errors.Is(err, unix.EPERM):
		return "needs CAP_NET_ADMIN"
	case errors.Is(err, unix.ENOBUFS) && op == "register UMEM":
		return s.lockHint()
	case errors.Is(err, unix.EAFNOSUPPORT):
		return "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)"
	case op != "bind":
		return ""
	case errors.Is(err, unix.EBUSY):
		hint := "another socket holds the queue: stop it or use another queue"
		if who := s.kernel.Owner(s.info.Ifindex, s.info.Queue); who != "" {
			return hint + "; holder: " + who
		}
		return hint
	case errors.Is(err, unix.EINVAL):
		return "no such queue (ethtool -l shows how many there are), " +
			"or the MTU is too large for zero-copy"
	case errors.Is(err, unix.EOPNOTSUPP):
		return "the driver has no zero-copy, or not with frames of two chunks: use copy mode"
	case errors.Is(err, unix.ENETDOWN):
		return "the interface is down"
	}
	return ""
}
