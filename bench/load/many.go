package load

import (
	"xroce/bench/worker"
	"xroce/roce"
)

// A rota spreads messages over many queue pairs: one to each in turn, until the
// one whose turn it is has its share in flight.
type rota struct {
	depth, every uint32 // messages in flight of each, and how many share a completion
	next         int    // whose turn it is
	posted       []uint32
	inFlight     []uint32
}

// newRota plans for n queue pairs: one alone may fill its queue, of many each has a
// few messages.
func newRota(n int) *rota {
	depth := uint32(sendDepth)
	if n > 1 {
		depth = manyDepth
	}
	return &rota{
		depth: depth, every: min(32, depth/2),
		posted: make([]uint32, n), inFlight: make([]uint32, n),
	}
}

// turn is the queue pair to post to, false when it has to wait. signaled says that
// the message shall have a completion.
func (r *rota) turn() (i int, signaled, ok bool) {
	i = r.next
	if r.inFlight[i] >= r.depth {
		return i, false, false
	}
	return i, (r.posted[i]+1)%r.every == 0, true
}

// took notes that the queue pair whose turn it was has got its message.
func (r *rota) took() {
	r.posted[r.next]++
	r.inFlight[r.next]++
	r.next = (r.next + 1) % len(r.posted)
}

// done notes a completion and returns how many messages it stands for.
func (r *rota) done(i int) uint64 {
	r.inFlight[i] -= r.every
	return uint64(r.every)
}

// rcWriteMany spreads WRITEs over all queue pairs. It begins when the other end
// has connected all of its own.
func rcWriteMany(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	if err := c.awaitNote(noteLimit); err != nil {
		return nil, 0, nil, err
	}
	wr := c.writeTo(o)
	r := newRota(len(c.qps))
	var total uint64
	w := c.newWindow(o)
	for w.Tick(w.Now(), total) {
		for {
			i, signaled, ok := r.turn()
			if !ok {
				break
			}
			wr.WRID, wr.Flags = uint64(i), 0
			if signaled {
				wr.Flags = roce.SendSignaled
			}
			if err := c.qps[i].PostSend(&wr); err != nil {
				return nil, 0, nil, err
			}
			r.took()
		}
		finished, err := c.poll()
		if err != nil {
			return nil, 0, nil, err
		}
		for k := range finished {
			total += r.done(int(finished[k].WRID))
		}
	}
	return w, total, nil, c.note()
}

// rcTargetMany lets the other end write when everything is connected here.
func rcTargetMany(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	if err := c.note(); err != nil {
		return nil, 0, nil, err
	}
	return rcTarget(c, o)
}
