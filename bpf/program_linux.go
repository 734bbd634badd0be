package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// maxQueues is beyond any device: an skb has 16 bits for its queue.
const maxQueues = 1 << 16

// A program is the XDP program attached to one interface, and its maps. Its
// methods are safe for concurrent use.
type program struct {
	name    string // of the interface
	ifindex int
	id      ebpf.ProgramID
	at      attached // its link with mu held, the rest never changes

	mu     sync.Mutex // held over map calls, so that Close waits for them
	closed bool
	objs   xdpObjects
	users  int              // Programs that are not closed, with the lock of programs
	owners map[Key]int      // how many of those own each address
	near   near             // some of these, as the program has them
	queues map[int]*Program // who registered a socket for a queue
	asker  linkAsker
	reader countReader
}

// Attach loads the program and attaches it to an interface of the calling
// thread's network namespace. It owns no address and has no socket, so at
// first everything passes.
//
// An interface that has the program already, of this process, is shared: what it owns is what
// any of them does, and it goes with the last. The mode is the one that it has, or an error.
// An interface that has another XDP program is left alone: the error is
// ErrForeignProgram (and unix.EBUSY). Other errors have the kernel's errno:
// unix.EPERM without CAP_BPF and CAP_NET_ADMIN, unix.ENODEV without such an
// interface, unix.EOPNOTSUPP when mode Native is not to be had.
func Attach(ifindex int, opts Options) (*Program, error) {
	programs.Lock()
	defer programs.Unlock()
	if p, err := attachedHere(ifindex, opts); p != nil || err != nil {
		return p, err
	}
	p, err := attachProgram(ifindex, opts)
	if err != nil {
		return nil, err
	}
	if programs.byID == nil {
		programs.byID = map[ebpf.ProgramID]*program{}
	}
	programs.byID[p.id] = p
	return p.newUser(), nil
}

// attachProgram is Attach to an interface that has no program of ours.
func attachProgram(ifindex int, opts Options) (*program, error) {
	dev, queues, err := prepare(ifindex, opts)
	if err != nil {
		return nil, err
	}
	p := &program{
		name: dev.name, ifindex: ifindex, owners: map[Key]int{}, queues: map[int]*Program{},
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, &Error{Op: "attach to", Interface: p.name, Err: err}
	}
	p.reader.perCPU = make([]Count, cpus)
	if err := load(&p.objs, queues); err != nil {
		return nil, err
	}
	if p.id, err = idOf(p.objs.Xroce); err != nil {
		return nil, errors.Join(err, p.objs.Close())
	}
	if p.at, err = attach(p.objs.Xroce, ifindex, dev, opts.Mode); err != nil {
		return nil, errors.Join(err, p.objs.Close())
	}
	return p, nil
}

// idOf asks for the number that the kernel gave a program.
func idOf(program *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := program.Info()
	if err != nil {
		return 0, &Error{Op: "look at the program", Err: err}
	}
	id, _ := info.ID() // every kernel that has links tells it
	return id, nil
}

// prepare looks at the interface that a program is to be attached to, and returns it with
// how many queues there are to be.
func prepare(ifindex int, opts Options) (device, int, error) {
	switch {
	case ifindex <= 0:
		return device{}, 0, fmt.Errorf("bpf: interface index %d, expected one above 0", ifindex)
	case opts.Mode > Generic:
		return device{}, 0, fmt.Errorf("bpf: unknown mode %v", opts.Mode)
	case opts.Queues < 0 || opts.Queues > maxQueues:
		return device{}, 0, fmt.Errorf("bpf: %d queues, expected 0 to %d", opts.Queues, maxQueues)
	}
	dev, err := readDevice(ifindex)
	if err != nil {
		return dev, 0, &Error{
			Op: "attach to", Interface: fmt.Sprintf("ifindex %d", ifindex),
			Err: err, Hint: attachHint(err, opts.Mode),
		}
	}
	if dev.progID != 0 {
		return dev, 0, foreignError(dev)
	}
	if opts.Queues > 0 {
		return dev, opts.Queues, nil
	}
	return dev, max(dev.rxQueues, 1), nil
}

// load makes the maps and loads the program.
//
// No limit on locked memory is lifted first: kernels that know xdp.frags charge
// maps to the memory cgroup.
func load(objs *xdpObjects, queues int) error {
	spec, err := loadXdp()
	if err != nil {
		return fmt.Errorf("bpf: read the embedded object: %w", err)
	}
	spec.Maps[xdpMapXsks].MaxEntries = uint32(queues)
	return loadError(spec.LoadAndAssign(objs, nil))
}

// loadError explains why a program or its maps cannot be had, if err is not nil.
func loadError(err error) error {
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM):
		// The library's message blames the limit on locked memory. Not here.
		err, hint = unix.EPERM, permissionHint()
	case errors.Is(err, unix.EINVAL):
		hint = "multi-buffer XDP programs need Linux 5.18"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		hint = "raise the limit (ulimit -n)"
	case errors.Is(err, unix.ENOMEM):
		hint = "no memory for the maps; a limit of the cgroup may be reached"
	}
	return &Error{Op: "load", Err: err, Hint: hint}
}

// Mode is Native or Generic: where the program runs.
func (p *program) Mode() Mode { return p.at.mode }

// NativeErr says why a Program in mode Auto fell back to Generic; nil when it
// did not.
func (p *program) NativeErr() error { return p.at.nativeErr }

// Queues is the number of queues that Register accepts.
func (p *program) Queues() int { return int(p.objs.Xsks.MaxEntries()) }

// Unregister makes the packets of a queue pass to the kernel again. A queue
// without socket is no error.
func (p *program) Unregister(queue int) error {
	if err := p.checkQueue(queue); err != nil {
		return err
	}
	return p.do(fmt.Sprintf("unregister queue %d of", queue), func() error {
		delete(p.queues, queue)
		return ignore(p.objs.Xsks.Delete(uint32(queue)), ebpf.ErrKeyNotExist)
	})
}

// checkQueue refuses what the map has no slot for.
func (p *program) checkQueue(queue int) error {
	if queue < 0 || queue >= p.Queues() {
		return fmt.Errorf("bpf: queue %d of %s, expected 0 to %d", queue, p.name, p.Queues()-1)
	}
	return nil
}

// Counters reads the counters, summed over the CPUs. They are read one after
// the other while packets go on counting.
func (p *program) Counters() (sum Counters, err error) {
	for r := range Reason(NumReasons) {
		if sum[r], err = p.Count(r); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// Count reads the counters of one reason, summed over the CPUs. It allocates nothing.
func (p *program) Count(r Reason) (sum Count, err error) {
	if int(r) >= NumReasons {
		return Count{}, fmt.Errorf("bpf: no counter has the reason %d", r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return Count{}, ErrClosed
	}
	if err := p.reader.read(p.objs.Counters.FD(), uint32(r)); err != nil {
		return Count{}, p.failed("read the counters of", err)
	}
	for _, c := range p.reader.perCPU {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
	}
	return sum, nil
}

// close detaches the program and gives it and its maps back.
func (p *program) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return errors.Join(release(p.at.link), p.objs.xdpPrograms.Close(), p.objs.xdpMaps.Close())
}

// do runs one operation on the maps of an open program.
func (p *program) do(op string, f func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if err := f(); err != nil {
		return p.failed(op, err)
	}
	return nil
}

// failed explains why an operation on the maps was refused.
func (p *program) failed(op string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.EPERM):
		hint = permissionHint()
	case errors.Is(err, unix.EOPNOTSUPP):
		hint = "the file descriptor is not an AF_XDP socket"
	}
	return &Error{Op: op, Interface: p.name, Err: err, Hint: hint}
}

// fullError says that a Program owns all that it can. It is unix.E2BIG.
type fullError struct{}

// Error says it in words of ours.
func (fullError) Error() string {
	return fmt.Sprintf("%d addresses are owned, which is all", MaxKeys)
}

// Unwrap returns the errno of the map.
func (fullError) Unwrap() error { return unix.E2BIG }

// ignore returns nil for the one error that is none.
func ignore(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
