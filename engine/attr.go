package engine

import (
	"math"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// DeviceAttr is what a device can do at most (struct ibv_device_attr_ex), with the
// names of verbs. A number that is only bounded by memory is the largest that verbs
// can say, math.MaxInt32.
type DeviceAttr struct {
	MaxMRSize   uint64 // bytes of a region
	PageSizeCap uint64 // page sizes of regions, a bit each
	MaxQP       int
	MaxQPWR     int      // work requests of a send or receive queue
	Caps        CapFlags // what else it has
	MaxSGE      int      // pieces of a work request
	MaxSGERd    int      // pieces of a READ
	MaxCQ       int
	MaxCQE      int // completions of a CQ
	MaxMR       int // keys of regions, windows and layouts together
	MaxPD       int

	MaxQPRdAtom     int // READs, atomics and their like that a QP answers at once
	MaxResRdAtom    int // the same of all QPs
	MaxQPInitRdAtom int // the same that a QP begins
	AtomicCap       AtomicCap

	MaxEntries   int // pieces or blocks of a layout
	MaxDims      int // dimensions of its pattern
	MaxDepth     int // layouts of layouts
	MaxMW        int // memory windows; they share the numbers with regions
	MaxRawEthQP  int // QPs of type RAW_PACKET; 0 when Options does not allow them
	MaxMcastGrp  int // multicast groups, as far as the interface's host lets it join
	MaxMcastQP   int // QPs in a group
	MaxMcastSum  int // QPs in all groups
	MaxAH        int
	MaxSRQ       int
	MaxSRQWR     int // receives of an SRQ
	MaxSRQSGE    int // pieces of one
	MaxPkeys     int
	CAAckDelay   uint8 // local_ca_ack_delay: 4.096 µs * 2^n
	PhysPorts    int
	MaxInline    int // bytes of inline data of a send
	MaxInlineRcv int // bytes that ride in a completion, 0 when turned off

	ODP          ODPCaps // of ON_DEMAND regions
	CQModeration CQModerationCaps
	Pacing       PacingCaps

	// TimestampMask are the bits of Completion.Time that count (completion_timestamp_mask),
	// and CoreClock is how fast they do, in kHz (hca_core_clock): nanoseconds.
	TimestampMask uint64
	CoreClock     uint64
}

// AtomicCap says with what atomics of peers are atomic, with the values of enum
// ibv_atomic_cap.
type AtomicCap uint8

// AtomicGlob is atomic with the CPUs of this machine, too.
const AtomicGlob AtomicCap = 2

const (
	// maxQP is how many QP numbers there are: 16 are left to services that have
	// fixed ones, and the last is that of multicast.
	maxQP = wire.MulticastQP - firstQPN
	// firstQPN is the first number that applications get: 0 and 1 are those of
	// management, and rxe gives none below 16 either.
	firstQPN = 16
	// numbers24 is how many numbers of 24 bits there are without 0.
	numbers24 = 1<<24 - 1
	unbounded = math.MaxInt32
)

// Query returns what the device can do (ibv_query_device_ex).
func (d *Device) Query() DeviceAttr {
	a := Attributes(d.options)
	a.MaxInlineRcv = d.maxInlineRecv
	if _, ok := d.host.(PortWatcher); !ok {
		a.Caps &^= CapPortActiveEvent
	}
	return a
}

// Attributes returns what a device opened with these options can do on an interface of the
// kernel's.
func Attributes(o Options) DeviceAttr {
	a := DeviceAttr{
		MaxMRSize: math.MaxInt64, PageSizeCap: ^uint64(1<<12 - 1),
		MaxQP: maxQP, MaxQPWR: roce.MaxWR, Caps: capsOfAll, MaxSGE: roce.MaxSGE,
		MaxSGERd: roce.MaxSGE, MaxCQ: unbounded, MaxCQE: roce.MaxCQDepth, MaxMR: numbers24,
		MaxMW:      numbers24,
		MaxEntries: mem.MaxEntries, MaxDims: mem.MaxDims, MaxDepth: mem.MaxDepth,
		MaxPD: unbounded, MaxQPRdAtom: roce.MaxRdAtomic, MaxResRdAtom: maxQP * roce.MaxRdAtomic,
		MaxQPInitRdAtom: roce.MaxRdAtomic, AtomicCap: AtomicGlob,
		MaxMcastGrp: unbounded, MaxMcastQP: maxQP, MaxMcastSum: unbounded, MaxAH: unbounded,
		MaxSRQ: numbers24, MaxSRQWR: roce.MaxWR, MaxSRQSGE: roce.MaxSGE,
		MaxPkeys:   max(len(o.PKeys), 1),
		CAAckDelay: 15, PhysPorts: 1,
		ODP: odpCaps(), CQModeration: moderationCaps, Pacing: pacingCaps,
		TimestampMask: math.MaxInt64, CoreClock: 1e6,
		MaxInline: roce.MaxInline, MaxInlineRcv: maxInlineRecv(),
	}
	if o.Windows2A {
		a.Caps |= CapMWType2A
	} else {
		a.Caps |= CapMWType2B
	}
	if o.RawPackets {
		a.MaxRawEthQP = maxQP
	} else {
		a.Pacing.Types &^= 1 << roce.TypeRawPacket
	}
	return a
}
