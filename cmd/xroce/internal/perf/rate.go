package perf

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"xroce/roce"
	"xroce/roce/wire"
)

// A Rate bounds what this end sends.
type Rate struct {
	Value float64
	Units byte // 'M' MiB/s, 'g' Gb/s, 'p' messages a second
	// Paced leaves it to the QPs, which space their packets; else the loop sends
	// bursts and waits in between.
	Paced bool
	Burst int // messages of a burst, 0 for the depth of the send queue
}

// On reports whether there is a bound.
func (r Rate) On() bool { return r.Value > 0 }

func (r Rate) check(c *Config) error {
	switch {
	case !(r.Value >= 0) || math.IsInf(r.Value, 1):
		return fmt.Errorf("--rate_limit %g is no rate", r.Value)
	case r.Burst < 0:
		return fmt.Errorf("--burst_size %d is negative", r.Burst)
	case r.Burst > 0 && !r.On():
		return fmt.Errorf("--burst_size needs --rate_limit")
	case !r.On():
		return nil
	case r.Units != 'M' && r.Units != 'g' && r.Units != 'p':
		return fmt.Errorf("--rate_units %c: there are M, g and p", r.Units)
	case r.Paced && r.Units == 'p':
		return fmt.Errorf("--rate_units p does not go with --rate_limit_type HW")
	case r.Paced && r.bits() < 1000*float64(c.QPs):
		return fmt.Errorf("--rate_limit %g is less than 1 kbit/s of each QP", r.Value)
	case !r.Paced && (c.Test.Latency || c.Test.Verb == Atomic || c.Test.Verb == Send && c.Both):
		return fmt.Errorf("--rate_limit by software is for bandwidth tests, " +
			"not for atomics and not for -b of send")
	}
	size := c.Size
	if c.Type == roce.TypeUD {
		size = min(size, wire.MTU4096.Bytes())
	}
	most := silence
	if c.Type != roce.TypeRC && c.Duration == 0 && c.Test.Verb == Send {
		most = lossTime
	}
	once := c.Duration == 0 && c.burst() >= c.total() // then there is no gap
	if gap := r.gap(size, c.burst()); gap >= most*9/10 && !once {
		return fmt.Errorf("--rate_limit %g sends %d messages at a time, and nothing for %s then: "+
			"the other end gives up after %s; choose a smaller --burst_size or -t",
			r.Value, c.burst(), gap.Round(time.Millisecond), most)
	}
	return nil
}

// burst is how many messages a loop that is bounded sends at a time: whole lists of --post_list.
func (c *Config) burst() int {
	list := max(c.PostList, 1)
	return (cmp.Or(c.Rate.Burst, c.TxDepth) + list - 1) / list * list
}

// bits is a rate in bit/s.
func (r Rate) bits() float64 {
	if r.Units == 'M' {
		return r.Value * 8 * (1 << 20)
	}
	return r.Value * 1e9
}

// kbits is the rate of one of n QPs in kbit/s, as a paced QP is told.
func (r Rate) kbits(n int) uint32 {
	if !r.On() || !r.Paced {
		return 0
	}
	return uint32(min(max(r.bits()/1000/float64(n), 1), 1<<32-1))
}

// maxGap is longer than any test, and not too long for a time.
const maxGap time.Duration = 1 << 62

// gap is the time from the beginning of a burst to that of the next one.
func (r Rate) gap(size, burst int) time.Duration {
	if !r.On() || r.Paced {
		return 0
	}
	messages := r.Value
	switch r.Units {
	case 'M':
		messages = r.Value * (1 << 20) / float64(size)
	case 'g':
		messages = r.Value * 1e9 / 8 / float64(size)
	}
	return time.Duration(min(float64(burst)/messages*float64(time.Second), float64(maxGap)))
}

// A pacer lets a loop send one burst in each gap. The zero pacer lets all through.
type pacer struct {
	gap   int64 // nanoseconds, 0 for no bound
	burst int
	next  int64 // when the next burst may begin
	left  int   // messages left of this one
}

// open reports whether a message may go at now.
func (p *pacer) open(now int64) bool {
	if p.gap == 0 || p.left > 0 {
		return true
	}
	if now < p.next {
		return false
	}
	p.next, p.left = now+p.gap, p.burst
	return true
}

// sent counts messages that went.
func (p *pacer) sent(n int) { p.left -= n }
