package engine

import (
	"fmt"
	"io"
	"slices"
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
	rules    io.Closer              // flow rules of the card, nil for none
	options  Options
	lossyTap LossyTap // the tap, if it is one; else nil
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
	syncs    syncs
	async    asyncEvents
	services services

	// channels are the open completion channels, nil after Close.
	channels struct {
		sync.Mutex
		open map[*CompChannel]struct{}
	}
	watching sync.WaitGroup // the goroutines that follow the host
	// memberships is held while the membership in multicast groups changes, here
	// and outside; see locks.go for the order of locks.
	memberships sync.Mutex
	// life is held while objects are made and closed, and while what uses what changes.
	life       sync.Mutex
	groups     cowMap[wire.GID, []*QP] // members of multicast groups
	etherTypes cowMap[uint16, etherTypeHandler]
	steering   steering
	native     nativeStats
	moves      moves
	resets     resetCounts
	mtu        int // of the interface, as it was seen last; of the goroutine that follows it

	closeOnce sync.Once
	closeErr  error
}

// addChannel counts a completion channel in.
func (d *Device) addChannel(c *CompChannel) error {
	d.channels.Lock()
	defer d.channels.Unlock()
	if d.channels.open == nil {
		return ErrClosed
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

// failure returns why the device is of no more use, nil while it is. It takes no lock.
func (d *Device) failure() error {
	if err := d.cause.Load(); err != nil {
		return *err
	}
	return nil
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
// In direct mode it wakes who sleeps with that lock. Who only spins asks Failed.
func (d *Device) Err() error {
	for _, q := range d.queues {
		q.lock()
		// Passing through is what makes stores seen.
		q.mu.Unlock()
	}
	return d.failure()
}

// errToDrive is Err for CQ.Wait, which comes back after each time that it was woken: two
// that wait would wake each other for ever.
func (d *Device) errToDrive() error {
	if d.direct {
		return d.failure() // who drives may sleep with the lock
	}
	for _, q := range d.queues {
		q.pass()
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

// FindGID returns the entry of type RoCE v2 that has a GID, on the interface of a VLAN or,
// for 0, on the port itself.
func (d *Device) FindGID(gid wire.GID, vlan wire.VLAN) (GIDEntry, bool) {
	return d.gids.Get(gid, vlan)
}

// QueryGID returns the entry of the GID table with this index (ibv_query_gid_ex).
// The error is roce.ErrInvalid when it is empty.
func (d *Device) QueryGID(index int) (GIDEntry, error) { return d.gids.At(index) }

// PKeys returns the P_Key table of the port (ports/1/pkeys of sysfs), which does not change.
func (d *Device) PKeys() roce.PKeyTable { return slices.Clone(d.options.PKeys) }

// QueryPKey returns the P_Key at an index of the table (ibv_query_pkey). The error is
// roce.ErrInvalid when there is none.
func (d *Device) QueryPKey(index int) (uint16, error) {
	if index < 0 || index >= len(d.options.PKeys) {
		return 0, fmt.Errorf("%w: P_Key index %d, the table has %d", roce.ErrInvalid, index,
			len(d.options.PKeys))
	}
	return d.options.PKeys[index], nil
}

// PKeyIndex returns the index of the entry that is in the partition of a P_Key, that of a full
// member where there are both (ibv_get_pkey_index). The error is roce.ErrInvalid when the port
// is not in the partition, or is a limited member and pkey is that of another.
func (d *Device) PKeyIndex(pkey uint16) (uint16, error) {
	index, ok := d.options.PKeys.Find(pkey)
	if !ok {
		return 0, fmt.Errorf("%w: the port is in no partition that P_Key 0x%04x may talk to",
			roce.ErrInvalid, pkey)
	}
	return index, nil
}

// ActiveMTU returns the largest path MTU of the interface as it is.
func (d *Device) ActiveMTU() wire.MTU { return d.queues[0].activeMTU() }

// PathBytes returns the largest payload of a packet that the interface has room for, as it is: see
// roce.Attr.PathBytes.
func (d *Device) PathBytes() int {
	return d.queues[0].port().PathBytes()
}

// ethernetHeader is its length in bytes without tags.
const ethernetHeader = 14

// RandomPSN returns an unpredictable first PSN for a connection.
func (d *Device) RandomPSN() wire.PSN { return wire.PSN(d.options.Rand.Uint64() & 0xffffff) }
