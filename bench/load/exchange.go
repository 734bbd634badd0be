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
			came := received(done)
			if came > 0 {
				total, last = total+came, now
			}
			for range came {
				if how == noAnswer {
					break
				}
				if err := c.qp.PostSend(&reply); err != nil {
					return nil, 0, nil, err
				}
			}
			if err := c.refill(came, how == noAnswer || came == 0); err != nil {
				return nil, 0, nil, err
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
			came, err := c.awaitAnswer(next)
			if err != nil {
				return nil, 0, nil, err
			}
			rtt := w.Now() - sent
			total++
			if w.Open() {
				// Retries end long before the histogram does.
				_ = hist.RecordValue(rtt.Nanoseconds())
			}
			if err := c.refill(came, true); err != nil {
				return nil, 0, nil, err
			}
		}
		// The other end's window may end a little later, and what it hears of the end
		// of this device is not its work.
		c.linger()
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

// awaitAnswer takes completions until there are received messages among them, and
// returns how many. The error is errUnanswered when there are none for too long.
func (c *conn) awaitAnswer(next func() ([]roce.Completion, error)) (uint64, error) {
	for quiet := (lull{}); ; {
		done, err := next()
		if err != nil {
			return 0, err
		}
		if came := received(done); came > 0 {
			return came, nil
		}
		if err := quiet.heard(0, c.now); err != nil {
			return 0, err
		}
	}
}

// received is how many completions are those of received messages.
func received(done []roce.Completion) (n uint64) {
	for i := range done {
		if done[i].Opcode == roce.WCRecv {
			n++
		}
	}
	return n
}

// refill notes that n receives were consumed, and posts as many as are missing when
// there is time, or not many left. An end that answers has time when the answer is
// on its way: there are enough receives to be late with some.
func (c *conn) refill(n uint64, now bool) error {
	c.consumed += n
	if !now && c.consumed < recvDepth/2 {
		return nil
	}
	err := c.postRecvs(c.consumed)
	c.consumed = 0
	return err
}
