package traffic

import (
	"context"
	"fmt"
	"time"

	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk"
)

// Requests sends the packets of connections over a link, and takes what the peer answers. New
// packets go by the schedule; what goes again goes at once.
type Requests struct {
	Link     xsk.Link
	Peer     wire.GID // whose answers are taken
	Conns    []*gen.Requester
	Schedule *gen.Schedule
	// Count ends it behind so many new packets, or one more that one of these was swapped with;
	// 0 for as many as the schedule has.
	Count uint64
	Batch int // most frames of one system call
	Clock Clock

	Rows

	batch  []xsk.TxFrame
	rx     [64]xsk.RxFrame
	packet wire.Packet
	next   int // connection
	begun  clock.Time
	last   clock.Time // when the last new packet was due
	made   uint64
	result Requested
}

// Requested is what came of connections.
type Requested struct {
	Sent
	gen.RequesterStats
	New     uint64 // packets that went for the first time, with those missing on purpose
	Open    int    // connections with requests that nobody answered until the end
	Damaged uint64 // packets that came and were none of RoCE, or had a wrong ICRC
	Others  uint64 // packets of other hosts, or for other queue pairs
}

// answerTime is how long behind the schedule answers are waited for. A peer that does not answer
// at all ends its connection sooner, by its timeouts.
const answerTime = 10 * clock.Second

// longWait bounds a wait, so that the end of the context is seen at the latest then.
const longWait = 20 * clock.Millisecond

// Run sends until the schedule is over or Count is reached, and all is answered; or a connection
// ends, with its error; or the context does, which is no error.
func (s *Requests) Run(ctx context.Context) (Requested, error) {
	stop := context.AfterFunc(ctx, s.Link.Wake)
	defer stop()
	s.batch = make([]xsk.TxFrame, s.Batch)
	s.begun = s.Clock.Now()
	var err error
	for over := false; err == nil && ctx.Err() == nil && !(over && s.answered()); {
		over, err = s.round(ctx)
	}
	s.result.Duration = s.Clock.Now() - s.begun
	s.finish()
	return s.result, err
}

// answered reports whether nothing is left to wait for.
func (s *Requests) answered() bool {
	for _, c := range s.Conns {
		if !c.Idle() {
			return s.Clock.Now()-s.begun > s.last+answerTime
		}
	}
	return true
}

// round takes what came, sends what may go, and waits when there was neither. over says that no
// new packets are due any more.
func (s *Requests) round(ctx context.Context) (over bool, err error) {
	now := s.Clock.Now() - s.begun
	s.tell(now)
	came := s.receive(now)
	wake := now + longWait
	for _, c := range s.Conns {
		c.Expire(now)
		if c.Err() != nil {
			return true, fmt.Errorf("QP 0x%06x: %w", c.QPN(), c.Err())
		}
		if at, ok := c.Deadline(now); ok {
			wake = min(wake, at)
		}
	}
	sent, at, over := s.send(now)
	if err := s.Link.Flush(); err != nil {
		return over, fmt.Errorf("send: %w", err)
	}
	if came+sent > 0 || s.Link.Pending() {
		return over, nil
	}
	return over, s.wait(ctx, min(wake, at)-now)
}

// wait waits for packets.
func (s *Requests) wait(ctx context.Context, d clock.Time) error {
	if d < shortSleep {
		s.Clock.Sleep(ctx, d)
		return nil
	}
	if err := s.Link.Wait(time.Duration(d)); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

// receive takes a batch of what came.
func (s *Requests) receive(now clock.Time) int {
	n := s.Link.Receive(s.rx[:])
	for i := range s.rx[:n] {
		s.take(&s.rx[i], now)
	}
	s.Link.Release(s.rx[:n])
	return n
}

func (s *Requests) take(f *xsk.RxFrame, now clock.Time) {
	p := &s.packet
	switch {
	case p.Decode(f.Head, f.Tail) != wire.OK || !p.VerifyICRC():
		s.result.Damaged++
		return
	case p.Src == s.Peer:
		for _, c := range s.Conns {
			if c.Handle(p, now) {
				return
			}
		}
	}
	s.result.Others++
}

// send sends a batch of what may go, and says when more is due.
func (s *Requests) send(now clock.Time) (sent int, at clock.Time, over bool) {
	at, over = s.due(now)
	got := s.Link.Reserve(s.batch)
	wall, bytes := s.Clock.Wall(), uint64(0)
	for sent < got {
		f := &s.batch[sent]
		f.Len = s.again(f.Data, now, wall)
		if f.Len == 0 && !over && at <= now {
			before := s.made
			f.Len = s.fresh(f.Data, now, wall)
			if s.made > before {
				if at, over = s.due(now); f.Len == 0 {
					continue // it is missing on purpose
				}
			} else {
				at = now + longWait // no window is open until somebody answers
			}
		}
		if f.Len == 0 {
			break
		}
		sent++
		bytes += uint64(f.Len)
	}
	s.Link.Transmit(s.batch[:sent])
	s.Link.Return(s.batch[sent:got])
	s.result.Frames += uint64(sent)
	s.result.Sent.Bytes += bytes
	s.add(uint64(sent), bytes)
	return sent, at, over
}

// due says when the next new packet may go, and whether there is none.
func (s *Requests) due(now clock.Time) (at clock.Time, over bool) {
	if s.Count > 0 && s.made >= s.Count {
		return now + longWait, true
	}
	at, ok := s.Schedule.Next(now)
	if end := s.Schedule.Length(); !ok || end > 0 && now > end+min(end/10, lateFor) {
		if ok {
			s.result.Late = max(0, now-end)
		}
		return now + longWait, true
	}
	s.last = now
	return at, false
}

// again writes a packet that goes again, of any connection.
func (s *Requests) again(frame []byte, now clock.Time, wall int64) int {
	for _, c := range s.Conns {
		if c.Again(now) {
			return c.Next(frame, now, wall)
		}
	}
	return 0
}

// fresh writes a new packet of the connection whose turn it is, or of the next whose window is
// open.
func (s *Requests) fresh(frame []byte, now clock.Time, wall int64) int {
	for range s.Conns {
		c := s.Conns[s.next]
		if s.next++; s.next == len(s.Conns) {
			s.next = 0
		}
		before := c.Flow().Sent()
		n := c.Next(frame, now, wall)
		s.made += c.Flow().Sent() - before
		if n > 0 {
			s.Schedule.Spend(n)
			return n
		}
	}
	return 0
}

// finish tells the last row, and sums up.
func (s *Requests) finish() {
	s.tellRest(s.result.Duration)
	sum := &s.result.RequesterStats
	for _, c := range s.Conns {
		t := c.Stats()
		sum.Packets += t.Packets
		sum.Messages += t.Messages
		sum.Bytes += t.Bytes
		sum.Resent += t.Resent
		sum.NAKs += t.NAKs
		sum.Timeouts += t.Timeouts
		sum.RNRs += t.RNRs
		sum.Implied += t.Implied
		sum.Ghosts += t.Ghosts
		sum.CNPs += t.CNPs
		if !c.Idle() {
			s.result.Open++
		}
	}
	s.result.New = s.made
}
