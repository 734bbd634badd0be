package perf

import (
	"os"
	"strconv"
	"time"

	"xroce/roce"
	"xroce/roce/wire"
)

// Config says what to run. Both ends must be told the same of all but Dial,
// GIDIndex, CQMod, PostList, RecvPostList, Inline, Timeout, the marks of packets,
// the rate and how to report.
type Config struct {
	Test     Test
	Dial     bool // this end made the connection: the client
	Reversed bool // the server sends, the client receives

	Managed bool // rdma_cm connects and tells the ends what they must know: RC only
	// ManagedExchange has rdma_cm tell the ends what they must know, and not connect.
	ManagedExchange bool

	Type   roce.QPType // RC, UC, UD or RAW_PACKET
	QPs    int
	Size   int  // bytes of a message
	All    bool // sizes 2 to 8 MiB, the powers of two; UD: to the path MTU
	Both   bool // both ends send at the same time
	Atomic AtomicType
	UseSRQ bool // receives come from one shared queue
	// Group, of datagrams, is what they are sent to and what the receiver is a member of,
	// zero for none.
	Group wire.GID

	// When it ends: after Iters messages of each QP or, when Duration is not 0,
	// after that time, of which Margin at both ends does not count. Infinite
	// reports each Duration and goes on until it is interrupted.
	Iters            int
	Duration, Margin time.Duration
	Infinite         bool

	TxDepth, RxDepth       int
	CQMod                  int // sends for one completion
	PostList, RecvPostList int // work requests posted in a row
	Inline                 int // longest message that is sent inline
	OutReads               int // READs and atomics outstanding, 0 for the most there is
	WarmUp                 bool
	Events                 bool          // sleep until completions come
	Gap                    time.Duration // before each message of a latency test

	// Where the memory is: of its own, in reserved huge pages, or a file at an offset,
	// whose content is lost. ODP registers it for paging on demand.
	ODP, HugePages bool
	File           *os.File // nil for none; it is only used, not closed
	FileOffset     int64
	// InlineRecv bounds what a completion may carry of what was received, in bytes: 0 for
	// what there is, engine.NoInlineRecv for nothing.
	InlineRecv int

	GIDIndex  int // AutoGID to have one chosen
	IPv6      bool
	MTU       wire.MTU // 0 for that of the interface
	Timeout   uint8    // local ACK timeout, 4.096 us * 2^Timeout
	TClass    uint8
	FlowLabel uint32
	Retries   uint8 // of -R, DefaultRetryCount by the flags; others have that always
	HopLimit  uint8 // TTL of IPv4, 0 for DefaultHopLimit

	Rate Rate

	// Interval is how often a bandwidth test tells what it has moved meanwhile, 0 for never.
	Interval time.Duration

	// How results are told.
	Gbits    bool // Gb/s instead of MiB/s
	NoPeak   bool // measure no peak bandwidth
	Separate bool // with Both: the result of each end, too
	CPUUtil  bool
	Samples  Samples

	// Mode names how the device is driven, for those who read the results.
	Mode string

	// OtherDrives says that another goroutine than the loop drives the device.
	OtherDrives bool

	// Progress, if not nil, is told how much is done: messages, or seconds in a run
	// by duration.
	Progress func(done, total int64)
}

// Samples says which samples of a latency test are kept for the report.
type Samples int

// Which samples.
const (
	SamplesNone     Samples = iota
	SamplesSorted           // -H
	SamplesUnsorted         // -U
)

// AutoGID lets a GID be chosen: the first routable one, of IPv4 unless IPv6 is
// asked for.
const AutoGID = -1

// Limits and constants of the tool.
const (
	maxSizeLog   = 23    // -a ends at 8 MiB
	peakLimit    = 20000 // more messages of a QP and no peak is measured
	largestCQMod = 8192  // larger messages make a completion each, unless asked otherwise
	qkey         = 0x11111111
	grhLen       = 40 // what a datagram's receive holds before the payload
)

// first reports whether this end is the one that begins.
func (c *Config) first() bool { return c.Dial != c.Reversed }

// passive reports whether this end has nothing to do but to let its device answer.
func (c *Config) passive() bool {
	if c.first() || c.Both || c.Test.Verb == Send {
		return false
	}
	return !c.Test.Latency || c.Test.Answered()
}

// receives reports whether this end posts receives.
func (c *Config) receives() bool {
	return c.Test.Verb == Send && (c.Both || c.Test.Latency || !c.first())
}

// share is how many receives are posted for each QP.
func (c *Config) share() int {
	if c.UseSRQ {
		return c.RxDepth / c.QPs
	}
	return c.RxDepth
}

// room is how much of a message fits into a receive, in a run of a size. With -a that is all of
// any: over an unreliable service receives are left of each size when messages are lost, and of
// one that is too short for the next message nothing ever comes.
func (c *Config) room(size int) int {
	if c.All && c.Type != roce.TypeRC {
		return c.Size
	}
	return size
}

// hasCPUUtil reports whether this end's results have the load of the CPUs: one that only answers
// passes on what the other end has measured, which is not told of.
func (c *Config) hasCPUUtil() bool { return c.CPUUtil && !c.passive() }

// Direct reports whether the device is best driven by the loop itself: it polls, and
// nothing else has to happen meanwhile.
func (c *Config) Direct() bool { return !c.Events && !c.passive() }

// sizes lists the sizes to run.
func (c *Config) sizes(mtu wire.MTU) []int {
	if !c.All {
		return []int{c.Size}
	}
	most := 1 << maxSizeLog
	if c.Type == roce.TypeUD {
		most = mtu.Bytes()
	}
	var list []int
	for n := 2; n <= most; n *= 2 {
		list = append(list, n)
	}
	return list
}

// whole says how much a run is, for errors: messages, or a time.
func (c *Config) whole() string {
	switch {
	case c.Infinite:
		return "a run without an end"
	case c.Duration > 0:
		return c.Duration.String()
	}
	return strconv.Itoa(c.total())
}

// total is the number of messages that all QPs send, 0 in a run by duration.
func (c *Config) total() int {
	if c.Duration > 0 {
		return 0
	}
	return c.Iters * c.QPs
}

// counted is how many messages an end counts until it is done: of SENDs in both directions those
// that come, too.
func (c *Config) counted() int {
	if c.Both && c.Test.Verb == Send {
		return 2 * c.total()
	}
	return c.total()
}
