package transfer

import (
	"context"
	"io"
	"time"
)

// A slow reader may wait for a person or another program: the receiver is told that we are there
// meanwhile, and the end of the context ends the waiting.
type slow struct {
	ctx  context.Context
	conn *control
	from io.Reader
	ask  chan []byte   // to be filled
	got  chan filled   // what was
	tick *time.Ticker  // when to tell
	rest []byte        // of what was read
	err  error         // behind it
	end  chan struct{} // nobody asks any more
}

// A filled is what one call of Read returned.
type filled struct {
	n   int
	err error
}

// newSlow makes one. stop ends it; a Read that is under way then reads into memory of its own.
func newSlow(ctx context.Context, from io.Reader, conn *control) (_ *slow, stop func()) {
	s := &slow{
		ctx: ctx, conn: conn, from: from, ask: make(chan []byte), got: make(chan filled, 1),
		tick: time.NewTicker(conn.patience.chunk / 3), end: make(chan struct{}),
	}
	go func() {
		for {
			select {
			case buf := <-s.ask:
				n, err := from.Read(buf)
				s.got <- filled{n, err}
			case <-s.end:
				return
			}
		}
	}()
	return s, func() {
		s.tick.Stop()
		close(s.end)
	}
}

// Read implements io.Reader.
func (s *slow) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	if n == 0 && len(p) > 0 {
		return 0, s.err
	}
	return n, nil
}

// fill waits for more.
func (s *slow) fill() error {
	said, err := s.conn.listen()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	s.ask <- buf
	for {
		select {
		case f := <-s.got:
			s.rest, s.err = buf[:f.n], f.err
			if f.n > 0 || f.err != nil {
				return nil
			}
			s.ask <- buf
		case <-s.tick.C:
			if err := s.conn.send(message{Wait: true}); err != nil {
				return s.conn.reason(err)
			}
			if s.conn.waits != nil {
				s.conn.waits()
			}
		case <-said:
			return s.conn.interrupted()
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}
