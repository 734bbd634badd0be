package load

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xroce/bench/worker"
	"xroce/engine/msg"
)

// A talk is one end of an exchange of messages, one at a time.
type talk struct {
	m       *messenger
	c       *msg.Conn
	send    msg.Send
	receive msg.Receive
}

func (m *messenger) newTalk(c *msg.Conn, o worker.Options) (*talk, error) {
	t := &talk{m: m, c: c}
	t.send.Buffers = [][]byte{make([]byte, o.Message)}
	t.receive.Buffers = [][]byte{make([]byte, o.Message)}
	t.receive.From = c
	return t, m.endpoint.PostReceive(&t.receive)
}

// say sends a message, whose memory the next one needs.
func (t *talk) say() error {
	if err := t.c.PostSend(&t.send); err != nil {
		return err
	}
	return t.send.Wait(t.m.ctx)
}

// ask sends a message, waits for the answer and says how long that took. What comes behind it
// takes its time while no answer is awaited, as that of SENDs beside it: to ask for the next one,
// and to see that the message was sent, since a rendezvous is over when the peer has read it.
func (t *talk) ask() (took time.Duration, err error) {
	began := time.Now()
	if err := t.c.PostSend(&t.send); err != nil {
		return 0, err
	}
	if err := t.receive.Wait(t.m.ctx); err != nil {
		return 0, err
	}
	took = time.Since(began)
	if err := t.m.endpoint.PostReceive(&t.receive); err != nil {
		return 0, err
	}
	return took, t.send.Wait(t.m.ctx)
}

// ping sends a message and waits for the answer, again and again.
func (m *messenger) ping(o worker.Options) (d done, err error) {
	c, err := m.connect()
	if err != nil {
		return d, err
	}
	defer m.part(c)
	t, err := m.newTalk(c, o)
	if err != nil {
		return d, err
	}
	hist := newRoundTrips()
	w := worker.NewWindow(o)
	d.window = w
	for w.Tick(w.Now(), d.total) {
		rtt, err := t.ask()
		if err != nil {
			return d, err
		}
		d.total++
		if w.Open() {
			_ = hist.RecordValue(rtt.Nanoseconds()) // the context ends before the histogram does
		}
	}
	d.rtt = roundTrips(hist)
	return d, m.goodbye(c)
}

// newRoundTrips is a histogram of nanoseconds.
func newRoundTrips() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }

// echo answers each message with one as long.
func (m *messenger) echo(o worker.Options) (d done, err error) {
	c, err := m.connect()
	if err != nil {
		return d, err
	}
	defer m.part(c)
	d.window = worker.NewWindow(o)
	err = m.answer(c, o, &d)
	d.window.Close(d.total)
	return d, err
}

// answer answers messages until one has no byte.
func (m *messenger) answer(c *msg.Conn, o worker.Options, d *done) error {
	t, err := m.newTalk(c, o)
	if err != nil {
		return err
	}
	whole := t.send.Buffers[0]
	for {
		d.window.Tick(d.window.Now(), d.total)
		if err := t.receive.Wait(m.ctx); err != nil || t.receive.Whole == 0 {
			return err
		}
		t.send.Buffers[0] = whole[:t.receive.Length]
		if err := t.say(); err != nil {
			return err
		}
		if err := m.endpoint.PostReceive(&t.receive); err != nil {
			return err
		}
		d.total++
	}
}

// ordinals are the messages of a connection whose round trips are told apart.
var ordinals = []int{1, 2, 10}

// first makes one connection after the other, and measures the first messages of each.
func (m *messenger) first(o worker.Options) (d done, err error) {
	hists := make([]*hdrhistogram.Histogram, len(ordinals))
	for i := range hists {
		hists[i] = newRoundTrips()
	}
	w := worker.NewWindow(o)
	d.window = w
	for w.Tick(w.Now(), d.total) {
		if err := m.few(o, func(n int, rtt time.Duration) {
			for i, ordinal := range ordinals {
				if n == ordinal && w.Open() {
					_ = hists[i].RecordValue(rtt.Nanoseconds())
				}
			}
		}); err != nil {
			return d, err
		}
		d.total++
	}
	for i, ordinal := range ordinals {
		d.nth = append(d.nth, worker.Nth{Message: ordinal, RTT: *roundTrips(hists[i])})
	}
	d.rtt = roundTrips(hists[0])
	return d, nil
}

// few exchanges the first messages of a new connection, behind a short one, which only shows
// that the slots of both ends are there.
func (m *messenger) few(o worker.Options, took func(n int, rtt time.Duration)) error {
	c, err := m.connect()
	if err != nil {
		return err
	}
	defer m.part(c)
	t, err := m.newTalk(c, o)
	if err != nil {
		return err
	}
	whole := t.send.Buffers[0]
	t.send.Buffers[0] = whole[:1]
	if _, err := t.ask(); err != nil {
		return err
	}
	t.send.Buffers[0] = whole
	for n := 1; n <= ordinals[len(ordinals)-1]; n++ {
		rtt, err := t.ask()
		if err != nil {
			return err
		}
		took(n, rtt)
	}
	return m.goodbye(c)
}

// early answers the first messages of one connection after the other, until nobody asks for one
// any more.
func (m *messenger) early(o worker.Options) (d done, err error) {
	d.window = worker.NewWindow(o)
	all := m.ctx
	defer func() { m.ctx = all }()
	for {
		// Who listens is told of the end by silence: its peer connects no more.
		ctx, cancel := context.WithTimeout(all, silence(d.window, o))
		m.ctx = ctx
		c, err := m.connect()
		m.ctx = all
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && all.Err() == nil {
			d.window.Tick(d.window.Now(), d.total)
			return d, nil
		}
		if err != nil {
			return d, err
		}
		err = m.answer(c, o, &d)
		m.part(c)
		if err != nil {
			return d, err
		}
	}
}

// silence is how long after the end of the window nobody must have asked for a connection.
func silence(w *worker.Window, o worker.Options) time.Duration {
	return max(o.Warmup+o.Window-w.Now(), 0) + 3*worker.Quiet
}
