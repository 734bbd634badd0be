package sim

// Counts are what the network did so far. At any time
//
//	Sent + Duplicated + Staled = Delivered + Lost() + frames still under way
type Counts struct {
	Sent, Delivered uint64
	Marked          uint64 // by a switch, for congestion

	// Copies that the faults made.
	Duplicated, Staled uint64

	// Frames that the faults lost.
	Dropped    uint64 // by chance
	BurstLost  uint64 // by chance, in a burst
	Blocked    uint64 // in a partition
	ClogLost   uint64 // in a clog
	TooLong    uint64 // longer than the MTU of the direction
	TailLost   uint64 // the queue for the rate was full
	Scripted   uint64 // by a rule
	Unknown    uint64 // no port has the MAC address
	Overflow   uint64 // a port's queue was full
	Unreceived uint64 // the port was closed before it took them

	// Frames that arrived otherwise than they were sent.
	Reordered, Held   uint64 // behind others, by time and by number
	Clogged           uint64 // late, after a clog
	Corrupted         uint64
	Truncated         uint64
	Extended          uint64
	ScriptedCorrupted uint64 // by a rule
}

// A Kind is something that happens to a frame.
type Kind uint8

// The kinds, in the order of Counts.
const (
	Sent Kind = iota
	Delivered
	Duplicated
	Staled
	Dropped
	BurstLost
	Blocked
	ClogLost
	TooLong
	TailLost
	Scripted
	Unknown
	Overflow
	Unreceived
	Reordered
	Held
	Clogged
	Corrupted
	Truncated
	Extended
	ScriptedCorrupted
	Marked

	NumKinds // how many there are, not one of them
)

// nature is what a kind does to a frame.
type nature uint8

const (
	natureNone   nature = iota // it is on its way as it should
	natureCopy                 // there is one more of it
	natureLoss                 // it is gone
	natureChange               // it arrives late or damaged
)

var kinds = [NumKinds]struct {
	name   string
	nature nature
	count  func(*Counts) *uint64
}{
	Sent:       {"sent", natureNone, func(c *Counts) *uint64 { return &c.Sent }},
	Delivered:  {"delivered", natureNone, func(c *Counts) *uint64 { return &c.Delivered }},
	Marked:     {"marked", natureNone, func(c *Counts) *uint64 { return &c.Marked }},
	Duplicated: {"duplicated", natureCopy, func(c *Counts) *uint64 { return &c.Duplicated }},
	Staled:     {"staled", natureCopy, func(c *Counts) *uint64 { return &c.Staled }},
	Dropped:    {"dropped", natureLoss, func(c *Counts) *uint64 { return &c.Dropped }},
	BurstLost:  {"burst_lost", natureLoss, func(c *Counts) *uint64 { return &c.BurstLost }},
	Blocked:    {"blocked", natureLoss, func(c *Counts) *uint64 { return &c.Blocked }},
	ClogLost:   {"clog_lost", natureLoss, func(c *Counts) *uint64 { return &c.ClogLost }},
	TooLong:    {"too_long", natureLoss, func(c *Counts) *uint64 { return &c.TooLong }},
	TailLost:   {"tail_lost", natureLoss, func(c *Counts) *uint64 { return &c.TailLost }},
	Scripted:   {"scripted", natureLoss, func(c *Counts) *uint64 { return &c.Scripted }},
	Unknown:    {"unknown", natureLoss, func(c *Counts) *uint64 { return &c.Unknown }},
	Overflow:   {"overflow", natureLoss, func(c *Counts) *uint64 { return &c.Overflow }},
	Unreceived: {"unreceived", natureLoss, func(c *Counts) *uint64 { return &c.Unreceived }},
	Reordered:  {"reordered", natureChange, func(c *Counts) *uint64 { return &c.Reordered }},
	Held:       {"held", natureChange, func(c *Counts) *uint64 { return &c.Held }},
	Clogged:    {"clogged", natureChange, func(c *Counts) *uint64 { return &c.Clogged }},
	Corrupted:  {"corrupted", natureChange, func(c *Counts) *uint64 { return &c.Corrupted }},
	Truncated:  {"truncated", natureChange, func(c *Counts) *uint64 { return &c.Truncated }},
	Extended:   {"extended", natureChange, func(c *Counts) *uint64 { return &c.Extended }},
	ScriptedCorrupted: {
		"scripted_corrupted", natureChange,
		func(c *Counts) *uint64 { return &c.ScriptedCorrupted },
	},
}

// String returns the kind's name, in snake_case and stable.
func (k Kind) String() string {
	if k >= NumKinds {
		return "unknown kind"
	}
	return kinds[k].name
}

// Fault reports whether the kind is a fault and not the normal course of things.
func (k Kind) Fault() bool { return k < NumKinds && kinds[k].nature != natureNone }

// Loss reports whether the frame is gone.
func (k Kind) Loss() bool { return k < NumKinds && kinds[k].nature == natureLoss }

// Of returns the count of a kind.
func (c *Counts) Of(k Kind) uint64 { return *kinds[k].count(c) }

// Add adds every count of o.
func (c *Counts) Add(o Counts) {
	for k := range NumKinds {
		*kinds[k].count(c) += o.Of(k)
	}
}

// Lost counts the frames that the network did not deliver and will not.
func (c *Counts) Lost() uint64 {
	var n uint64
	for k := range NumKinds {
		if k.Loss() {
			n += c.Of(k)
		}
	}
	return n
}
