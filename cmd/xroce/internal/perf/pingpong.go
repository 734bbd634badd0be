package perf

import (
	"context"
	"fmt"
	"time"

	"xroce/roce"
)

// A pingpong is the loop of the latency tests whose messages go there and back:
// SENDs that complete a receive, or WRITEs of which the other end watches the last
// byte change.
type pingpong struct {
	*end
	clock
	timer
	progress func(uint64)

	first  bool // this end begins
	limit  uint64
	sent   uint64
	rcvd   uint64
	sample trips   // of a run by duration
	at     []int64 // when each message was posted
	size   int
}

func newPingpong(e *end, size int, progress func(uint64)) *pingpong {
	c := e.cfg
	p := &pingpong{
		end: e, timer: newTimer(c), progress: progress, first: c.first(),
		limit: uint64(c.total()), size: size,
	}
	if c.Test.Verb == Write {
		p.first = !p.first // here the tool's server begins
	}
	p.at = make([]int64, p.limit)
	return p
}

func (p *pingpong) run(ctx context.Context) error {
	p.clock = newClock()
	step := p.stepSend
	if p.cfg.Test.Verb == Write {
		step = p.stepWrite
	}
	f := &p.flows[0]
	for p.limit == 0 || p.sent < p.limit || p.rcvd < p.limit || f.completed < p.limit {
		if p.timer.state != phaseIdle {
			if p.tick(p.now()); p.over() {
				return p.verdict()
			}
		}
		if p.myTurn() {
			if err := p.post(ctx, f); err != nil {
				return err
			}
			continue
		}
		if err := step(ctx, f); err != nil {
			return p.after(min(p.sent, p.rcvd), err)
		}
	}
	return nil
}

// verdict is what a run by duration has come to when its time is over. A conversation that ended
// before it was measured for a part of that time only: a message was lost, which over an unreliable
// service nobody sends again, or the peer had less time.
func (p *pingpong) verdict() error {
	dead := errLost
	if p.cfg.Type == roce.TypeRC {
		dead = errThrough
	}
	return p.after(min(p.sent, p.rcvd), p.timer.verdict(&p.sample, p.cfg.Gap, dead))
}

// after says of an error how many round trips there were before.
func (e *end) after(trips uint64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("after %d round trips of %s: %w", trips, e.cfg.whole(), err)
}

// myTurn reports whether to send: when the last message has been answered and is
// complete.
func (p *pingpong) myTurn() bool {
	if p.limit != 0 && p.sent >= p.limit || p.flows[0].completed < p.sent {
		return false
	}
	if p.first {
		return p.rcvd >= p.sent
	}
	return p.rcvd > p.sent
}

func (p *pingpong) post(ctx context.Context, f *flow) error {
	if p.cfg.Gap > 0 {
		if err := p.spin(ctx); err != nil {
			return err
		}
	}
	if p.limit != 0 {
		p.at[p.sent] = p.now()
	}
	p.sent++
	if p.cfg.Test.Verb == Write {
		if err := p.setByte(p.end.at.out(0)+p.size-1, byte(p.sent)); err != nil {
			return err
		}
	}
	return f.post(true)
}

// spin lets the gap before a message pass.
func (p *pingpong) spin(ctx context.Context) error {
	for until := p.now() + int64(p.cfg.Gap); p.now() < until; {
		for range pollsInARow {
			if p.idle(); p.now() >= until {
				return nil
			}
		}
		if err := p.alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// idle lets a device make progress that no other goroutine drives.
func (e *end) idle() {
	if !e.cfg.OtherDrives {
		e.dev.Progress()
	}
}

// stepSend waits for completions.
func (p *pingpong) stepSend(ctx context.Context, f *flow) error {
	n, err := p.await(ctx)
	if err != nil {
		return err
	}
	for i := range p.wcs[:n] {
		if p.wcs[i].WRID&wridRecv == 0 {
			f.completed++
			continue
		}
		p.arrived()
		if p.limit == 0 || f.supplied < p.limit {
			if err := f.supply(); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrived accounts for a message.
func (p *pingpong) arrived() {
	p.rcvd++
	if p.limit == 0 {
		now := p.now()
		p.sample.add(now, p.counts())
		p.start(now) // the time begins with the first one, which is no part of it
	}
	p.progress(p.rcvd)
}

// stepWrite looks for a completion and at the last byte of the message. Polling is
// what drives the device, so nobody else writes to the memory meanwhile.
func (p *pingpong) stepWrite(ctx context.Context, f *flow) error {
	last := p.end.at.in(0) + p.size - 1
	for p.pollOn() {
		n, err := p.cq.Poll(p.wcs[:])
		if n, err = p.check(n, err); err != nil {
			return err
		}
		f.completed += uint64(n)
		now, err := p.byteAt(last)
		if err != nil {
			return err
		}
		came := (p.limit == 0 || p.rcvd < p.limit) && (p.sent > 0 || !p.first) &&
			now == byte(p.rcvd+1)
		if came {
			p.arrived()
		}
		if n > 0 || came {
			return nil
		}
	}
	return p.alive(ctx)
}

// A roundtrip is the loop of the latency tests that the peer's device answers: one
// READ or atomic at a time.
type roundtrip struct {
	*end
	clock
	timer
	progress func(uint64)

	limit  uint64
	sample trips       // of a run by duration
	at     []int64     // when each message was posted
	gap    *time.Timer // of what passes before each, stopped; nil for nothing
}

func newRoundtrip(e *end, progress func(uint64)) *roundtrip {
	r := &roundtrip{
		end: e, timer: newTimer(e.cfg), progress: progress, limit: uint64(e.cfg.total()),
	}
	r.at = make([]int64, r.limit)
	if e.cfg.Gap > 0 {
		r.gap = time.NewTimer(e.cfg.Gap)
		r.gap.Stop()
	}
	return r
}

// sleep lets the gap before a message pass.
func (r *roundtrip) sleep(ctx context.Context) error {
	r.gap.Reset(r.cfg.Gap)
	defer r.gap.Stop()
	select {
	case <-r.gap.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *roundtrip) run(ctx context.Context) error {
	r.clock = newClock()
	r.start(0)
	f := &r.flows[0]
	for r.limit == 0 || f.completed < r.limit {
		if f.posted == f.completed {
			if r.cfg.Gap > 0 {
				if err := r.sleep(ctx); err != nil {
					return err
				}
			}
			if r.limit != 0 {
				r.at[f.posted] = r.now()
			}
			if err := f.post(true); err != nil {
				return err
			}
		}
		n, err := r.await(ctx)
		if err != nil {
			return r.after(f.completed, err)
		}
		f.completed += uint64(n)
		if n > 0 && r.limit == 0 {
			r.sample.add(r.now(), r.counts())
		}
		r.progress(f.completed)
		if r.timer.state != phaseIdle {
			if r.tick(r.now()); r.over() {
				return r.verdict()
			}
		}
	}
	return nil
}

// verdict is what a run by duration has come to when its time is over: one whose answers stopped
// before, while the work still had retries left, was measured for a part of that time only.
func (r *roundtrip) verdict() error {
	return r.after(r.flows[0].completed, r.timer.verdict(&r.sample, r.cfg.Gap, errUnanswered))
}
