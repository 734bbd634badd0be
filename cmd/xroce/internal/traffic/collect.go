package traffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/xsk"
)

// A Collector runs a Sink over a link.
type Collector struct {
	Link  xsk.Link
	Sink  *Sink
	Clock Clock
	Keep  bool       // go on when all flows have ended
	For   clock.Time // how long at most, 0 for as long as it takes
	Count uint64     // end behind so many frames of flows, 0 for no number

	// Guard, if not nil, is held while the Sink takes frames, so that others may read counts.
	Guard sync.Locker

	Interval clock.Time // how often Row is called, 0 for never
	Row      func(Row)

	batch [64]xsk.RxFrame
	reply [1]xsk.TxFrame
	row   Row
}

// How long nothing must come after the end of all flows before it is believed. A generator that
// missed the answer tells its end again, and one whose frames have not all come always does.
const (
	quiet  = 300 * clock.Millisecond
	unsure = 2 * clock.Second // as long as SendPort.Confirm asks
)

// step bounds a wait, so that its end is seen.
const step = 20 * time.Millisecond

// Run collects until all flows have ended, and nothing comes any more, or what the Collector
// is told ends it. The end of the context is no error.
func (c *Collector) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, c.Link.Wake)
	defer stop()
	begun := c.Clock.Now()
	looked := begun
	// awake is how long this looked at the link: who was stopped finds frames that came
	// meanwhile, and whoever sends them may have been stopped, too. last is when one came.
	var awake, last clock.Time
	for ctx.Err() == nil {
		now := c.Clock.Now()
		c.tell(now - begun)
		awake += min(now-looked, clock.Time(step))
		looked = now
		c.Sink.Expire(awake)
		n, err := c.round()
		if err != nil {
			return err
		}
		if n > 0 {
			last = awake
		}
		switch {
		case c.For > 0 && now-begun >= c.For:
			return nil
		case c.Count > 0 && c.Sink.totals.Signed >= c.Count:
			return nil
		case n > 0:
			continue
		case !c.Keep && c.silent(awake-last):
			return nil
		}
		if err := c.Link.Wait(step); err != nil {
			return fmt.Errorf("receive: %w", err)
		}
	}
	return nil
}

// silent reports whether all flows have ended, and nothing has come for long enough since.
func (c *Collector) silent(since clock.Time) bool {
	return c.Sink.Over() && since >= quiet && (since >= unsure || c.Sink.settled())
}

// round takes a batch of frames.
func (c *Collector) round() (int, error) {
	n := c.Link.Receive(c.batch[:])
	if n == 0 {
		return 0, nil
	}
	wall := c.Clock.Wall()
	var err error
	if c.Guard != nil {
		c.Guard.Lock()
		defer c.Guard.Unlock()
	}
	for i := range c.batch[:n] {
		f := &c.batch[i]
		if asks, of := c.Sink.Frame(f.Head, f.Tail, wall); asks != nil && err == nil {
			err = c.answer(asks, of)
		}
	}
	c.Link.Release(c.batch[:n])
	return n, err
}

// answer tells the sender how much of its flow came. Without a free frame it is not told now,
// and asks again.
func (c *Collector) answer(to []byte, of gen.Account) error {
	if c.Link.Reserve(c.reply[:]) == 0 {
		return c.flush()
	}
	n := gen.Answer(c.reply[0].Data, to, of)
	if n == 0 {
		c.Link.Return(c.reply[:])
		return nil
	}
	c.reply[0].Len = n
	c.Link.Transmit(c.reply[:])
	return c.flush()
}

// flush sends answers. While the interface is down they stay where they are, and what was counted
// is not given up for that.
func (c *Collector) flush() error {
	err := c.Link.Flush()
	if errors.Is(err, unix.ENETDOWN) {
		return nil
	}
	return err
}

// tell calls Row when an interval is over.
func (c *Collector) tell(now clock.Time) {
	if c.Interval == 0 || now-c.row.To < c.Interval {
		return
	}
	t := c.Sink.Totals()
	counts, _ := c.Sink.Counts()
	was := c.row
	c.row = Row{From: was.To, To: now, Frames: t.Signed, Bytes: t.Bytes, Lost: counts.Lost}
	d := c.row
	d.Frames -= was.Frames
	d.Bytes -= was.Bytes
	d.Lost -= min(was.Lost, d.Lost)
	c.Row(d)
}
