package trial

import (
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/wire"
)

// paceSlack is how much of unused time a queue pair may catch up with.
const paceSlack = 50 * roce.Microsecond

// pace holds the requests of a queue pair to its rate limit: over any time they
// take no more than the rate allows for that time, the slack and one frame.
func (e *endpoint) pace(f *campaign.Frame) {
	rate := roce.Time(e.conn.config.RateLimit)
	if rate == 0 || e.qp == nil || !f.Opcode.Spec().Is(wire.ClassRequest) {
		return
	}
	if f.At+roce.Microsecond < e.paidUntil {
		e.w.fail(Conservation, "%s: a request %s before its rate of %d kbit/s allows", e,
			campaign.ClockTime(e.paidUntil-f.At), rate)
	}
	e.paidUntil = max(e.paidUntil, f.At-paceSlack) + roce.Time(f.Len)*8*roce.Millisecond/rate
}
