package load

import (
	"xroce/bench/worker"
	"xroce/roce"
)

// Calls are requests of one SEND, each answered with one, over many queue pairs, with one
// under way on each: what a server of many clients does. The number of a receive is that of
// its queue pair.

// receive posts a receive to a queue pair.
func (c *conn) receive(i uint64) error {
	c.call.WRID = i
	return c.qps[i].PostRecv(&c.call)
}

// openCalls posts receives to each queue pair; the first has many already. One would do, but
// then each end would tell the other of it whenever it is posted again.
func (c *conn) openCalls() error {
	c.call.SGList = []roce.SGE{c.mr.SGE(0, len(c.mr.Bytes()))}
	for i := 1; i < len(c.qps); i++ {
		for range manyDepth {
			if err := c.receive(uint64(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// answerCalls takes messages that came, and sends one back on the queue pair of each. It
// returns how many came.
func (c *conn) answerCalls(wr *roce.SendWR) (came uint64, err error) {
	done, err := c.poll()
	if err != nil {
		return 0, err
	}
	for k := range done {
		if done[k].Opcode != roce.WCRecv {
			continue
		}
		i := done[k].WRID
		came++
		if err := c.receive(i); err != nil {
			return 0, err
		}
		if err := c.qps[i].PostSend(wr); err != nil {
			return 0, err
		}
	}
	return came, nil
}

// beginCalls waits until the other end has connected, and returns what a call is.
func (c *conn) beginCalls(o worker.Options) (wr roce.SendWR, err error) {
	if err := c.awaitNote(noteLimit); err != nil {
		return wr, err
	}
	if err := c.openCalls(); err != nil {
		return wr, err
	}
	wr = c.message(o)
	wr.Flags = 0
	return wr, nil
}

// rcCall begins a call on each queue pair, once the other end has connected all of its own,
// and the next one with each answer.
func rcCall(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	wr, err := c.beginCalls(o)
	if err != nil {
		return nil, 0, nil, err
	}
	for _, qp := range c.qps {
		if err := qp.PostSend(&wr); err != nil {
			return nil, 0, nil, err
		}
	}
	var total uint64
	w := c.newWindow(o)
	for w.Tick(w.Now(), total) {
		came, err := c.answerCalls(&wr)
		if err != nil {
			return nil, 0, nil, err
		}
		total += came
	}
	c.linger()
	return w, total, nil, nil
}

// rcAnswer answers calls until none came for a while.
func rcAnswer(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	if err := c.openCalls(); err != nil {
		return nil, 0, nil, err
	}
	// The note that all is connected. Whoever waited for it to be acknowledged would take
	// the first calls meanwhile.
	if err := c.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend}); err != nil {
		return nil, 0, nil, err
	}
	wr := c.message(o)
	wr.Flags = 0
	var total uint64
	w := c.newWindow(o)
	last := w.Now()
	for {
		now := w.Now()
		open := w.Tick(now, total)
		came, err := c.answerCalls(&wr)
		if err != nil {
			return nil, 0, nil, err
		}
		if came > 0 {
			total, last = total+came, now
		}
		if !open && now-last > 2*worker.Quiet {
			return w, total, nil, nil
		}
	}
}
