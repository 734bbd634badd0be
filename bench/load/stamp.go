package load

import (
	"errors"
	"sync/atomic"
	"time"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
	"xroce/xsk"
)

// errSilent means that a message was there and nothing had left.
var errSilent = errors.New("load: a message is complete and nothing has left")

// A stampLink notes when the first frame leaves behind a call of arm.
type stampLink struct {
	xsk.Link
	start time.Time
	armed atomic.Bool
	at    atomic.Int64 // nanoseconds since the start, 0 while nothing has left
}

// arm waits for the next frame.
func (l *stampLink) arm() {
	l.at.Store(0)
	l.armed.Store(true)
}

// Transmit implements xsk.Link.
func (l *stampLink) Transmit(frames []xsk.TxFrame) {
	l.Link.Transmit(frames)
	if len(frames) > 0 && l.armed.CompareAndSwap(true, false) {
		l.at.Store(int64(max(1, time.Since(l.start))))
	}
}

// openStamped opens a device over such a link. The XDP program hands it every frame of the
// interface.
func openStamped(o worker.Options, options engine.Options) (*engine.Device, *stampLink, error) {
	host, err := newStageHost(o)
	if err != nil {
		return nil, nil, err
	}
	s, err := xsk.Open(xsk.Config{
		Interface: o.Interface, Queue: o.Queue, Mode: options.Mode, SndBuf: o.SendBuf,
		BindTimeout: bindTimeout(),
	})
	if err != nil {
		return nil, nil, err
	}
	if host.program, err = redirectAll(o.Interface, o.Queue, s.FD()); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	link := &stampLink{Link: s, start: time.Now()}
	d, err := engine.OpenLink(link, host, options)
	return d, link, err
}

// away is how long an application is away from its connection: it computes, or waits for
// something else.
const away = time.Millisecond

// A pastime is what an application does meanwhile.
type pastime func(time.Duration)

func sleeps(d time.Duration) { time.Sleep(d) }

// computes keeps the processor, on which the device has its loop as well.
func computes(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// announce measures how long after Send the announcement of a message leaves, while the
// application does something else.
func announce(meanwhile pastime) func(*messenger, worker.Options) (done, error) {
	return func(m *messenger, o worker.Options) (d done, err error) {
		hist := newRoundTrips()
		err = m.again(o, &d, func(c *msg.Conn, s *msg.Send) error {
			s.Protocol = rmsg.Get
			m.stamped.arm()
			sent := time.Since(m.stamped.start)
			if err := c.PostSend(s); err != nil {
				return err
			}
			meanwhile(away)
			if err := s.Wait(m.ctx); err != nil {
				return err
			}
			at := m.stamped.at.Load()
			if at == 0 {
				return errSilent
			}
			if d.window.Open() {
				_ = hist.RecordValue(max(1, at-sent.Nanoseconds()))
			}
			return nil
		})
		d.rtt = roundTrips(hist)
		return d, err
	}
}

// overlap measures how long it takes to post a message, do something else for a while without a
// call, and wait. Without a pastime it measures the message alone.
func overlap(meanwhile pastime) func(*messenger, worker.Options) (done, error) {
	return func(m *messenger, o worker.Options) (d done, err error) {
		hist := newRoundTrips()
		err = m.again(o, &d, func(c *msg.Conn, s *msg.Send) error {
			s.Level = rmsg.Delivered
			begin := time.Now()
			if err := c.PostSend(s); err != nil {
				return err
			}
			if meanwhile != nil {
				meanwhile(away)
			}
			if err := s.Wait(m.ctx); err != nil {
				return err
			}
			if d.window.Open() {
				_ = hist.RecordValue(time.Since(begin).Nanoseconds())
			}
			return nil
		})
		d.rtt = roundTrips(hist)
		return d, err
	}
}

// again does something with a message again and again. In between all is at rest.
func (m *messenger) again(o worker.Options, d *done,
	one func(c *msg.Conn, s *msg.Send) error,
) error {
	c, err := m.connect()
	if err != nil {
		return err
	}
	defer m.part(c)
	s := &msg.Send{Buffers: [][]byte{make([]byte, o.Message)}}
	s.Buffers[0][0] = 1
	d.window = worker.NewWindow(o)
	for d.window.Tick(d.window.Now(), d.total) {
		if err := one(c, s); err != nil {
			return err
		}
		d.total++
		time.Sleep(rest)
	}
	return m.goodbye(c)
}

// rest is long enough for what a message leaves behind: acknowledgements, and keys that go.
const rest = 500 * time.Microsecond
