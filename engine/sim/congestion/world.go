package congestion

import (
	"context"
	"fmt"
	"slices"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// sampling is how often the network is looked at.
const sampling = 50 * roce.Microsecond

// maxFlows is how many senders there may be: each has an address in one byte.
const maxFlows = 200

// A world is a run.
type world struct {
	scenario *Scenario
	clock    sim.VirtualClock
	network  *sim.Network
	receiver *host
	hosts    []*host // the receiver first
	flows    []*flow
	result   Result
	meters   []meter // one for each phase
	before   []int64 // bytes of each flow at the last sample
}

// Run runs a scenario from a seed. The error is that of the context, or says what is wrong with
// the scenario; a queue pair that fails is in the result.
func Run(ctx context.Context, s Scenario, seed uint64) (*Result, error) {
	if len(s.Flows) == 0 || len(s.Flows) > maxFlows || s.End <= 0 {
		return nil, fmt.Errorf("congestion: %d flows for %d ns", len(s.Flows), s.End)
	}
	w := &world{scenario: &s, result: Result{Name: s.Name, About: s.About, Seed: seed}}
	if err := w.build(ctx, seed); err != nil {
		return nil, fmt.Errorf("congestion: %w", err)
	}
	defer w.close()
	if err := w.run(ctx); err != nil {
		return nil, fmt.Errorf("congestion: %s at %d ns: %w", s.Name, w.clock.Now(), err)
	}
	return w.finish()
}

// build makes the network, the hosts and the connections.
func (w *world) build(ctx context.Context, seed uint64) (err error) {
	if w.network, err = sim.NewNetwork(seed, &w.clock, sim.Faults{}); err != nil {
		return err
	}
	for i := range len(w.scenario.Flows) + 1 {
		h, err := newHost(w, seed, i)
		if err != nil {
			return err
		}
		w.hosts = append(w.hosts, h)
	}
	w.receiver = w.hosts[0]
	for i, f := range w.scenario.Flows {
		flow, err := newFlow(ctx, w.scenario, w.hosts[i+1], w.receiver, f)
		if err != nil {
			return err
		}
		w.flows = append(w.flows, flow)
		err = w.network.SetDirection(campaign.MAC(i+1, 0), campaign.MAC(0, 0), sim.Faults{
			Spray: w.scenario.Spray, SprayBy: w.scenario.SprayBy,
		})
		if err != nil {
			return err
		}
	}
	w.before = make([]int64, len(w.flows))
	w.network.Observe(w.frame)
	w.phases()
	return nil
}

// close gives everything back.
func (w *world) close() {
	for _, h := range w.hosts {
		_ = h.device.Close() // of a simulated link: it has nothing to lose
	}
}

// frame takes what arrives at the receiver.
func (w *world) frame(e *sim.Event) {
	if e.Kind != sim.Delivered || e.To != campaign.MAC(0, 0) {
		return
	}
	if i := campaign.NodeOf(e.From) - 1; i >= 0 && i < len(w.flows) {
		w.flows[i].wire += int64(len(e.Frame))
	}
}

// run moves the clock from event to event until the end.
func (w *world) run(ctx context.Context) error {
	sample := roce.Time(0)
	for {
		now := w.clock.Now()
		if now >= sample {
			if err := ctx.Err(); err != nil {
				return err
			}
			w.sample(now)
			sample += sampling
		}
		if now >= w.scenario.End {
			return nil
		}
		w.turns(now)
		w.clock.AdvanceTo(min(w.next(sample), w.scenario.End))
	}
}

// turns gives a turn to each host that has something to do.
func (w *world) turns(now roce.Time) {
	for i, h := range w.hosts {
		at, any := h.next()
		worked := i > 0 && w.flows[i-1].work(now)
		if !worked && (!any || at > now) {
			continue
		}
		for worked = true; worked; worked = i > 0 && w.flows[i-1].work(now) {
			h.turn()
		}
	}
}

// next is when the next thing happens, by a time.
func (w *world) next(latest roce.Time) roce.Time {
	now := w.clock.Now()
	if at, any := w.network.NextArrival(); any {
		latest = min(latest, at)
	}
	for _, h := range w.hosts {
		if !h.idle {
			latest = min(latest, h.due)
		}
	}
	for i := range w.meters {
		if from := w.meters[i].phase.From; from > now {
			latest = min(latest, from)
		}
	}
	return max(latest, now+1)
}

// phases divides the time by who sends.
func (w *world) phases() {
	times := []roce.Time{0, w.scenario.End}
	for _, f := range w.scenario.Flows {
		times = append(times, f.From)
		if f.To != 0 {
			times = append(times, min(f.To, w.scenario.End))
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	for i, from := range times[:len(times)-1] {
		m := meter{phase: Phase{From: from, To: times[i+1]}}
		for _, f := range w.flows {
			if f.active(from) {
				m.flows = append(m.flows, f)
			}
		}
		m.phase.Flows = len(m.flows)
		w.meters = append(w.meters, m)
	}
}
