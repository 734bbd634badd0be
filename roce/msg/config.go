package msg

import (
	"fmt"
	"slices"

	"xroce/roce/clock"
	"xroce/roce/internal/handle"
)

// The ranges in which sizes are without Config.AnySize: those of the small and of the
// large buffer that this kind of provisioning was described for.
const (
	MinEagerLimit = 100
	MaxEagerLimit = 2000
	MinLarge      = 1000
	MaxLarge      = 200_000
)

// Limits that hold always.
const (
	MaxSlots      = 1 << 12 // slots of a ring
	MaxSlotSize   = 1 << 30 // bytes of a slot
	MaxClasses    = 15      // sizes of large slots
	MaxRendezvous = 1 << 10 // rendezvous of a connection and direction at once
)

// A Policy says when the first message that is too long for a slot has a large one made.
type Policy uint8

// The policies.
const (
	EnlargeFirst Policy = iota // at once
	EnlargeAfter               // after Config.After messages of the size
	EnlargeNever
	EnlargeAuto // when what was measured says that it pays
	policyCount
)

// A Mode says what a large slot does to the small ones.
type Mode uint8

// The modes of provisioning.
const (
	Keep      Mode = iota // they stay
	Replace               // they are revoked and freed, once what was in them was taken
	LocalOnly             // the sender alone makes a larger buffer: the peer's slots suffice
	modeCount
)

// Config is how an endpoint works. Zero values get the defaults.
type Config struct {
	// Rand draws session tokens and what else must not be guessed; required.
	Rand handle.Rand

	// EagerLimit is the longest message, and the longest piece of one, that goes into a
	// small slot of ours: 100 to 2000 bytes, default 1024.
	EagerLimit int
	// Slots is how many small slots a peer gets, a power of 2, default 32. Each costs
	// EagerLimit + 40 bytes here and as much there.
	Slots int
	// Large are the sizes of large slots, ascending, each from 1000 to 200000 bytes and
	// longer than EagerLimit. Default 8192, 32768, 65536 and 196608. Empty but not nil: none.
	Large []int
	// LargeSlots is how many large slots a peer gets, default 4.
	LargeSlots int
	// StreamSlot is how many bytes a large slot of a stream has, default 32 KiB; StreamSlots
	// is how many such slots a peer gets that writes more than fits a small one, default 8.
	StreamSlot, StreamSlots int
	// AnySize lets sizes leave the ranges above.
	AnySize bool

	Protocol Protocol // forced on each message, default Auto
	Policy   Policy
	After    int // of EnlargeAfter
	Mode     Mode

	// Rendezvous is how many messages of a peer may have announced themselves and not be
	// complete, in each direction, default 64.
	Rendezvous int
	// Unexpected is how many bytes of messages that nobody has asked for are kept for
	// each peer; more stay in its slots, default 1 MiB. Of all connections together that are over
	// it is 64 times as much, and at least 4 MiB: then the oldest are dropped.
	Unexpected int
	// Registered is how many bytes of slots there may be, those that peers have and our
	// copies of theirs together, default 1 GiB. Beyond it there are no large slots, and no
	// peer may announce more slots than are wanted of it; the first small ones there are always.
	Registered int64
	// PullWindow is how many bytes may be asked for by READ at once, of all peers
	// together, default 4 MiB, and 4 KiB beyond that of each; no peer has more of it than is
	// left for others. Chunk is how many with one request, default 256 KiB.
	PullWindow, Chunk int

	// Patience is how long an answer to a request for large slots may take before the
	// message goes without, default 1 s.
	Patience clock.Time
	// Crowded is how long a small message waits for a slot before it announces itself
	// instead, default 10 ms.
	Crowded clock.Time
	// Keepalive is after which silence of a peer it is asked whether it is there, 0 for
	// never.
	Keepalive clock.Time
	// Stall is how long a message that is being received may bring no byte before its sender
	// is given up, default 30 s. Of one that the sender writes by itself, which tells nothing
	// until its end, it is a second more for each MiB.
	Stall clock.Time
	// Rails is how many adapters the owner has memory registered with, for connections of as
	// many rails, 1 to 6, default 1.
	Rails int
	// Grace is how long a connection of several rails that has lost the last one waits for
	// another one, default 0: it is over at once.
	Grace clock.Time
	// Idle is how long large slots stay that nobody uses, default 10 s.
	Idle clock.Time
}

// unexpectedBytes is the default of Config.Unexpected.
const unexpectedBytes = 1 << 20

// setDefaults checks the configuration and fills in what is zero. The error is ErrInvalid.
func (c *Config) setDefaults() error {
	if c.Rand == nil {
		return fmt.Errorf("%w: an endpoint needs a source of random numbers", ErrInvalid)
	}
	setInt(&c.EagerLimit, 1024)
	setInt(&c.Slots, 32)
	setInt(&c.LargeSlots, 4)
	setInt(&c.StreamSlot, 32<<10)
	setInt(&c.StreamSlots, 8)
	setInt(&c.Rendezvous, 64)
	setInt(&c.Unexpected, unexpectedBytes)
	setInt(&c.PullWindow, 4<<20)
	setInt(&c.Chunk, 256<<10)
	setInt(&c.Rails, 1)
	if c.Registered == 0 {
		c.Registered = 1 << 30
	}
	for _, d := range []struct {
		field *clock.Time
		value clock.Time
	}{
		{&c.Patience, clock.Second},
		{&c.Crowded, 10 * clock.Millisecond},
		{&c.Stall, 30 * clock.Second},
		{&c.Idle, 10 * clock.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
		if *d.field < 0 || c.Grace < 0 {
			return fmt.Errorf("%w: a time is negative", ErrInvalid)
		}
	}
	if c.Large == nil {
		c.Large = c.ladder()
	}
	return c.check()
}

// ladder returns the usual sizes of large slots: those that are longer than EagerLimit.
func (c *Config) ladder() []int {
	usual := []int{8 << 10, 32 << 10, 64 << 10, 192 << 10}
	return slices.DeleteFunc(usual, func(size int) bool { return size <= c.EagerLimit })
}

func setInt(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

func (c *Config) check() error {
	low, high, lowLarge, highLarge := MinEagerLimit, MaxEagerLimit, MinLarge, MaxLarge
	if c.AnySize {
		low, high, lowLarge, highLarge = 1, MaxSlotSize, 1, MaxSlotSize
	}
	for _, r := range []struct {
		name             string
		value, low, high int
	}{
		{"eager limit", c.EagerLimit, low, high},
		{"number of slots", c.Slots, 2, MaxSlots},
		{"number of large slots", c.LargeSlots, 1, MaxSlots},
		{"bytes of a large slot of a stream", c.StreamSlot, 1, MaxSlotSize},
		{"number of large slots of a stream", c.StreamSlots, 2, MaxSlots},
		{"number of large sizes", len(c.Large), 0, MaxClasses},
		{"number of rendezvous", c.Rendezvous, 1, MaxRendezvous},
		{"limit of unexpected bytes", c.Unexpected, 0, MaxSlotSize},
		{"pull window", c.PullWindow, 1, MaxSlotSize},
		{"chunk", c.Chunk, 1, c.PullWindow},
		{"number of messages before a large slot", c.After, 0, MaxSlotSize},
		{"number of rails", c.Rails, 1, MaxRails},
		{"protocol", int(c.Protocol), 0, int(protocolCount) - 1},
		{"policy", int(c.Policy), 0, int(policyCount) - 1},
		{"mode", int(c.Mode), 0, int(modeCount) - 1},
	} {
		if r.value < r.low || r.value > r.high {
			return fmt.Errorf("%w: %s %d: want %d to %d", ErrInvalid, r.name, r.value, r.low,
				r.high)
		}
	}
	if n := uint64(c.Slots) * SlotLen(uint32(c.EagerLimit)); n > maxAdvert {
		return fmt.Errorf("%w: small slots of %d bytes together: at most %d", ErrInvalid, n,
			maxAdvert)
	}
	last := c.EagerLimit
	for _, size := range c.Large {
		if size < lowLarge || size > highLarge || size <= last {
			return fmt.Errorf("%w: large slots of %d bytes: want %d to %d, and more than %d",
				ErrInvalid, size, lowLarge, highLarge, last)
		}
		last = size
	}
	return nil
}
