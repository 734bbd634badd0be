package traffic

import (
	"context"
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/xsk"
)

// A Sender sends the frames of flows in turn over a link.
type Sender struct {
	Link     xsk.Link
	Flows    []*gen.Flow
	Other    Frames // in place of flows, nil for those
	Schedule *gen.Schedule
	Count    uint64 // no more frames than that, but for segments; 0 for as many as are due
	Batch    int    // most frames of one system call
	Clock    Clock

	// Meanwhile, if not nil, is called in each round. An error ends the run.
	Meanwhile func() error

	Rows

	batch  []xsk.TxFrame
	next   int // flow
	begun  clock.Time
	result Sent
}

// Frames are what a Sender sends: a flow, or another maker of frames.
type Frames interface {
	// Next writes the next frame, made at a time in nanoseconds, and returns its length, or 0.
	Next(frame []byte, now int64) int
	// Err is why there was none.
	Err() error
}

// Sent is what a Sender did.
type Sent struct {
	Frames   uint64     // that went to the kernel
	Whole    uint64     // of those, without segments but the last of a frame
	Bytes    uint64     // of them, without FCS
	Dropped  uint64     // of those, that the kernel says were lost
	Duration clock.Time // from the first to the end
	Late     clock.Time // how far the schedule was behind at the end, 0 when it was not
}

// lateFor is how long behind its end a schedule may still send what was due: a tenth of it, at
// most that long.
const lateFor = 100 * clock.Millisecond

// patience is how long the kernel has to take what was sent.
const patience = clock.Second

// Run sends until the schedule is over, Count is reached, or the context ends, which is no
// error. Then all has left the link. The segments of a frame go without a pause, and a frame that
// has begun is finished.
func (s *Sender) Run(ctx context.Context) (Sent, error) {
	s.batch = make([]xsk.TxFrame, s.Batch)
	s.begun = s.Clock.Now()
	end := s.Schedule.Length()
	if end > 0 {
		end += min(end/10, lateFor)
	}
	for ctx.Err() == nil && (s.Count == 0 || s.result.Frames < s.Count) {
		now := s.Clock.Now() - s.begun
		s.tell(now)
		if s.Meanwhile != nil {
			if err := s.Meanwhile(); err != nil {
				return s.result, err
			}
		}
		at, ok := s.Schedule.Next(now)
		if left := s.Schedule.Length() - now; !ok && left > 0 {
			// The time of the last frame is part of the rate, as of all others.
			s.Clock.Sleep(ctx, s.until(left, now))
			continue
		}
		if !ok || end > 0 && now > end {
			if ok {
				s.result.Late = now - s.Schedule.Length()
			}
			break
		}
		if at > now && s.left() == 0 {
			s.Clock.Sleep(ctx, s.until(at-now, now))
			continue
		}
		want := len(s.batch)
		if s.Count > 0 {
			want = int(min(uint64(want), s.Count-s.result.Frames))
		}
		if err := s.send(now, want); err != nil {
			return s.result, err
		}
	}
	if err := s.finish(); err != nil {
		return s.result, err
	}
	s.result.Duration = s.Clock.Now() - s.begun
	s.tellRest(s.result.Duration)
	return s.result, s.drain(ctx)
}

// left is how many segments there are to come of the frame before, which go before all else.
func (s *Sender) left() int {
	if s.Other != nil {
		return 0
	}
	return s.Flows[s.next].Left()
}

// finish sends the segments that are left, and frames that were to come behind another one.
func (s *Sender) finish() error {
	end := s.Clock.Now() + patience
	rest := func() error {
		for s.left() > 0 && s.Clock.Now() < end {
			if err := s.send(s.Clock.Now()-s.begun, min(s.left(), len(s.batch))); err != nil {
				return err
			}
		}
		return nil
	}
	err := rest()
	if s.Other != nil {
		return err
	}
	for i, f := range s.Flows {
		for err == nil && f.Held() && s.Clock.Now() < end {
			s.next = i
			if err = s.send(s.Clock.Now()-s.begun, 1); err == nil && s.next == i {
				err = rest()
			}
		}
	}
	return err
}

// send sends a batch of what is due, and of segments.
func (s *Sender) send(now clock.Time, want int) error {
	got := s.Link.Reserve(s.batch[:want])
	wall := s.Clock.Wall()
	n, bytes := 0, uint64(0)
	var failed error
	for n < got {
		if n > 0 && s.left() == 0 {
			if at, ok := s.Schedule.Next(now); !ok || at > now {
				break
			}
		}
		if s.Count > 0 && s.left() == 0 && s.lastTurn(uint64(n)) {
			s.Flows[s.next].Last()
		}
		f := &s.batch[n]
		if f.Len, failed = s.write(f.Data, wall); f.Len == 0 {
			break
		}
		s.Schedule.Spend(f.Len)
		bytes += uint64(f.Len)
		n++
	}
	s.Link.Transmit(s.batch[:n])
	s.Link.Return(s.batch[n:got])
	s.result.Frames += uint64(n)
	s.result.Bytes += bytes
	s.add(uint64(n), bytes)
	if err := s.Link.Flush(); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return failed
}

// lastTurn reports whether the flow whose turn it is has no other one, when so many frames are in
// the batch already.
func (s *Sender) lastTurn(batched uint64) bool {
	return s.Other == nil && s.result.Frames+batched+uint64(len(s.Flows)) >= s.Count
}

// write writes the frame of whose turn it is.
func (s *Sender) write(frame []byte, wall int64) (n int, err error) {
	if s.Other != nil {
		if n = s.Other.Next(frame, wall); n == 0 {
			err = s.Other.Err()
		}
		s.result.Whole++
		return n, err
	}
	f := s.Flows[s.next]
	if n = f.Next(frame, wall); n == 0 {
		return 0, f.Err()
	}
	if f.Left() == 0 {
		s.result.Whole++
		if s.next++; s.next == len(s.Flows) {
			s.next = 0
		}
	}
	return n, nil
}

// drain waits until the kernel has taken all that was sent, and reads what became of it.
func (s *Sender) drain(ctx context.Context) error {
	for end := s.Clock.Now() + patience; ; s.Clock.Sleep(ctx, clock.Millisecond) {
		if err := s.Link.Flush(); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		st, err := s.Link.Stats()
		if err != nil {
			return err
		}
		if st.TxOutstanding == 0 || s.Clock.Now() > end {
			s.result.Dropped = st.TxBusy + st.TxOutstanding
			return nil
		}
		// What the kernel has sent comes back here.
		s.Link.Return(s.batch[:s.Link.Reserve(s.batch)])
	}
}

// End writes the last frame of each flow that is not done, and flushes them.
func (s *Sender) End(done func(flow int) bool) error {
	for i, f := range s.Flows {
		if done(i) || f.Silent() {
			continue
		}
		if s.Link.Reserve(s.batch[:1]) == 0 {
			if err := s.Link.Flush(); err != nil {
				return err
			}
			if s.Link.Reserve(s.batch[:1]) == 0 {
				continue // it is told again
			}
		}
		if s.batch[0].Len = f.End(s.batch[0].Data, s.Clock.Wall()); s.batch[0].Len == 0 {
			s.Link.Return(s.batch[:1])
			return f.Err()
		}
		s.Link.Transmit(s.batch[:1])
	}
	return s.Link.Flush()
}

// Numbered is how many frames the flows had that a sink counts, with those that are missing on
// purpose and without repetitions.
func (s *Sender) Numbered() (sum uint64) {
	for _, f := range s.Flows {
		sum += f.Signed()
	}
	return sum
}
