package perf

import (
	"context"
	"errors"
)

// measureBandwidth is the test of one size, with the barriers around it.
func (r *run) measureBandwidth(ctx context.Context, size int) error {
	c := r.cfg
	r.prepare(size)
	if c.WarmUp && c.Test.Verb != Send {
		if err := r.warmUp(ctx); err != nil {
			return err
		}
		r.prepare(size)
	}
	if c.receives() {
		if err := r.supply(); err != nil {
			return err
		}
	}
	if c.Test.Verb == Send || c.Both {
		if err := r.barrier(ctx); err != nil {
			return err
		}
	}
	s := newStream(r.end, size, r.happened)
	s.intervals.every = int64(c.Interval)
	s.intervals.tell = func(from, to int64, messages uint64) {
		r.tell.Interval(&r.info, c.interval(size, from, to, messages))
	}
	if c.Infinite {
		return r.goOn(ctx, s, size)
	}
	err := r.watched(ctx, s.run)
	lost := errors.Is(err, errLost)
	if err != nil && !lost {
		return err
	}
	if c.All && c.Both && c.Test.Verb != Send {
		if err := r.barrier(ctx); err != nil {
			return err
		}
	}
	row := Row{Report: s.report(size), CPUUtil: cpuUtil(s.load), Strays: r.takeStrays()}
	if lost {
		row.Lost = s.total - s.delivered
	}
	r.last = row.Report
	if err := r.tellBandwidth(ctx, &row, s); err != nil {
		return err
	}
	if c.All && c.Test.Verb == Send {
		if err := r.barrier(ctx); err != nil {
			return err
		}
		r.release()
		// What was lost may have come meanwhile, late: it is none of the next size.
		return r.empty()
	}
	return nil
}

// tellBandwidth holds the result to be told, of both ends together if both have sent.
func (r *run) tellBandwidth(ctx context.Context, row *Row, s *stream) error {
	c := r.cfg
	if !c.Both || c.Test.Verb == Send && c.Duration > 0 {
		row.AfterIntervals = c.Interval > 0
		// The ends do not tell each other, as this one has seen what both have sent.
		size := int(row.Size)
		sent := Row{Report: s.sample(size, s.sampled[0]), CPUUtil: row.CPUUtil}
		came := Row{Report: s.sample(size, s.sampled[1])}
		r.hold(func() {
			r.tell.Row(&r.info, row)
			if c.Separate {
				r.tell.Both(&r.info, &sent, &came)
			}
		})
		return nil
	}
	remote, err := r.reports(ctx)
	if err != nil {
		return err
	}
	both := *row
	both.AfterIntervals = c.Interval > 0
	both.Peak += remote.Peak
	both.Average += remote.Average
	both.MsgRate += remote.MsgRate
	r.hold(func() {
		r.tell.Row(&r.info, &both)
		if c.Separate {
			r.tell.Both(&r.info, row, &Row{Report: remote})
		}
	})
	return nil
}

// warmUp sends once what fits into the queue, for the caches. The peer, which is passive, may
// answer nothing of that.
func (r *run) warmUp(ctx context.Context) error {
	ctx = r.dog.begin(ctx, r.end, nil)
	defer r.dog.stop()
	for i := range r.flows {
		f := &r.flows[i]
		for n := range r.cfg.TxDepth {
			if err := f.post(n == r.cfg.TxDepth-1); err != nil {
				return err
			}
		}
		for n := 0; n == 0; {
			var err error
			if n, err = r.await(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// goOn runs until it is interrupted and tells a result each time that the duration
// has passed.
func (r *run) goOn(ctx context.Context, s *stream, size int) error {
	s.timer = timer{window: int64(r.cfg.Duration), cpu: r.cfg.CPUUtil}
	s.again = func() {}
	if s.sending {
		s.again = func() {
			r.tell.Row(&r.info, &Row{
				Report: s.report(size), CPUUtil: cpuUtil(s.load), Strays: r.strays,
			})
		}
	}
	return r.watched(ctx, s.run)
}

// measureLatency is the test of one size.
func (r *run) measureLatency(ctx context.Context, size int) error {
	c := r.cfg
	r.prepare(size)
	if c.receives() {
		if err := r.supply(); err != nil {
			return err
		}
		if err := r.barrier(ctx); err != nil {
			return err
		}
	}
	row := Row{}
	row.Size, row.Iters = uint64(size), uint64(c.total())
	if c.Test.Answered() {
		t := newRoundtrip(r.end, r.happened)
		if err := r.watched(ctx, t.run); err != nil {
			return err
		}
		row.setLatency(c, &t.timer, &t.sample, t.at, 1)
	} else {
		p := newPingpong(r.end, size, r.happened)
		if err := r.watched(ctx, p.run); err != nil {
			return err
		}
		row.setLatency(c, &p.timer, &p.sample, p.at, 2)
	}
	row.Strays = r.takeStrays()
	r.hold(func() { r.tell.Row(&r.info, &row) })
	return nil
}

// setLatency is the result of a loop, of which a round trip has one or two ways.
func (row *Row) setLatency(c *Config, t *timer, sample *trips, at []int64, ways int) {
	if c.Duration == 0 {
		l := latency(at, ways, c.Samples)
		row.Latency = &l
		return
	}
	row.CPUUtil = cpuUtil(t.load)
	row.Iters = sample.counted
	if seconds := float64(sample.last-t.from) / 1e9; seconds > 0 && sample.counted > 0 {
		row.TPS = float64(sample.counted) / seconds
		row.Average = 1e6 / row.TPS / float64(ways)
	}
}
