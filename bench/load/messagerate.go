package load

import (
	"time"

	"xroce/bench/worker"
	"xroce/engine/msg"
)

// overtime is how much longer than its window a sender goes on, so that the window of the
// receiver, which began a little later, is full to its end.
const overtime = 50 * time.Millisecond

// pour sends messages, as many at once as the depth says.
func (m *messenger) pour(o worker.Options) (d done, err error) {
	c, err := m.connect()
	if err != nil {
		return d, err
	}
	defer m.part(c)
	sends, list := make([]msg.Send, depth(o)), make([]*msg.Send, depth(o))
	data := [][]byte{make([]byte, o.Message)}
	data[0][0] = 1
	for i := range sends {
		sends[i].Buffers, list[i] = data, &sends[i]
	}
	d.window = worker.NewWindow(o)
	end := o.Warmup + o.Window + overtime
	rest := list
	for now := d.window.Now(); d.window.Tick(now, d.total) || now < end; now = d.window.Now() {
		burst := rest[:ticks(o)]
		if d.total >= uint64(len(sends)) {
			if err := m.sent(burst); err != nil {
				return d, err
			}
		}
		n, err := c.PostSends(burst)
		d.total += uint64(n)
		if err != nil {
			return d, err
		}
		if rest = rest[n:]; len(rest) == 0 {
			rest = list
		}
	}
	if err := m.sent(list[:min(d.total, uint64(len(list)))]); err != nil {
		return d, err
	}
	return d, m.goodbye(c)
}

// sent waits until the memory of messages may be used again.
func (m *messenger) sent(list []*msg.Send) error {
	for _, s := range list {
		if err := s.Wait(m.ctx); err != nil {
			return err
		}
	}
	return nil
}

// goodbye sends a message without a byte, which is the last one.
func (m *messenger) goodbye(c *msg.Conn) error { return c.Send(m.ctx, nil) }

// take takes messages until one has no byte.
func (m *messenger) take(o worker.Options) (d done, err error) {
	c, err := m.connect()
	if err != nil {
		return d, err
	}
	defer m.part(c)
	receives, list := make([]msg.Receive, depth(o)), make([]*msg.Receive, depth(o))
	room := [][]byte{make([]byte, o.Message)}
	for i := range receives {
		receives[i].Buffers, receives[i].From, list[i] = room, c, &receives[i]
	}
	if _, err := m.endpoint.PostReceives(list); err != nil {
		return d, err
	}
	d.window = worker.NewWindow(o)
	for rest := list; ; {
		d.window.Tick(d.window.Now(), d.total)
		burst := rest[:ticks(o)]
		for _, r := range burst {
			if err := r.Wait(m.ctx); err != nil {
				return d, err
			}
			if r.Whole == 0 {
				d.window.Close(d.total)
				return d, check(room[0], d.total)
			}
			d.total++
		}
		if _, err := m.endpoint.PostReceives(burst); err != nil {
			return d, err
		}
		if rest = rest[len(burst):]; len(rest) == 0 {
			rest = list
		}
	}
}

// check reports when the byte that is sent did not come.
func check(room []byte, came uint64) error {
	if came > 0 && room[0] == 0 {
		return errZeros
	}
	return nil
}
