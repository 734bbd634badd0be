package cc

import (
	"fmt"

	"xroce/roce/clock"
)

// DCQCNParams are those of the paper, with its values for zeros (figure 14 and section 5.2).
// Rates are in kbit/s.
type DCQCNParams struct {
	// G is the weight of a new sample in alpha, 1/256.
	G float64
	// AlphaTimer is after how much time without a CNP alpha decays (K), 55 us.
	AlphaTimer clock.Time
	// RateTimer and ByteCounter are after how much time, and after how many bytes of frames,
	// the rate rises: 55 us and 10 MB.
	RateTimer   clock.Time
	ByteCounter int64
	// Threshold is how many rises lead back to the target rate before that rises, too (F), 5.
	Threshold uint32
	// AI and HAI are by how much the target rises: 40 Mb/s, and 400 Mb/s in hyper increase.
	AI, HAI uint32
	// MinRate is below which the rate does not fall, whoever sends CNPs: 10 Mb/s. The paper
	// has none.
	MinRate uint32
}

func (p *DCQCNParams) setDefaults() {
	setDefault(&p.G, 1./256)
	setDefault(&p.AlphaTimer, 55*clock.Microsecond)
	setDefault(&p.RateTimer, 55*clock.Microsecond)
	setDefault(&p.ByteCounter, 10_000_000)
	setDefault(&p.Threshold, 5)
	setDefault(&p.AI, 40_000)
	setDefault(&p.HAI, 400_000)
	setDefault(&p.MinRate, 10_000)
}

func (p *DCQCNParams) check(line uint32) error {
	switch {
	case !(p.G > 0 && p.G <= 1):
		return fmt.Errorf("%w: g %v is not in 0..1", ErrConfig, p.G)
	case p.AlphaTimer < clock.Microsecond || p.AlphaTimer > maxPeriod,
		p.RateTimer < clock.Microsecond || p.RateTimer > maxPeriod:
		return fmt.Errorf("%w: timers of %d and %d ns are not in 1 us..1 s", ErrConfig,
			p.AlphaTimer, p.RateTimer)
	case p.ByteCounter < 1<<12:
		return fmt.Errorf("%w: a byte counter of %d is below 4096", ErrConfig, p.ByteCounter)
	case p.MinRate > line:
		return fmt.Errorf("%w: a floor of %d kbit/s is above the line rate of %d", ErrConfig,
			p.MinRate, line)
	}
	return nil
}

// DCQCN is the reaction point of a flow: the Controller of Zhu et al., SIGCOMM 2015, section
// 3.1. As long as no CNP comes there is no limit and nothing to do; the first one begins at
// line rate with alpha 1, and when the rate has come back there, the limit ends.
type DCQCN struct {
	p    DCQCNParams
	line float64

	limited    bool
	rate       float64 // R_C in kbit/s
	target     float64 // R_T
	alpha      float64
	byTimer    uint32 // T, how often the timer has raised the rate since the last CNP
	byBytes    uint32 // BC, how often the byte counter has
	bytes      int64  // sent since the byte counter expired
	alphaAt    clock.Time
	increaseAt clock.Time
}

// NewDCQCN returns the controller of a flow on a link of line kbit/s.
func NewDCQCN(line uint32, p DCQCNParams) *DCQCN { return &DCQCN{p: p, line: float64(line)} }

// Rate implements Controller.
func (d *DCQCN) Rate() uint32 {
	if !d.limited {
		return 0
	}
	return uint32(d.rate)
}

// Window implements Controller: DCQCN has none.
func (d *DCQCN) Window() uint32 { return 0 }

// Alpha returns the estimate of how congested the path is, 0 to 1; 0 without a limit.
func (d *DCQCN) Alpha() float64 {
	if !d.limited {
		return 0
	}
	return d.alpha
}

// Notified implements Controller: equation (1) of the paper.
func (d *DCQCN) Notified(now clock.Time) bool {
	if !d.limited {
		d.limited, d.rate, d.alpha = true, d.line, 1
	}
	d.target = d.rate
	d.rate = max(d.rate*(1-d.alpha/2), float64(d.p.MinRate))
	d.alpha = (1-d.p.G)*d.alpha + d.p.G
	d.byTimer, d.byBytes, d.bytes = 0, 0, 0
	d.alphaAt, d.increaseAt = now+d.p.AlphaTimer, now+d.p.RateTimer
	return true
}

// Sent implements Controller: it feeds the byte counter.
func (d *DCQCN) Sent(_ clock.Time, n int) {
	if !d.limited {
		return
	}
	if d.bytes += int64(n); d.bytes >= d.p.ByteCounter {
		d.bytes -= d.p.ByteCounter
		d.byBytes++
		d.increase()
	}
}

// increase raises the rate: equations (3) and (4), and hyper increase as in QCN.
func (d *DCQCN) increase() {
	f := d.p.Threshold
	switch low, high := min(d.byTimer, d.byBytes), max(d.byTimer, d.byBytes); {
	case high < f: // fast recovery
	case low > f:
		d.target += float64(low-f) * float64(d.p.HAI)
	default:
		d.target += float64(d.p.AI)
	}
	d.target = min(d.target, d.line)
	if d.rate = (d.target + d.rate) / 2; d.rate > d.line-1 {
		*d = DCQCN{p: d.p, line: d.line}
	}
}

// Acknowledged implements Controller.
func (d *DCQCN) Acknowledged(clock.Time, uint32, clock.Time) {}

// Lost implements Controller: DCQCN leaves losses to their recovery.
func (d *DCQCN) Lost(clock.Time, bool) {}

// Deadline implements Controller.
func (d *DCQCN) Deadline() clock.Time {
	if !d.limited {
		return 0
	}
	return clock.Sooner(d.alphaAt, d.increaseAt)
}

// catchUp is how many periods a call that comes late makes up for.
const catchUp = 64

// HandleDeadline implements Controller: equation (2), and the rise by timer.
func (d *DCQCN) HandleDeadline(now clock.Time) {
	for range catchUp {
		if !d.limited || d.alphaAt > now {
			break
		}
		d.alpha *= 1 - d.p.G
		d.alphaAt += d.p.AlphaTimer
	}
	for range catchUp {
		if !d.limited || d.increaseAt > now {
			break
		}
		d.byTimer++
		d.increaseAt += d.p.RateTimer
		d.increase()
	}
	if d.limited {
		d.alphaAt = later(d.alphaAt, now, d.p.AlphaTimer)
		d.increaseAt = later(d.increaseAt, now, d.p.RateTimer)
	}
}

// later returns a time that is not over: at, or a period from now.
func later(at, now, period clock.Time) clock.Time {
	if at > now {
		return at
	}
	return now + period
}
