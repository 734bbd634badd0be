package live

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sort"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// bulk is how many frames the kernel hands to a driver at a time (kernel kernel/bpf/devmap.c,
// DEV_MAP_BULK_SIZE). With as many to a batch, what came of them is known before the next are
// taken.
const bulk = 16

// maxRoom bounds the longest live frame in bytes. As ROOM in live.c.
const maxRoom = 3840

// cacheLine is what slots are a multiple of, an odd one, so that they do not share cache sets.
const cacheLine = 64

// A Transmitter sends frames from an interface. One caller at a time.
type Transmitter struct {
	objs   liveObjects
	taps   link.Link // of the tracepoint
	parked link.Link // of the program, where nothing comes
	ns     *os.File  // the network namespace of that
	shared [2][]byte // memory of the maps
	batch  *batch
	slots  []byte
	stride int
	room   int
	free   []uint32
	queued int
	attr   runAttr
	zeros  [maxRoom]byte // what frames begin as
}

// Open makes a Transmitter for an interface of the network namespace of the calling thread, whose
// longest frame has so many bytes. It attaches nothing to it and sends nothing. Errors have the
// kernel's errno: unix.EPERM without the rights, errors.ErrUnsupported where the kernel cannot.
func Open(ifindex, maxFrame int) (_ *Transmitter, err error) {
	t := &Transmitter{}
	defer func() {
		if err != nil {
			err = errors.Join(explain(err), t.Close())
		}
	}()
	if err := t.load(maxFrame); err != nil {
		return nil, err
	}
	if err := t.objs.Interface.Put(uint32(0), uint32(ifindex)); err != nil {
		return nil, err
	}
	if err := t.share(); err != nil {
		return nil, err
	}
	if t.taps, err = link.AttachTracing(link.TracingOptions{Program: t.objs.Sent}); err != nil {
		return nil, err
	}
	if err := t.park(); err != nil {
		return nil, err
	}
	if err := t.probe(); err != nil {
		return nil, err
	}
	for slot := range uint32(Frames) {
		t.free = append(t.free, Frames-1-slot)
	}
	return t, nil
}

// explain says what is missing.
func explain(err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.EPERM):
		// The library's message blames the limit on locked memory. Not here.
		err, hint = unix.EPERM, ": needs CAP_SYS_ADMIN"
	case errors.Is(err, unix.EINVAL):
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, unix.EINVAL)
		hint = ": needs Linux 5.18"
	case errors.Is(err, ebpf.ErrNotSupported):
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return fmt.Errorf("live frames: %w%s", err, hint)
}

// strideOf is how many bytes a slot has in which the longest frame has room.
func strideOf(maxFrame int) int {
	lines := (max(maxFrame, maxRoom) + cacheLine - 1) / cacheLine
	return (lines | 1) * cacheLine
}

// Bytes is how much memory a Transmitter has for frames, whose longest one is as Open is told.
func Bytes(maxFrame int) int { return Frames * strideOf(maxFrame) }

// load loads the programs, and makes slots in which the longest frame has room.
func (t *Transmitter) load(maxFrame int) error {
	spec, err := loadLive()
	if err != nil {
		return err
	}
	slots := spec.Maps[liveMapSlots]
	t.stride = strideOf(maxFrame)
	slots.ValueSize = uint32(t.stride)
	return spec.LoadAndAssign(&t.objs, nil)
}

// share shares the memory of the maps with the kernel.
func (t *Transmitter) share() (err error) {
	for i, m := range []*ebpf.Map{t.objs.Batch, t.objs.Slots} {
		size := int(m.ValueSize()) * int(m.MaxEntries())
		t.shared[i], err = unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("share the memory of a map: %w", err)
		}
	}
	if len(t.shared[0]) < batchSize {
		return fmt.Errorf("the batch has %d bytes, want %d", len(t.shared[0]), batchSize)
	}
	t.batch, t.slots = mapBatch(t.shared[0]), t.shared[1]
	return nil
}

// park attaches the program to the loopback interface of a new network namespace. The thread that
// made it ends; the namespace is kept by its file.
func (t *Transmitter) park() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread is good for nothing else
		done <- func() (err error) {
			if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("a network namespace: %w", err)
			}
			if t.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
				return err
			}
			t.parked, err = link.AttachXDP(link.XDPOptions{
				Program: t.objs.Transmit, Interface: loopback, Flags: link.XDPGenericMode,
			})
			return err
		}()
	}()
	return <-done
}

// loopback is the index of that interface in every namespace (kernel LOOPBACK_IFINDEX).
const loopback = 1

// probe finds the longest frame that the kernel takes. There is nothing queued, so none is sent.
func (t *Transmitter) probe() error {
	fits := func(n int) error {
		err := t.attr.run(t.objs.Transmit.FD(), t.zeros[:n], 1)
		if errors.Is(err, unix.EINTR) {
			return nil
		}
		return err
	}
	if err := fits(cacheLine); err != nil {
		return fmt.Errorf("run the program: %w", err)
	}
	t.room = sort.Search(len(t.zeros), func(n int) bool {
		return n >= cacheLine && fits(n+1) != nil
	})
	return nil
}

// Room is the longest frame in bytes that can be sent.
func (t *Transmitter) Room() int { return t.room }

// Reserve returns a free slot and its memory, in which the longest frame of the interface has
// room; ok is false when there is none. It goes to Queue or to Return.
func (t *Transmitter) Reserve() (slot uint32, frame []byte, ok bool) {
	if len(t.free) == 0 {
		return 0, nil, false
	}
	slot = t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	at := int(slot) * t.stride
	return slot, t.slots[at : at+t.stride : at+t.stride], true
}

// Return gives a slot back.
func (t *Transmitter) Return(slot uint32) { t.free = append(t.free, slot) }

// Queue queues the first bytes of a slot for the next run, behind those that are queued.
func (t *Transmitter) Queue(slot uint32, length int) {
	t.batch.frames[t.queued] = desc{slot, uint32(length)}
	t.queued++
}

// Queued is how many frames wait.
func (t *Transmitter) Queued() int { return t.queued }

// First is the frame that waits the longest. It is there until the next call.
func (t *Transmitter) First() []byte {
	f := t.batch.frames[0]
	at := int(f.slot) * t.stride
	return t.slots[at : at+int(f.length)]
}

// Drop takes the frame that waits the longest out of the queue, unsent.
func (t *Transmitter) Drop() { t.took(1) }

// took takes frames out of the queue.
func (t *Transmitter) took(n int) {
	for _, f := range t.batch.frames[:n] {
		t.free = append(t.free, f.slot)
	}
	copy(t.batch.frames[:], t.batch.frames[n:t.queued])
	t.queued -= n
}

// Run sends what is queued, in order, and says how many frames went to the driver's ring, and how
// many were lost. The others still wait: the ring was full. With ErrRefused none was sent and
// none lost, and the interface will not take them now. It allocates nothing but for errors.
func (t *Transmitter) Run() (sent, lost uint64, err error) {
	if t.queued == 0 {
		return 0, 0, nil
	}
	b := t.batch
	// The thread is ours until the batch is nobody's again. Else, when the call takes long, it
	// could run another Transmitter meanwhile, and sent would take the frames of that for ours.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.task, b.next, b.done, b.told, b.sent, b.lost, b.err = 0, 0, 0, 0, 0, 0, 0
	b.count = uint32(t.queued)
	// Most frames are as long as the first, and are not cut or stretched then.
	n := min(max(int(b.frames[0].length), MinFrame), t.room)
	err = t.attr.run(t.objs.Transmit.FD(), t.zeros[:n], t.queued)
	b.task, b.count = 0, 0
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	done, next := min(int(b.done), t.queued), min(int(b.next), t.queued)
	switch {
	case err != nil && b.sent == 0:
		return 0, 0, fmt.Errorf("live frames: %w", err)
	case b.sent == 0 && b.err != 0:
		return 0, 0, fmt.Errorf("%w: %w", ErrRefused, unix.Errno(-b.err))
	case b.told == 0 && next > 0:
		return 0, 0, ErrRefused
	}
	lost = uint64(b.lost) + uint64(next-done) // behind the last that the driver was given
	t.took(next)
	return uint64(b.sent), lost, nil
}

// Close gives everything back. It is idempotent.
func (t *Transmitter) Close() error {
	var errs []error
	for _, l := range []*link.Link{&t.taps, &t.parked} {
		if *l != nil {
			errs = append(errs, (*l).Close())
			*l = nil
		}
	}
	if t.ns != nil {
		errs = append(errs, t.ns.Close())
		t.ns = nil
	}
	for i := range t.shared {
		if t.shared[i] != nil {
			errs = append(errs, unix.Munmap(t.shared[i]))
			t.shared[i] = nil
		}
	}
	for _, m := range []*ebpf.Map{t.objs.Batch, t.objs.Interface, t.objs.Slots} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	for _, p := range []*ebpf.Program{t.objs.Sent, t.objs.Transmit} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	t.objs = liveObjects{}
	return errors.Join(errs...)
}
