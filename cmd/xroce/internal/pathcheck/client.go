package pathcheck

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// rounds is how often what was lost is sent before that is believed: links lose now and then.
const rounds = 3

// A Client is this end of a check. Close it.
type Client struct {
	dev    *engine.Device
	line   *line
	box    *mailbox
	server hello
	gids   []wire.GID // of the server
	secret [secretLen]byte
	number uint32 // of the last datagram

	// patience is how long what should come is waited for.
	patience time.Duration
	end      context.CancelFunc
	ended    chan struct{} // closed when both goroutines are over
	reports  chan report
	echoes   chan uint32
	failure  error  // of the goroutine that has ended first; read when reports is closed
	complain string // the last error that the server told
}

// defaultPatience is how long a datagram is waited for that should come: much more than a
// round trip, and a neighbour may have to be asked for.
const defaultPatience = 2 * time.Second

// Dial greets a server on a TCP connection, which it owns then.
func Dial(ctx context.Context, dev *engine.Device, conn net.Conn) (c *Client, err error) {
	c = &Client{dev: dev, line: newLine(conn), patience: defaultPatience}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var first struct {
		hello
		Error string `json:"error"`
	}
	if err := c.line.hear(&first, lineTime); err != nil {
		return c, fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if first.Error != "" {
		return c, fmt.Errorf("the server says: %s", plain.Brief(first.Error))
	}
	c.server = first.hello
	if c.gids, err = c.server.gids(); err != nil {
		return c, err
	}
	if c.secret, err = c.server.secret(); err != nil {
		return c, err
	}
	if c.box, err = newMailbox(dev, c.server.QKey); err != nil {
		return c, err
	}
	if err := c.line.say(greet(dev)); err != nil {
		return c, err
	}
	c.listen(ctx)
	return c, nil
}

// listen begins to take what the server says and what it sends.
func (c *Client) listen(ctx context.Context) {
	ctx, c.end = context.WithCancel(ctx)
	c.reports, c.echoes = make(chan report, 64), make(chan uint32, 64)
	c.ended = make(chan struct{})
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer close(c.echoes)
		for {
			d, err := c.box.receive(ctx)
			if err != nil {
				return
			}
			if len(d.data) < datagramHead || [secretLen]byte(d.data) != c.secret {
				continue
			}
			select {
			case c.echoes <- binary.BigEndian.Uint32(d.data[secretLen:]):
			case <-ctx.Done():
			}
		}
	}()
	go func() {
		defer close(c.ended)
		defer func() { <-received }()
		defer close(c.reports)
		for {
			var r report
			if err := c.line.hear(&r, sessionTime); err != nil {
				c.failure = err
				return
			}
			select {
			case c.reports <- r:
			case <-ctx.Done():
				c.failure = ctx.Err()
				return
			}
		}
	}()
}

// Close ends the check.
func (c *Client) Close() {
	c.line.conn.Close()
	if c.end != nil {
		c.end()
		<-c.ended
	}
	if c.box != nil {
		c.box.close()
	}
}

// ErrSilent says that datagrams which fit any path came to nobody, though they were sent again.
var ErrSilent = errors.New("nothing came")

// fate is what became of a datagram.
type fate struct {
	there bool // the server has it
	back  bool // what the server sent back came
}

// try sends a datagram of some bytes by a path, some times if it must, and tells what became
// of it. When the way back is known to be broken, only that there is looked at.
func (c *Client) try(ctx context.Context, ah *roce.AH, size int, back bool) (fate, error) {
	var best fate
	known := size <= smallDatagram
	for range rounds {
		f, sure, err := c.round(ctx, ah, size, back)
		if err != nil {
			return best, err
		}
		known = known || sure
		best.there, best.back = best.there || f.there, best.back || f.back
		if best.there && (best.back || !back) {
			return best, nil
		}
	}
	if !known {
		return best, fmt.Errorf("%w: small datagrams are lost now that came before", ErrSilent)
	}
	return best, nil
}

// round sends a datagram and, if it is large, a small one behind it, and waits until the fate
// of the last of them is known, which tells that of the first. It is sure when it was.
func (c *Client) round(
	ctx context.Context, ah *roce.AH, size int, back bool,
) (f fate, sure bool, err error) {
	first := c.number + 1
	if err := c.send(ctx, ah, size); err != nil {
		return f, false, err
	}
	last := first
	if size > smallDatagram {
		if err := c.send(ctx, ah, smallDatagram); err != nil {
			return f, false, err
		}
		last = c.number
	}
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	var end fate // of the last one
	for !end.there || back && !end.back {
		select {
		case r, ok := <-c.reports:
			if !ok {
				return f, false, fmt.Errorf("the server went away: %w", c.failure)
			}
			if r.Error != "" {
				c.complain = r.Error
			}
			f.there = f.there || r.Got != nil && *r.Got == first
			end.there = end.there || r.Got != nil && *r.Got == last
		case n, ok := <-c.echoes:
			if !ok {
				return f, false, errors.Join(errors.New("the device failed"), c.dev.Err())
			}
			f.back = f.back || n == first
			end.back = end.back || n == last
		case <-timer.C:
			return f, false, nil
		case <-ctx.Done():
			return f, false, ctx.Err()
		}
	}
	return f, true, nil
}

// send sends the next datagram.
func (c *Client) send(ctx context.Context, ah *roce.AH, size int) error {
	c.number++
	var head [datagramHead]byte
	copy(head[:], c.secret[:])
	binary.BigEndian.PutUint32(head[secretLen:], c.number)
	return c.box.send(ctx, ah, c.server.QPN, c.server.QKey, head[:], size)
}

// largest finds the largest datagram that gets through, as get tells of its fate. One of low
// bytes does.
func (c *Client) largest(
	ctx context.Context, ah *roce.AH, low, high int, back bool, get func(fate) bool,
) (int, error) {
	return bisect(low, high, func(size int) (bool, error) {
		f, err := c.try(ctx, ah, size, back)
		return get(f), err
	})
}

// bisect finds the largest size that passes, of which low does.
func bisect(low, high int, passes func(size int) (bool, error)) (int, error) {
	if ok, err := passes(high); err != nil || ok {
		return high, err
	}
	for high-low > step {
		middle := (low + (high-low)/2) / step * step
		ok, err := passes(middle)
		if err != nil {
			return low, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// step is how exact a size is: payloads are padded to it.
const step = 4

// listensAt asks the server to listen at a TCP port, and reports whether it does.
func (c *Client) listensAt(ctx context.Context, port int) (*listen, error) {
	if err := c.line.say(request{port}); err != nil {
		return nil, err
	}
	timer := time.NewTimer(lineTime)
	defer timer.Stop()
	for {
		select {
		case r, ok := <-c.reports:
			switch {
			case !ok:
				return nil, fmt.Errorf("the server went away: %w", c.failure)
			case r.Listen != nil && r.Listen.Port == port:
				return r.Listen, nil
			}
		case <-c.echoes:
		case <-timer.C:
			return nil, fmt.Errorf("%w for %s", ErrSilent, lineTime)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ignoreEOF is nil for the end of a connection that the other end has closed.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
