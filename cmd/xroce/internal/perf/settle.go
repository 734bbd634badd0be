package perf

import (
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// Settle makes the settings agree with each other, as the tool does: some follow
// from others, and some do not go together. It returns what it changed that the
// user should know, and an error that says what is wrong.
func (c *Config) Settle(cqModSet bool) (notes []string, err error) {
	if c.HopLimit == 0 {
		c.HopLimit = DefaultHopLimit
	}
	if c.Size > largestCQMod && c.Type != roce.TypeUD && !c.raw() && !c.All &&
		!c.Events && !cqModSet {
		c.CQMod = 1
	}
	if c.Duration == 0 {
		c.TxDepth = min(c.TxDepth, c.Iters)
		if c.Type != roce.TypeRC && c.RxDepth == DefaultRxDepth {
			c.RxDepth = min(c.Iters, maxRxDepth)
		}
		c.RxDepth = min(c.RxDepth, c.Iters)
	}
	if c.RxDepth%2 == 1 && !c.All {
		c.RxDepth++ // the tool does, and the depth is printed
	}
	if c.PostList > 1 && !cqModSet {
		c.CQMod = c.PostList
		notes = append(notes, "post list: CQ moderation will be the size of the list")
	}
	c.TxDepth = max(c.TxDepth, c.PostList)
	c.CQMod = min(c.CQMod, c.TxDepth)
	if c.All {
		c.Size = 1 << maxSizeLog
	}
	receiver := c.Test.Verb == Send && !c.first() && !c.Both
	if !c.Test.Latency && !c.NoPeak &&
		(c.Duration > 0 || c.Iters > peakLimit || receiver) {
		c.NoPeak = true
		notes = append(notes, "BW peak won't be measured in this run")
	}
	return notes, c.check()
}

// Bounds of the settings, those of the tool.
const (
	DefaultRxDepth  = 512
	DefaultHopLimit = 64
	// DefaultRetryCount is how often a packet is sent again before its peer is given up.
	DefaultRetryCount = 7
	minIters          = 5
	maxIters          = 100000000
	maxTxDepth        = 15000
	maxRxDepth        = 16000
	maxQPs            = 16384
	maxCQMod          = 1024
	maxSize           = roce.MaxMessage
)

// check finds settings that are out of range or do not go together.
func (c *Config) check() error {
	for _, b := range []struct {
		flag               string
		value, least, most int
	}{
		{"-q", c.QPs, 1, maxQPs},
		{"-s", c.Size, 1, maxSize},
		{"-t", c.TxDepth, 1, maxTxDepth},
		{"-r", c.RxDepth, 1, maxRxDepth},
		{"-Q", c.CQMod, 1, maxCQMod},
		{"-l", c.PostList, 1, maxTxDepth},
		{"--recv_post_list", c.RecvPostList, 1, maxRxDepth},
		{"-I", c.Inline, 0, roce.MaxInline},
		{"-o", c.OutReads, 0, roce.MaxRdAtomic},
		{"-u", int(c.Timeout), 0, 31},
		{"--inline_recv", c.InlineRecv, engine.NoInlineRecv, roce.MaxInlineRecv},
	} {
		if b.value < b.least || b.value > b.most {
			return fmt.Errorf("%s %d is not in %d..%d", b.flag, b.value, b.least, b.most)
		}
	}
	if c.Duration == 0 && (c.Iters < minIters || c.Iters > maxIters) {
		return fmt.Errorf("-n %d is not in %d..%d", c.Iters, minIters, maxIters)
	}
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{c.Duration > 0 && c.Duration <= 2*c.Margin, "-D must be more than twice -f"},
		{c.Duration > 0 && c.Events, "-D does not go with -e"},
		{c.Duration > 0 && c.All, "-D does not go with -a"},
		{c.Duration > 0 && c.Samples != SamplesNone, "-D keeps no samples for -H or -U"},
		{c.CPUUtil && c.Duration == 0, "--cpu_util needs -D"},
		{c.Both && c.Test.Latency, "-b is for bandwidth tests"},
		{c.Infinite && c.Test.Latency, "--run_infinitely is for bandwidth tests"},
		{c.Infinite && c.Both, "--run_infinitely does not go with -b"},
		{c.Infinite && c.Events, "--run_infinitely does not go with -e"},
		{c.Infinite && c.Rate.On(), "--run_infinitely does not go with --rate_limit"},
		{
			c.Interval != 0 && (c.Interval < MinInterval || c.Interval > MaxInterval),
			fmt.Sprintf("-i is %g to %g seconds, or 0: the port of the device, which it is in "+
				"perftest, is --ib-port", MinInterval.Seconds(), MaxInterval.Seconds()),
		},
		{c.Interval > 0 && c.Test.Latency, "-i is for bandwidth tests"},
		{c.Interval > 0 && c.Infinite, "-i does not go with --run_infinitely, which tells each -D"},
		{
			c.Interval > 0 && c.passive(),
			"-i is for the end that posts: this one only answers, and knows no messages",
		},
		{c.Managed && c.ManagedExchange, "-z is what -R does without connecting: choose one"},
		{c.Separate && !c.Both, "--report-both needs -b"},
		{c.Reversed && c.Test.Latency, "--reversed is for bandwidth tests"},
		{c.UseSRQ && c.Test.Verb != Send, "--use-srq is for send tests"},
		{c.UseSRQ && c.QPs > c.RxDepth, "--use-srq needs a depth (-r) of one receive for each QP"},
		{
			c.receives() && c.RecvPostList > c.share() && (c.Duration > 0 || c.share() < c.Iters),
			"--recv_post_list is more than the receives (-r) of a queue pair: all would be used " +
				"up before the list is full",
		},
		{
			c.Events && c.Test.Verb == Write && c.Test.Latency,
			"-e: nothing tells of a WRITE that arrives",
		},
		{
			c.raw() && c.Test.Verb != Send,
			"-c RAW_PACKET is for send tests: frames are all that such a queue pair has",
		},
		{c.raw() && c.QPs > 1, "-c RAW_PACKET has one queue pair (-q): it takes all frames"},
		{c.raw() && (c.All || c.UseSRQ), "-c RAW_PACKET has neither -a nor --use-srq"},
		{c.raw() && c.File != nil, "-c RAW_PACKET has no --mmap: headers are in the memory"},
		{c.raw() && c.Rate.Paced, "-c RAW_PACKET: only --rate_limit_type SW limits frames"},
		{!c.Group.IsZero() && c.Type != roce.TypeUD, "-g is for datagrams, -c UD"},
		{
			!c.Group.IsZero() && !c.Group.IsMulticast(),
			"-M " + c.Group.Addr().String() + " is no group",
		},
		{
			!c.Group.IsZero() && c.QPs > 1,
			"-g has one queue pair (-q): each member of a group gets each message",
		},
		{c.Type == roce.TypeUD && c.Test.Verb != Send, "-c UD is for send tests"},
		{c.Type == roce.TypeUC && c.Test.Answered(), "-c UC has no READ and no atomics"},
		{c.Test.Verb == Atomic && (c.Size != atomicSize || c.All), "atomic messages have 8 bytes"},
		{
			c.PostList > 1 && c.Duration == 0 && c.Iters%c.PostList != 0,
			"-n must be a multiple of -l",
		},
		{c.PostList%c.CQMod != 0 && c.PostList > 1, "-l must be a multiple of -Q"},
		{c.QPs > 1 && c.Test.Latency, "-q is for bandwidth tests"},
		{
			c.File != nil && c.HugePages,
			"--mmap does not go with --use_hugepages: the file says where its pages are",
		},
		{
			c.Managed && c.HopLimit != DefaultHopLimit,
			"-L does not go with -R: rdma_cm decides",
		},
		{
			c.Managed && c.FlowLabel != 0,
			"--flow_label does not go with -R: rdma_cm makes it of both ports",
		},
		{
			c.Managed && c.Rate.On() && c.Rate.Paced,
			"--rate_limit_type HW does not go with -R: rdma_cm connects the queue pairs, and " +
				"knows no rate",
		},
	} {
		if rule.broken {
			return fmt.Errorf("%s", rule.text)
		}
	}
	return c.Rate.check(c)
}

// atomicSize is the length of the messages of an atomic test.
const atomicSize = 8

// fitMTU makes the size of datagrams fit the path MTU. sized reports whether the user
// asked for this size.
func (c *Config) fitMTU(mtu wire.MTU, sized bool) error {
	if c.Type != roce.TypeUD || c.Size <= mtu.Bytes() {
		return nil
	}
	if sized && !c.All {
		return fmt.Errorf("%w: -s %d: a datagram is at most as long as the path MTU, %d bytes",
			roce.ErrInvalid, c.Size, mtu.Bytes())
	}
	c.Size = mtu.Bytes()
	return nil
}

// window is the time that counts.
func (c *Config) window() time.Duration { return c.Duration - 2*c.Margin }
