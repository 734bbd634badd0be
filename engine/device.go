package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"xroce/bpf"
	"xroce/engine/host"
	"xroce/engine/internal/pathtable"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk"
)

// errClosed says that an object was used after its Close.
var errClosed = errors.New("engine: used after Close")

// A Device is an open RoCE device (struct ibv_context). Its methods are safe for
// concurrent use.
type Device struct {
	host     Host
	keys     *mem.Keys
	queues   []*queue               // at least one, the same for the device's life
	qps      *roce.NumberTable[QP]  // of all queues; looked up without a lock
	srqs     *roce.NumberTable[SRQ] // looked up without a lock
	registry registry               // of objects that no table has
	drivers  []*driver              // of each queue, none in direct mode
	program  *bpf.Program           // nil on a link that needs none
	options  Options
	direct   bool
	// maxInlineRecv is the most that rides in a completion, 0 when it is turned off.
	maxInlineRecv int
	gids          host.GIDTable
	// paths has the connected QPs by destination, nil when the host is no Router.
	paths    *pathtable.Table[*QP]
	failed   chan struct{}         // closed when a link is lost
	cause    atomic.Pointer[error] // why, nil while none is
	events   *eventSource          // of the device and its port
	paging   paging
	async    asyncEvents
	services services

	// channels are the open completion channels, nil after Close.
	channels struct {
		sync.Mutex
		open map[*CompChannel]struct{}
	}
	watching sync.WaitGroup // the goroutines that follow the host
	// memberships is held while the membership in multicast groups changes, here
	// and outside; see queues.go for the order of locks.
	memberships sync.Mutex
	// life is held while objects are made and closed, and while what uses what changes.
	life       sync.Mutex
	groups     cowMap[wire.GID, []*QP] // members of multicast groups
	etherTypes cowMap[uint16, etherTypeHandler]

	closeOnce sync.Once
	closeErr  error
}

// OpenLink makes a device of a link and a host. It owns both then, and closes
// them, also when it fails. Open does this for a network interface.
func OpenLink(link xsk.Link, host Host, o Options) (*Device, error) {
	return openDevice([]xsk.Link{link}, host, nil, o)
}

// openDevice is OpenLink of links that a program steers packets to; nil is none. Each link
// is a queue of the device. The program stays the caller's when it fails.
func openDevice(
	links []xsk.Link, host Host, program *bpf.Program, o Options,
) (*Device, error) {
	fail := func(err error) (*Device, error) {
		errs := []error{err}
		for _, link := range links {
			errs = append(errs, link.Close())
		}
		return nil, errors.Join(append(errs, host.Close())...)
	}
	if err := o.check(); err != nil {
		return fail(err)
	}
	o.setDefaults()
	if mtu := wire.ActiveMTU(host.Port().MTU); mtu == 0 {
		err := fmt.Errorf("engine: MTU %d of %s is too small: the smallest path MTU of 256 "+
			"needs %d; raise it with: ip link set %s mtu 1500", host.Port().MTU,
			host.Port().Name, 256+wire.MTUOverhead, host.Port().Name)
		return fail(err)
	}
	if len(links) > 1 && o.Tap != nil {
		o.Tap = &sharedTap{tap: o.Tap}
	}
	d := newDevice(host, program, o)
	for _, link := range links {
		d.addQueue(link, host.Port().MAC)
	}
	if _, err := d.followAddresses(); err != nil {
		return fail(err)
	}
	if w, ok := host.(PortWatcher); ok {
		d.watching.Go(func() { d.followPort(w) })
	}
	if r, ok := host.(Router); ok {
		d.paths = pathtable.New[*QP]()
		d.watching.Go(func() { d.followRouter(r) })
	}
	if !o.Direct {
		for _, q := range d.queues {
			d.drivers = append(d.drivers, startDriver(q, &o))
		}
	}
	return d, nil
}

// newDevice makes a device that has no queue yet, of options with their defaults.
func newDevice(host Host, program *bpf.Program, o Options) *Device {
	d := &Device{
		host: host, keys: mem.NewKeys(o.Rand), qps: newQPTable(o.Rand),
		srqs: roce.NewNumberTable[SRQ](1, numbers24, o.Rand), options: o,
		direct: o.Direct, maxInlineRecv: maxInlineRecv(), program: program,
		failed: make(chan struct{}),
	}
	if o.Windows2A {
		d.keys.SetWindows2A()
	}
	d.async.init()
	d.services.init(d)
	d.channels.open = map[*CompChannel]struct{}{}
	return d
}

// Close destroys everything and gives the link back. It is idempotent.
func (d *Device) Close() error {
	d.closeOnce.Do(func() {
		for _, driver := range d.drivers {
			driver.close()
		}
		d.services.halt()
		// The links first: nothing raises an event any more then.
		d.closeErr = errors.Join(d.closeLinks(), d.closeChannels())
		d.services.halt() // one that began meanwhile
		d.services.fail(d.failure())
		d.watching.Wait()
		d.paging.pager.Close()
		d.closeErr = errors.Join(d.closeErr, d.async.close())
	})
	return d.closeErr
}

// closeLinks ends all QPs and gives the links and what is around them back.
func (d *Device) closeLinks() error {
	d.lockQueues()
	defer d.unlockQueues()
	// What the peer is owed goes out before the connections do.
	for range 2 {
		for _, q := range d.queues {
			q.progress()
		}
	}
	var errs []error
	for _, q := range d.queues {
		q.fail(errClosed)
	}
	if d.program != nil {
		errs = append(errs, d.program.Close())
	}
	for _, q := range d.queues {
		errs = append(errs, q.close())
	}
	return errors.Join(append(errs, d.host.Close())...)
}

// addChannel counts a completion channel in.
func (d *Device) addChannel(c *CompChannel) error {
	d.channels.Lock()
	defer d.channels.Unlock()
	if d.channels.open == nil {
		return errClosed
	}
	d.channels.open[c] = struct{}{}
	return nil
}

// removeChannel counts a completion channel out.
func (d *Device) removeChannel(c *CompChannel) {
	d.channels.Lock()
	defer d.channels.Unlock()
	delete(d.channels.open, c)
}

// closeChannels closes all completion channels, with CQs or without.
func (d *Device) closeChannels() error {
	d.channels.Lock()
	open := d.channels.open
	d.channels.open = nil
	d.channels.Unlock()
	var errs []error
	for c := range open {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// fail ends the device because one of its queues has failed, the progress lock of which
// the caller holds. The other queues fail with it.
func (d *Device) fail(failing *queue, err error) {
	if !d.cause.CompareAndSwap(nil, &err) {
		return
	}
	close(d.failed)
	if errors.Is(err, errClosed) {
		return
	}
	d.raise(AsyncEvent{Type: roce.EventDeviceFatal})
	for _, q := range d.queues {
		if q != failing {
			// Not here: the holder of a progress lock may not take another.
			d.watching.Go(func() {
				q.lock()
				defer q.mu.Unlock()
				q.fail(err)
			})
		}
	}
}

// failure returns why the device is of no more use, nil while it is. It takes no lock.
func (d *Device) failure() error {
	if err := d.cause.Load(); err != nil {
		return *err
	}
	return nil
}

// followPort raises the events of the port until the host is closed.
func (d *Device) followPort(w PortWatcher) {
	for up := range w.PortStates() {
		if up {
			d.raise(AsyncEvent{Type: roce.EventPortActive})
		} else {
			d.raise(AsyncEvent{Type: roce.EventPortErr})
		}
	}
}

// Done returns a channel that is closed when the device is closed or of no more
// use; Err tells why.
func (d *Device) Done() <-chan struct{} { return d.failed }

// Direct reports whether the device was opened with Options.Direct.
func (d *Device) Direct() bool { return d.direct }

// Failed reports whether the device is of no more use, closed or not. It never waits.
func (d *Device) Failed() bool { return d.failure() != nil }

// Err says why the device is of no more use, nil while it is. It takes the progress
// lock: what the device stored before is seen by the caller, and what the caller wrote
// by the device, in the sense of the Go memory model, which knows nothing of packets.
// Who only spins asks Failed.
func (d *Device) Err() error {
	for _, q := range d.queues {
		// CQ.Wait asks, and comes back after each time that it was woken.
		q.lockToDrive()
		//lint:ignore SA2001 passing through is what makes stores seen
		q.mu.Unlock()
	}
	return d.failure()
}

// Name returns the interface's name.
func (d *Device) Name() string { return d.host.Port().Name }

// Port says what the device runs on.
func (d *Device) Port() Port { return d.host.Port() }

// Link says what link the device runs on, the first if there are several.
func (d *Device) Link() xsk.Info { return d.queues[0].link.Info() }

// AttachMode says how the XDP program is attached, "" where there is none.
func (d *Device) AttachMode() string {
	if d.program == nil {
		return ""
	}
	return d.program.Mode().String()
}

// GIDs lists the GIDs of type RoCE v2, each at its index; the zero GID is an empty
// one. Index 0 is link-local.
func (d *Device) GIDs() []wire.GID { return d.gids.GIDs() }

// GIDTable lists the GID table without its empty entries (ibv_query_gid_table). It
// changes with the addresses of the interface, see roce.EventGIDChange.
func (d *Device) GIDTable() []GIDEntry { return d.gids.Entries() }

// QueryGID returns the entry of the GID table with this index (ibv_query_gid_ex).
// The error is roce.ErrInvalid when it is empty.
func (d *Device) QueryGID(index int) (GIDEntry, error) { return d.gids.At(index) }

// ActiveMTU returns the largest path MTU of the interface as it is.
func (d *Device) ActiveMTU() wire.MTU {
	return wire.ActiveMTU(min(d.host.Port().MTU, d.Link().MaxFrame-ethernetHeader-vlanTag))
}

// Lengths before the network header, in bytes.
const (
	ethernetHeader = 14
	vlanTag        = 4
)

// RandomPSN returns an unpredictable first PSN for a connection.
func (d *Device) RandomPSN() wire.PSN { return wire.PSN(d.options.Rand.Uint64() & 0xffffff) }

// Endpoint makes what the peer must be told of a QP that it is to connect to: its
// number, a random first PSN, the GID with this index in GIDTable, and the
// extensions of QPInit.
func (d *Device) Endpoint(qp *QP, gidIndex int) (Endpoint, error) {
	e, err := d.gids.At(gidIndex)
	if err != nil {
		return Endpoint{}, err
	}
	return Endpoint{
		QPN: qp.QPN(), PSN: d.RandomPSN(), GID: e.GID, Extensions: qp.extensions,
	}, nil
}
