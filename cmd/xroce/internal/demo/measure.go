package demo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"xroce/engine"
	"xroce/roce"
)

// What is in flight while a rate is measured.
const (
	flightBytes    = 4 << 20 // at most, but one message
	flightMessages = 64
)

// pollsPerLook is how many empty polls pass between two looks at the clock, the
// context and the device.
const pollsPerLook = 256

// measure fills the table: each operation at each size, first its rate, then
// its round trip. Both devices are in direct mode, each polled by a goroutine
// of its own: two busy threads in all.
func measure(ctx context.Context, o *Options, w *cable, report *Report) (err error) {
	device := o.Device
	device.Direct, device.Busy, device.Drivers = true, false, 1
	h, err := w.openBoth(device, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	p, err := h.connect(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	m, err := newMeter(p, slices.Max(o.Sizes), o.CellTime)
	if err != nil {
		return err
	}
	cells := cellsOf(o.Sizes)
	for _, c := range cells {
		m.cell = c
		row, err := m.row(ctx)
		if err != nil {
			return fmt.Errorf("%s of %d bytes: %w", c.op, c.size, err)
		}
		report.Rows = append(report.Rows, row)
		o.Progress(StageMeasure, int64(len(report.Rows)), int64(len(cells)), 1)
	}
	return nil
}

// A cell is what one row of the table is about.
type cell struct {
	op   roce.Opcode
	size int // bytes
}

// cellsOf lists the table: operations of every size, and an atomic one of a word.
func cellsOf(sizes []int) (cells []cell) {
	for _, op := range []roce.Opcode{
		roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm, roce.OpRead,
	} {
		for _, size := range sizes {
			cells = append(cells, cell{op, size})
		}
	}
	return append(cells, cell{roce.OpFetchAdd, word})
}

// oneSided reports whether nobody at host 1 can answer the operation.
func (c cell) oneSided() bool { return c.op == roce.OpRead || c.op == roce.OpFetchAdd }

// A meter measures one cell, then another on the same pair.
type meter struct {
	*pair
	cell
	room int // bytes of each region, for the largest size
	time time.Duration
	mr   [2]*engine.MR
	stop atomic.Bool // host 0 is done
}

// newMeter registers a region at each host, which lives as long as the devices,
// and posts all receives: each has room for any size.
func newMeter(p *pair, room int, d time.Duration) (*meter, error) {
	// Memory of that size lies on a boundary that atomic operations need.
	m := &meter{pair: p, room: max(room, 64), time: d}
	for host, dev := range p.dev {
		var err error
		m.mr[host], err = dev.RegMR(p.pd[host], make([]byte, m.room), allRights)
		if err != nil {
			return nil, err
		}
		for range recvDepth {
			if err := m.recv(host); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (m *meter) row(ctx context.Context) (Row, error) {
	row := Row{Operation: m.op.String(), Size: m.size}
	begin := time.Now()
	n, err := m.together(ctx, m.flood, m.sink)
	if err != nil {
		return row, err
	}
	row.Messages = float64(n) / since(begin)
	row.Gigabits = row.Messages * float64(m.size) * 8 / 1e9
	ask, answer := m.ping, m.pong
	switch {
	case m.oneSided():
		ask, answer = m.readOnce, m.sink
	case m.op == roce.OpWrite:
		ask, answer = m.pokePing, m.pokePong
	}
	begin = time.Now()
	if n, err = m.together(ctx, ask, answer); err != nil {
		return row, err
	}
	row.Microseconds = since(begin) * 1e6 / float64(n)
	if !m.oneSided() {
		row.Microseconds /= 2
	}
	return row, nil
}

// together runs host 0's part, which counts and ends by the clock, and host
// 1's, which ends with it.
func (m *meter) together(ctx context.Context, zero func(context.Context) (int64, error),
	one func(context.Context) error,
) (n int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.stop.Store(false)
	m.mr[1].Bytes()[m.size-1] = 0 // what pokePong looks at
	done := make(chan error, 1)
	go protect(done, func() error {
		err := one(ctx)
		if err != nil {
			cancel() // host 0 would wait for ever
		}
		return err
	})
	// Also when zero panics, host 1 has ended before the devices are closed.
	defer func() { err = errors.Join(err, m.finish(done)) }()
	n, err = zero(ctx)
	if err == nil && n == 0 {
		err = errors.New("nothing was measured")
	}
	return n, err
}

// finish ends host 1's part. Until it has ended, host 0 answers it: its last
// messages may still want an acknowledgement.
func (m *meter) finish(done <-chan error) error {
	m.stop.Store(true)
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("host 1: %w", err)
			}
			return nil
		default:
			m.dev[0].Progress()
			runtime.Gosched()
		}
	}
}

// recv posts one receive.
func (m *meter) recv(host int) error {
	return m.end[host].QP.PostRecv(&roce.RecvWR{SGList: []roce.SGE{m.mr[host].SGE(0, m.room)}})
}

// send posts the operation from one host to the other.
func (m *meter) send(host int) error {
	to := m.mr[1-host]
	return m.end[host].QP.PostSend(&roce.SendWR{
		Opcode: m.op, SGList: []roce.SGE{m.mr[host].SGE(0, m.size)},
		RemoteAddr: to.Addr(), RKey: to.RKey(),
	})
}

// poll takes completions of one host and returns how many of each kind. Every
// so many empty polls it looks whether to go on.
func (m *meter) poll(ctx context.Context, host int, idle *int) (sent, received int, err error) {
	var wcs [16]roce.Completion
	n, err := m.end[host].CQ.Poll(wcs[:])
	if err != nil {
		return 0, 0, err
	}
	if n == 0 {
		if *idle++; *idle%pollsPerLook == 0 {
			runtime.Gosched()
			return 0, 0, errors.Join(ctx.Err(), m.dev[host].Err())
		}
		return 0, 0, nil
	}
	for i := range wcs[:n] {
		if err := wcs[i].Err(); err != nil {
			return sent, received, err
		}
		switch wcs[i].Opcode {
		case roce.WCRecv, roce.WCRecvRDMAWithImm:
			received++
			if err := m.recv(host); err != nil {
				return sent, received, err
			}
		default:
			sent++
		}
	}
	return sent, received, nil
}

// flood keeps messages in flight until the time is over and all are complete.
func (m *meter) flood(ctx context.Context) (n int64, err error) {
	depth := max(1, min(flightMessages, flightBytes/m.size))
	end := time.Now().Add(m.time)
	idle, flying := 0, 0
	for over := false; !over || flying > 0; {
		for ; !over && flying < depth; flying++ {
			if err := m.send(0); err != nil {
				return n, err
			}
		}
		sent, _, err := m.poll(ctx, 0, &idle)
		if err != nil {
			return n, err
		}
		flying -= sent
		n += int64(sent)
		over = over || sent > 0 && time.Now().After(end)
	}
	return n, nil
}

// sink is host 1 while host 0 floods it or reads from it: it only answers. All that host 0 sent
// has its completion here before it has one there, so what is left at the end
// is in the queue.
func (m *meter) sink(ctx context.Context) error {
	for idle := 0; ; {
		over := m.stop.Load()
		_, received, err := m.poll(ctx, 1, &idle)
		if err != nil || over && received == 0 {
			return err
		}
	}
}

// rounds counts calls of one round trip until the time is over.
func (m *meter) rounds(round func() error) (n int64, err error) {
	for end := time.Now().Add(m.time / 2); n == 0 || time.Now().Before(end); n++ {
		if err := round(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// await polls host until it sent and received that much.
func (m *meter) await(ctx context.Context, host, sends, receives int, idle *int) error {
	for sends > 0 || receives > 0 {
		s, r, err := m.poll(ctx, host, idle)
		if err != nil {
			return err
		}
		sends -= s
		receives -= r
	}
	return nil
}

// ping sends a message and awaits the answer.
func (m *meter) ping(ctx context.Context) (int64, error) {
	idle := 0
	return m.rounds(func() error {
		if err := m.send(0); err != nil {
			return err
		}
		return m.await(ctx, 0, 1, 1, &idle)
	})
}

// pong answers every message with one. Host 0 asks nothing after the last
// answer, so at the end only that one's completion is to be awaited.
func (m *meter) pong(ctx context.Context) error {
	flying := 0
	for idle := 0; !m.stop.Load() || flying > 0; {
		sent, received, err := m.poll(ctx, 1, &idle)
		if err != nil {
			return err
		}
		flying -= sent
		for range received {
			if err := m.send(1); err != nil {
				return err
			}
			flying++
		}
	}
	return nil
}

// readOnce reads from host 1, or adds to its word, and awaits the data.
func (m *meter) readOnce(ctx context.Context) (int64, error) {
	idle := 0
	return m.rounds(func() error {
		if err := m.send(0); err != nil {
			return err
		}
		return m.await(ctx, 0, 1, 0, &idle)
	})
}

// answered marks the number of a round as its answer, so that no answer looks
// like a question.
const answered = 0x80

// pokePing writes and awaits that the other end wrote back. Nothing but the
// last byte says that a WRITE came: it is the number of the round. Looking at
// it is no race, since in direct mode the goroutine that looks is the one that
// lets the data arrive.
func (m *meter) pokePing(ctx context.Context) (int64, error) {
	idle, round := 0, byte(0)
	last := &m.mr[0].Bytes()[m.size-1]
	return m.rounds(func() error {
		round = (round + 1) % answered
		*last = round
		if err := m.send(0); err != nil {
			return err
		}
		if err := m.await(ctx, 0, 1, 0, &idle); err != nil {
			return err
		}
		for *last != round|answered {
			if _, _, err := m.poll(ctx, 0, &idle); err != nil {
				return err
			}
		}
		return nil
	})
}

// pokePong writes back what it finds, marked as an answer.
func (m *meter) pokePong(ctx context.Context) error {
	idle, round := 0, byte(1)
	last := &m.mr[1].Bytes()[m.size-1]
	for ; !m.stop.Load(); round = (round + 1) % answered {
		for *last != round {
			if _, _, err := m.poll(ctx, 1, &idle); err != nil || m.stop.Load() {
				return err
			}
		}
		*last |= answered
		if err := m.send(1); err != nil {
			return err
		}
		if err := m.await(ctx, 1, 1, 0, &idle); err != nil {
			return err
		}
	}
	return nil
}
