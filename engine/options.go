package engine

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"xroce/bpf"
	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/cc"
	"xroce/xsk"
)

// Backends that Open knows.
const (
	BackendXSK    = "xsk"    // our own AF_XDP rings
	BackendAsavie = "asavie" // github.com/asavie/xdp, for comparison; see xsk/asavie
)

// defaultSpin is how long an idle queue spins before it sleeps: longer than a
// round trip between two hosts, so that a conversation never pays a wake-up.
const defaultSpin = 50 * time.Microsecond

// Options say how to open a device. The zero value is a good choice.
type Options struct {
	Backend string        // BackendXSK or BackendAsavie, "" for the first
	Attach  bpf.Mode      // how to attach the XDP program; Auto tries native, then generic
	Mode    xsk.Mode      // zero-copy, copy, or the best there is
	Busy    bool          // the background loop never sleeps, nor does who waits
	Direct  bool          // no background loop: polling makes progress
	Spin    time.Duration // how long who drives spins before he sleeps, 0 for the default
	// BusyPoll has the sockets prefer busy polling (SO_PREFER_BUSY_POLL), for so long at a time,
	// in rounds of BusyPollBudget frames, 0 for 64: the driver of the card then works in the
	// calls of whoever drives the device, not in interrupts on a CPU of its own. It takes effect
	// where the interface defers its interrupts (napi_defer_hard_irqs, gro_flush_timeout); a log
	// line says when it does not. 0 is off.
	BusyPoll       time.Duration
	BusyPollBudget int
	// Memory bounds how many bytes the frames and the rings of the device take, 0 for no bound:
	// 56 MiB for one queue. 8 MiB serve a device with little traffic, of many. HugePages takes
	// them from the huge pages that the system has reserved, or fails.
	Memory    int64
	HugePages bool
	// Queues are the receive queues of the interface that the device takes, nil for all. What
	// comes on others goes to the kernel, which does not know the connection, so to leave some
	// out is refused (ErrQueuesLeftOut) unless Partial says that the card puts no packets of
	// ours there.
	Queues  []int
	Partial bool
	// Drivers is how many background loops share the queues, 0 for one. A QP lives with one of
	// them. What comes to another is handed over, and costs more.
	Drivers int
	// NoRebalance has QPs stay with the driver that they began with. By default one moves to
	// the driver whose queues most of its packets come to.
	NoRebalance bool
	// CPUs are where the background loops run, one after the other and again from the first,
	// each for itself; counted from 0, nil for anywhere.
	CPUs []int
	// Steer makes flow rules of the card (ethtool -N) that bring RoCE packets to the first of
	// the queues, and removes them when the device is closed. Then others may be left out. A card
	// that has no such rules is an error.
	Steer bool
	// Reattach attaches the XDP program again when somebody has detached it. Without it that is
	// an event and a line in the log, and nothing is received any more.
	Reattach bool
	// RawPackets allows QPs of type RAW_PACKET, which can send any frame.
	RawPackets bool
	// CountQPs has each QP count by itself from the beginning: see Device.CountQPs.
	CountQPs bool
	// RoCEv1 takes RoCE v1 packets that are addressed to the interface from the beginning.
	// Without it they are left to the kernel until a GID of that type is used: by a QP that
	// is connected with it, or an address handle. It is for those who are to hear such
	// datagrams, or requests of connections, before they have sent any.
	RoCEv1 bool
	// PKeys is the P_Key table of the port: the partitions that QPs can be in, each by its
	// index (roce.Attr.PKeyIndex). The bit roce.PKeyFull is that of a full member. Nil is the
	// default partition alone, 0xffff. Peers must be told the same: nobody hands them out on
	// Ethernet, and Soft-RoCE knows the default one only.
	PKeys roce.PKeyTable
	// Windows2A makes type 2 memory windows those of type 2A, which are compared with
	// the queue pair alone; by default they are of type 2B. A device has one of them.
	Windows2A bool
	// Congestion has connected QPs answer marks of switches (ECN) with CNPs, and gives them
	// the congestion control that it names, with the parameters that it has; zeros are the
	// published values. With nil there is none: nothing is marked, CNPs are dropped.
	Congestion *cc.Config

	Tap    Tap          // sees every RoCE frame, may be nil
	Logger *slog.Logger // nil for none
	Clock  Clock        // nil for the machine's
	Rand   roce.Rand    // source of keys, QPNs and PSNs; nil for crypto/rand

	// countQueues is host.ReceiveQueues; tests have drivers that add some.
	countQueues func(iface string) (int, error)
}

func (o *Options) check() error {
	switch {
	case o.Backend != "" && o.Backend != BackendXSK && o.Backend != BackendAsavie:
		return fmt.Errorf("engine: no backend %q, there are %s and %s",
			o.Backend, BackendXSK, BackendAsavie)
	case o.Busy && o.Direct || o.Drivers > 1 && o.Direct:
		return fmt.Errorf("engine: Busy and Drivers are for background loops, " +
			"which Direct turns off")
	case o.Drivers < 0:
		return fmt.Errorf("engine: %d drivers", o.Drivers)
	case o.Spin < 0 || o.BusyPoll < 0 || o.BusyPollBudget < 0:
		return fmt.Errorf("engine: negative spin or busy-poll time, or budget")
	case o.BusyPoll > 0 && o.BusyPoll < time.Microsecond:
		return fmt.Errorf("engine: busy polling takes a microsecond at least, not %v", o.BusyPoll)
	case o.Memory < 0:
		return fmt.Errorf("engine: %d bytes of memory", o.Memory)
	case o.Backend == BackendAsavie && (o.BusyPoll > 0 || o.Memory > 0 || o.HugePages):
		return fmt.Errorf("engine: backend %s has no busy polling, and frames as it likes",
			BackendAsavie)
	}
	for _, cpu := range o.CPUs {
		if cpu < 0 {
			return fmt.Errorf("engine: CPU %d is negative", cpu)
		}
	}
	if o.PKeys != nil {
		if err := o.PKeys.Check(); err != nil {
			return err
		}
	}
	if o.Congestion != nil {
		c := o.Congestion.Defaults()
		return c.Check()
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.Backend == "" {
		o.Backend = BackendXSK
	}
	if o.PKeys = slices.Clone(o.PKeys); o.PKeys == nil {
		o.PKeys = roce.DefaultPKeys()
	}
	if o.Congestion != nil {
		c := o.Congestion.Defaults() // the caller's stays his
		o.Congestion = &c
	}
	if o.Drivers == 0 {
		o.Drivers = 1
	}
	if o.Spin == 0 {
		o.Spin = defaultSpin
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = NewSystemClock()
	}
	if o.Rand == nil {
		o.Rand = newCryptoRand()
	}
}

// A Tap sees frames as they pass, in the order in which they do. It is called
// with a progress lock held: it must be quick, and copy what it keeps. One call is
// over before the next begins, also those of several queues. One that writes to what may
// block is a LossyTap.
type Tap interface {
	Frame(dir capture.Direction, head, tail []byte)
}

// A LossyTap is a Tap that may miss frames rather than wait, such as a capture whose reader
// is slow. Device.Counters has their number as tap_dropped.
type LossyTap interface {
	Tap
	// Dropped returns how many frames are missing. It is safe for concurrent use.
	Dropped() uint64
}

// A sharedTap is a tap on several queues.
type sharedTap struct {
	mu  sync.Mutex
	tap Tap
}

// Frame implements Tap.
func (t *sharedTap) Frame(dir capture.Direction, head, tail []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tap.Frame(dir, head, tail)
}
