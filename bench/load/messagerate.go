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
	sends := make([]msg.Send, depth(o))
	data := [][]byte{make([]byte, o.Message)}
	data[0][0] = 1
	for i := range sends {
		sends[i].Buffers = data
	}
	burst := ticks(o)
	d.window = worker.NewWindow(o)
	end := o.Warmup + o.Window + overtime
	at := 0
	for now := d.window.Now(); d.window.Tick(now, d.total) || now < end; now = d.window.Now() {
		for range burst {
			s := &sends[at]
			if d.total >= uint64(len(sends)) {
				if err := s.Wait(m.ctx); err != nil {
					return d, err
				}
			}
			if err := c.PostSend(s); err != nil {
				return d, err
			}
			d.total++
			if at++; at == len(sends) {
				at = 0
			}
		}
	}
	for i := range min(d.total, uint64(len(sends))) {
		if err := sends[i].Wait(m.ctx); err != nil {
			return d, err
		}
	}
	return d, m.goodbye(c)
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
	receives := make([]msg.Receive, depth(o))
	room := [][]byte{make([]byte, o.Message)}
	for i := range receives {
		receives[i].Buffers = room
		receives[i].From = c
		if err := m.endpoint.PostReceive(&receives[i]); err != nil {
			return d, err
		}
	}
	burst := ticks(o)
	d.window = worker.NewWindow(o)
	for at := 0; ; {
		d.window.Tick(d.window.Now(), d.total)
		for range burst {
			r := &receives[at]
			if err := r.Wait(m.ctx); err != nil {
				return d, err
			}
			if r.Whole == 0 {
				d.window.Close(d.total)
				return d, check(room[0], d.total)
			}
			d.total++
			if err := m.endpoint.PostReceive(r); err != nil {
				return d, err
			}
			if at++; at == len(receives) {
				at = 0
			}
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
