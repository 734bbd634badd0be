package cc

import (
	"fmt"
	"math"

	"xroce/roce/clock"
)

// SwiftParams are those of the paper; values that it leaves to the network are ours.
type SwiftParams struct {
	// Target is the round trip to keep to, for a flow with a large window: 25 us. It has to
	// be above that of an idle network with its hops, which the paper adds by their number.
	Target clock.Time
	// FlowScaling is by how much the target grows at most as the window shrinks, 50 us, from
	// a window of ScaleMax packets (100) to one of ScaleMin (0.1): many flows make a queue
	// that varies more.
	FlowScaling        clock.Time
	ScaleMin, ScaleMax float64
	// AI is by how many packets the window grows in a round trip, 1.
	AI float64
	// Beta is how strongly delay above the target shrinks the window, 0.8; MaxDecrease the
	// largest share of it that goes at once, 0.5.
	Beta, MaxDecrease float64
	// MinWindow and MaxWindow bound the window, in packets: 0.01 and 256.
	MinWindow, MaxWindow float64
	// Timeouts is after how many in a row the window is the least, 5.
	Timeouts uint32
}

func (p *SwiftParams) setDefaults() {
	setDefault(&p.Target, 25*clock.Microsecond)
	setDefault(&p.FlowScaling, 50*clock.Microsecond)
	setDefault(&p.ScaleMin, 0.1)
	setDefault(&p.ScaleMax, 100)
	setDefault(&p.AI, 1)
	setDefault(&p.Beta, 0.8)
	setDefault(&p.MaxDecrease, 0.5)
	setDefault(&p.MinWindow, 0.01)
	setDefault(&p.MaxWindow, 256)
	setDefault(&p.Timeouts, 5)
}

func (p *SwiftParams) check() error {
	switch {
	case p.Target < clock.Microsecond || p.Target > maxPeriod,
		p.FlowScaling < 0 || p.FlowScaling > maxPeriod:
		return fmt.Errorf("%w: a target of %d and %d ns", ErrConfig, p.Target, p.FlowScaling)
	case !(p.ScaleMin > 0 && p.ScaleMin < p.ScaleMax):
		return fmt.Errorf("%w: windows %v to %v for flow scaling", ErrConfig, p.ScaleMin,
			p.ScaleMax)
	case !(p.MinWindow >= 1e-3 && p.MinWindow < p.MaxWindow && p.MaxWindow <= 1<<16):
		return fmt.Errorf("%w: windows of %v to %v packets", ErrConfig, p.MinWindow, p.MaxWindow)
	case !(p.AI > 0 && p.Beta > 0 && p.Beta <= 1 && p.MaxDecrease > 0 && p.MaxDecrease < 1):
		return fmt.Errorf("%w: increase %v, beta %v, largest decrease %v", ErrConfig, p.AI, p.Beta,
			p.MaxDecrease)
	}
	return nil
}

// Swift is the Controller of Kumar et al., SIGCOMM 2020: algorithm 1 and section 3. It has one
// window, for the round trip as a whole: a peer does not say how much of that was its own.
// Below one packet the window is a pause between packets.
type Swift struct {
	p SwiftParams
	// scale and offset make the share of flow scaling of a window: scale/sqrt(w) - offset.
	scale, offset float64

	window   float64    // packets
	rtt      clock.Time // the last one, 0 before the first
	frame    int        // bytes of the longest frame sent
	lowered  clock.Time // when the window was last lowered
	timeouts uint32     // in a row
}

// NewSwift returns the controller of a flow. It begins with the largest window.
func NewSwift(p SwiftParams) *Swift {
	least := 1 / math.Sqrt(p.ScaleMax)
	s := &Swift{p: p, window: p.MaxWindow}
	s.scale = float64(p.FlowScaling) / (1/math.Sqrt(p.ScaleMin) - least)
	s.offset = s.scale * least
	return s
}

// TargetDelay returns the round trip that the flow keeps to now.
func (s *Swift) TargetDelay() clock.Time {
	more := s.scale/math.Sqrt(s.window) - s.offset
	return s.p.Target + clock.Time(min(max(more, 0), float64(s.p.FlowScaling)))
}

// Packets returns the window, which may be less than one.
func (s *Swift) Packets() float64 { return s.window }

// Rate implements Controller: there is one for a window below one packet.
func (s *Swift) Rate() uint32 {
	if s.window >= 1 || s.rtt == 0 || s.frame == 0 {
		return 0
	}
	kbps := s.window * float64(8*s.frame) * float64(clock.Millisecond) / float64(s.rtt)
	return uint32(min(max(kbps, 1), math.MaxUint32))
}

// Window implements Controller.
func (s *Swift) Window() uint32 { return uint32(max(s.window, 1)) }

// Sent implements Controller.
func (s *Swift) Sent(_ clock.Time, n int) { s.frame = max(s.frame, n) }

// Notified implements Controller: Swift needs no notifications.
func (s *Swift) Notified(clock.Time) bool { return false }

// Acknowledged implements Controller.
func (s *Swift) Acknowledged(now clock.Time, packets uint32, rtt clock.Time) {
	s.timeouts = 0
	if rtt > 0 {
		s.rtt = rtt
	}
	if s.rtt == 0 {
		return
	}
	target := s.TargetDelay()
	switch {
	case s.rtt < target && s.window >= 1:
		s.window += s.p.AI / s.window * float64(packets)
	case s.rtt < target:
		s.window += s.p.AI * float64(packets)
	case s.mayLower(now):
		over := float64(s.rtt-target) / float64(s.rtt)
		s.lower(now, 1-s.p.Beta*over)
	}
	s.clamp()
}

// Lost implements Controller.
func (s *Swift) Lost(now clock.Time, timeout bool) {
	if !timeout {
		if s.mayLower(now) {
			s.lower(now, 0)
		}
		return
	}
	if s.timeouts++; s.timeouts >= s.p.Timeouts {
		s.window, s.lowered = s.p.MinWindow, now
	} else if s.mayLower(now) {
		s.lower(now, 0)
	}
}

// mayLower reports whether a round trip has passed since the window was lowered.
func (s *Swift) mayLower(now clock.Time) bool { return s.lowered == 0 || now-s.lowered >= s.rtt }

// lower multiplies the window, by no less than the largest decrease allows.
func (s *Swift) lower(now clock.Time, by float64) {
	s.window *= max(by, 1-s.p.MaxDecrease)
	s.lowered = now
	s.clamp()
}

func (s *Swift) clamp() { s.window = min(max(s.window, s.p.MinWindow), s.p.MaxWindow) }

// Deadline implements Controller.
func (s *Swift) Deadline() clock.Time { return 0 }

// HandleDeadline implements Controller.
func (s *Swift) HandleDeadline(clock.Time) {}
