package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xroce/bench/worker"
	"xroce/roce"
)

// An answering says how the end of an exchange waits, and whether it answers.
type answering int

// The ways to wait for a message.
const (
	noAnswer answering = iota // asleep, and say nothing
	sleeping
	spinning
)

// rcServe receives messages until none came for a while, and answers each with
// one of its length.
func rcServe(how answering) func(*conn, worker.Options) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	return func(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
		reply := c.message(o)
		var total uint64
		w := c.newWindow(o)
		last := w.Now()
		for {
			now := w.Now()
			open := w.Tick(now, total)
			next := c.wait
			if how == spinning && open {
				next = c.poll
			}
			done, err := next()
			if err != nil {
				return nil, 0, nil, err
			}
			for i := range done {
				if done[i].Opcode != roce.WCRecv {
					continue
				}
				total++
				last = now
				err = c.postRecv()
				if err == nil && how != noAnswer {
					err = c.qp.PostSend(&reply)
				}
				if err != nil {
					return nil, 0, nil, err
				}
			}
			if !open && len(done) == 0 && now-last > 2*worker.Quiet {
				return w, total, nil, nil
			}
		}
	}
}

// rcPing sends a message and waits for the answer, again and again.
func rcPing(how answering) func(*conn, worker.Options) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	return func(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
		next := c.wait
		if how == spinning {
			next = c.poll
		}
		wr := c.message(o)
		hist := hdrhistogram.New(1, int64(10*time.Second), 3)
		var total uint64
		w := c.newWindow(o)
		for w.Tick(w.Now(), total) {
			sent := w.Now()
			if err := c.qp.PostSend(&wr); err != nil {
				return nil, 0, nil, err
			}
			if err := c.awaitAnswer(next); err != nil {
				return nil, 0, nil, err
			}
			total++
			if w.Open() {
				// Retries end long before the histogram does.
				_ = hist.RecordValue((w.Now() - sent).Nanoseconds())
			}
		}
		return w, total, roundTrips(hist), nil
	}
}

// message is the SEND of an exchange.
func (c *conn) message(o worker.Options) roce.SendWR {
	return roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled,
		SGList: []roce.SGE{c.mr.SGE(0, o.Message)},
	}
}

// awaitAnswer takes completions until there is a received message among them.
func (c *conn) awaitAnswer(next func() ([]roce.Completion, error)) error {
	for {
		done, err := next()
		if err != nil {
			return err
		}
		answered := false
		for i := range done {
			if done[i].Opcode == roce.WCRecv {
				answered = true
				if err := c.postRecv(); err != nil {
					return err
				}
			}
		}
		if answered {
			return nil
		}
	}
}
