package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// goBackN is the loss recovery of the architecture (IBA 9.7.5.2): the receiver drops what
// comes behind a gap, so everything from the missing PSN on is sent again. Once
// something was lost it is a probingBack.
type goBackN struct{ r *requester }

func (goBackN) restart(wire.PSN)    {}
func (goBackN) stop()               {}
func (goBackN) deadline() Time      { return 0 }
func (goBackN) handleDeadline(Time) {}

func (goBackN) span() uint32    { return maxSpan }
func (goBackN) selective() bool { return false }
func (goBackN) probing() bool   { return false }
func (goBackN) skip()           {}

func (goBackN) readEnd(_, end wire.PSN) wire.PSN      { return end }
func (goBackN) sent(Time, wire.PSN, *sendWQE, bool)   {}
func (goBackN) handleSelectiveAck(Time, *wire.Packet) {}
func (goBackN) advanced(Time)                         {}
func (goBackN) rearm(Time)                            {}
func (g goBackN) wentBack(Time)                       { g.r.recovery = &probingBack{goBackN: g} }
func (goBackN) refused(wire.PSN)                      {}
func (goBackN) resultDropped()                        {}
func (g goBackN) timedOut(now Time)                   { g.r.retryFrom(now, g.r.una) }

func (g goBackN) requestsMissing(now Time, psn, _ wire.PSN) bool {
	return g.r.acknowledge(now, psn)
}

func (g goBackN) acknowledged(now Time, psn wire.PSN) {
	if g.r.resent {
		// It may be older than the repetition, whose data is still to come.
		g.r.reach(now, psn)
		return
	}
	g.r.acknowledge(now, psn)
}

// dataMissing is an implied NAK (IBA 9.7.5.1.1): the data was lost, and is asked for
// again, once for the same loss.
func (g goBackN) dataMissing(now Time, _ wire.PSN) {
	if g.r.retried {
		return
	}
	g.r.count.Inc(counter.ImpliedNAK)
	g.r.retried = true
	g.r.retryFrom(now, g.r.una)
}

// handleData takes data if it is the awaited one, and drops what came early.
func (g goBackN) handleData(now Time, p *wire.Packet) {
	if !g.r.acknowledge(now, p.BTH.PSN) {
		g.r.drop(p, reasonResponse)
		return
	}
	g.r.takeData(now, p)
}
