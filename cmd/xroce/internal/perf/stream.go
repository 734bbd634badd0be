package perf

import (
	"context"
	"errors"
	"fmt"

	"xroce/engine/oob/perftest"
	"xroce/roce"
)

// A stream is the loop of a bandwidth test: it posts sends, or receives, or both,
// as many as the queues hold, and counts what completes.
type stream struct {
	*end
	clock
	timer
	pacer
	intervals
	progress func(uint64) // is told that something happened

	sending, receiving bool
	held               bool   // do not send before something has come
	limit              uint64 // messages of each QP, 0 for no limit
	total              uint64 // of all QPs, as above

	posted, completed, delivered uint64    // of all QPs
	sampled                      [2]uint64 // in the sample of a run by duration: sent, received
	first, last                  int64     // time of the first post, or message, and of the last
	postedAt, completedAt        []int64
	replenish                    []int // receives of each QP that wait for a list to be full

	again func() // tells an interval of a run without an end, nil for other runs
}

// newStream makes the loop for messages of a size. Its buffers are all that it will
// allocate.
func newStream(e *end, size int, progress func(uint64)) *stream {
	c := e.cfg
	s := &stream{
		end: e, timer: newTimer(c), progress: progress,
		sending: c.first() || c.Both, receiving: c.receives(),
		held:      c.Both && c.Test.Verb == Send && !c.first(),
		total:     uint64(c.total()),
		replenish: make([]int, c.QPs),
	}
	if s.total > 0 {
		s.limit = uint64(c.Iters)
	}
	s.pacer = pacer{gap: int64(c.Rate.gap(size, c.burst())), burst: c.burst()}
	if s.sending && !c.NoPeak {
		s.postedAt, s.completedAt = make([]int64, s.total), make([]int64, s.total)
	}
	return s
}

// run moves the messages. It returns errLost when some were lost on the way.
func (s *stream) run(ctx context.Context) error {
	s.clock = newClock()
	// What was lost, or failed, may have come to something before.
	defer func() { s.intervals.finish(s.now(), s.moved()) }()
	if s.sending && !s.held {
		s.start(0)
		s.begin(0)
	}
	for !s.finished() {
		if s.sending && !s.held {
			if err := s.fill(); err != nil {
				return err
			}
		}
		n, err := s.take(ctx)
		if err != nil {
			return s.explain(err)
		}
		before := s.completed + s.delivered
		for i := range s.wcs[:n] {
			if err := s.complete(i); err != nil {
				return err
			}
		}
		if n > 0 {
			s.progress(s.completed + s.delivered)
			s.advance(before > 0)
		}
		if s.timer.state != phaseIdle {
			s.timer.tick(s.now())
		}
		if s.every != 0 {
			s.intervals.tick(s.now(), s.moved())
		}
		if s.over() && s.again != nil {
			s.again()
			s.sampled, s.timer.state = [2]uint64{}, phaseIdle
			s.start(s.now())
		}
	}
	s.last = s.now()
	return nil
}

// advance notes when the last messages came, in case that the rest is lost, which is waited for in
// vain. The first that came together, further reports whether there were some before, took no time,
// unless that began when this end sent.
func (s *stream) advance(further bool) {
	if s.cfg.Type != roce.TypeRC {
		if s.last = s.first; further || s.first == 0 {
			s.last = s.now()
		}
	}
}

// take returns what has completed. It waits only when nothing can be posted.
func (s *stream) take(ctx context.Context) (int, error) {
	if s.gap == 0 {
		return s.await(ctx)
	}
	// A paced loop has to come back in time to send.
	n, err := s.cq.Poll(s.wcs[:])
	if n, err = s.check(n, err); n == 0 && err == nil {
		err = s.alive(ctx)
	}
	return n, err
}

// explain says how far the test has come.
func (s *stream) explain(err error) error {
	if errors.Is(err, errLost) {
		return err
	}
	return fmt.Errorf("after %d sends and %d receives of %s: %w", s.completed, s.delivered,
		s.cfg.whole(), err)
}

// finished reports whether all is done, or the time is up.
func (s *stream) finished() bool {
	if s.total == 0 {
		return s.over()
	}
	return (!s.sending || s.completed >= s.total) && (!s.receiving || s.delivered >= s.total)
}

// fill posts sends, QP after QP, as many as there is room for.
func (s *stream) fill() error {
	list := uint64(s.cfg.PostList)
	room := uint64(s.cfg.TxDepth)
	for i := range s.flows {
		f := &s.flows[i]
		for (s.limit == 0 || f.posted < s.limit) && f.posted-f.completed < room {
			if s.gap != 0 && !s.open(s.now()) {
				return nil
			}
			if s.postedAt != nil {
				s.postedAt[s.posted] = s.now()
			}
			for k := range list {
				if err := s.postOne(f, k == list-1); err != nil {
					return err
				}
			}
			s.sent(int(list))
		}
	}
	return nil
}

// postOne posts a send of a list. The last one of the test makes a completion, and
// each CQMod-th, which is the last of a list.
func (s *stream) postOne(f *flow, endsList bool) error {
	next := f.posted + 1
	signaled := endsList && (next%uint64(s.cfg.CQMod) == 0 || next == s.limit)
	if err := f.post(signaled); err != nil {
		return fmt.Errorf("post send %d: %w", s.posted+1, err)
	}
	s.posted++
	if s.postedAt != nil && !endsList && s.posted < s.total {
		s.postedAt[s.posted] = s.postedAt[s.posted-1]
	}
	return nil
}

// complete accounts for a completion.
func (s *stream) complete(i int) error {
	id := s.wcs[i].WRID
	f := &s.flows[wridQP(id)]
	if id&wridRecv != 0 {
		return s.received(f, wridQP(id))
	}
	n := id&wridCount - f.completed
	f.completed += n
	s.completed += n
	if s.completedAt != nil {
		s.completedAt[min(s.completed, s.total)-1] = s.now()
	}
	if s.counts() {
		s.sampled[0] += n
	}
	return nil
}

// received accounts for a message and posts a receive for another one.
func (s *stream) received(f *flow, qp int) error {
	if s.delivered == 0 && (s.held || !s.sending) { // else the first post was before
		s.first = s.now()
		s.start(s.first)
		s.begin(s.first)
		s.held = false
	}
	f.delivered++
	s.delivered++
	if s.counts() {
		s.sampled[1]++
	}
	if s.limit != 0 && f.supplied+uint64(s.replenish[qp]) >= s.limit {
		return nil
	}
	if s.replenish[qp]++; s.replenish[qp] < s.cfg.RecvPostList &&
		(s.limit == 0 || f.supplied+uint64(s.replenish[qp]) < s.limit) {
		return nil
	}
	for ; s.replenish[qp] > 0; s.replenish[qp]-- {
		if err := f.supply(); err != nil {
			return fmt.Errorf("post receive %d: %w", f.supplied, err)
		}
	}
	return nil
}

// moved is how many messages count: those sent, or received where none is.
func (s *stream) moved() uint64 {
	if s.sending {
		return s.completed
	}
	return s.delivered
}

// report is the result, in the unit of the configuration.
func (s *stream) report(size int) perftest.Report {
	r := perftest.Report{Size: uint64(size), Iters: s.total}
	from, to := s.first, s.last
	switch {
	case s.total == 0:
		return s.sample(size, s.sampled[0]+s.sampled[1])
	case !s.sending:
		r.Iters = s.delivered
	default:
		r.Iters = s.completed
		if s.postedAt != nil {
			from, to = s.postedAt[0], s.completedAt[max(s.completed, 1)-1]
		}
	}
	s.rate(&r, to-from)
	if to > from && s.postedAt != nil && s.completed >= s.total {
		r.Peak = float64(size) / (fastest(s.postedAt, s.completedAt) / 1e9) / s.cfg.unit()
	}
	return r
}

// sample is the result of so many messages in the sample of a run by duration.
func (s *stream) sample(size int, messages uint64) perftest.Report {
	r := perftest.Report{Size: uint64(size), Iters: messages}
	s.rate(&r, s.timer.to-s.timer.from)
	return r
}

// rate fills in how fast the messages of a report were, which took a time.
func (s *stream) rate(r *perftest.Report, took int64) {
	seconds := float64(took) / 1e9
	if seconds <= 0 {
		return
	}
	r.Average = float64(r.Size) * float64(r.Iters) / seconds / s.cfg.unit()
	r.MsgRate = float64(r.Iters) / seconds / 1e6
}

// unit is the bytes per second of the unit that bandwidth is told in.
func (c *Config) unit() float64 {
	if c.Gbits {
		return 1e9 / 8
	}
	return 1 << 20
}
