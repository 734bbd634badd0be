package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Client sends files to a server, over one connection as long as that holds, and over another
// when it is lost. Its methods are for one goroutine.
type Client struct {
	Token Token // that the server must know, too, nil for none

	// Dial makes a connection. Its error is final when there was none before.
	Dial func(ctx context.Context) (*Link, error)

	// Retry is for how long nothing may get through until a transfer fails, 0 to let it fail
	// at once.
	Retry time.Duration

	// Lost, if not nil, is told that a connection was lost, and why, before another is made.
	Lost func(err error)

	patience patience
	waits    func()           // for tests: the server is told that a reader is slow
	hashes   func()           // for tests: what is held is about to be read
	now      func() time.Time // for tests, may be nil
	control  *control         // nil while there is no connection
	met      bool             // there was one
	compared time.Duration    // as that of control, of the connection before
	began    int64            // likewise
}

// A dialError says why there is no connection.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// maxAnew is how often a transfer may begin behind less than there was: what somebody altered on
// the way is dropped.
const maxAnew = 3

// How long to wait before another connection is tried.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Send sends a file.
func (c *Client) Send(ctx context.Context, f SendConfig) (Result, error) {
	s, err := newSender(ctx, f)
	if err != nil {
		return Result{}, err
	}
	return c.send(ctx, s)
}

// sendOpen sends a file that is open, and closes it.
func (c *Client) sendOpen(
	ctx context.Context, f SendConfig, file *os.File, info os.FileInfo,
) (Result, error) {
	return c.send(ctx, newOpenSender(f, file, info))
}

// send sends what a sender has, and closes it.
func (c *Client) send(ctx context.Context, s *sender) (Result, error) {
	defer s.close()
	for _, name := range []string{s.Path, filepath.Base(s.File)} {
		if err := checkName(name); err != nil {
			return Result{}, err
		}
	}
	return c.persist(ctx, func(conn *control) (Result, int64, error) {
		result, err := s.push(ctx, conn)
		return result, s.done, err
	})
}

// persist does something over one connection after the other until it is done or fails for
// good. It goes on as long as each gets further than all before, or for Retry. The time in which
// the ends compare what there is from before does not count, nor that in which the server writes
// it to disk: nothing is to get through then. Of the server's no more than so much may take: what
// it has, and does, is its own word. A few times it may find less than there was, and begins anew
// behind that.
func (c *Client) persist(
	ctx context.Context, do func(*control) (result Result, done int64, err error),
) (Result, error) {
	most, since, pause, anew := int64(0), c.time(), firstPause, 0
	for {
		result, done, err := c.once(ctx, do)
		if err == nil {
			return result, nil
		}
		since = since.Add(c.compared)
		if c.began >= 0 && c.began < most && done > c.began && anew < maxAnew {
			anew++
			most = c.began
		}
		if done > most {
			most, since, pause = done, c.time(), firstPause
		}
		if ctx.Err() != nil || !c.passes(err) {
			return Result{}, err
		}
		if waited := c.time().Sub(since); waited+pause > c.Retry {
			if c.Retry > 0 {
				err = fmt.Errorf("nothing got through for %v (--retry %v): %w",
					waited.Round(time.Second/10), c.Retry, err)
			}
			return Result{}, err
		}
		if c.Lost != nil {
			c.Lost(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		}
		pause = min(2*pause, lastPause)
	}
}

// passes reports whether what failed with err may go well later.
func (c *Client) passes(err error) bool {
	var dial dialError
	if errors.As(err, &dial) {
		return c.met
	}
	return again(err)
}

// once does something over the connection that there is, or another one.
func (c *Client) once(
	ctx context.Context, do func(*control) (Result, int64, error),
) (result Result, done int64, err error) {
	c.compared, c.began = 0, -1
	if err := c.connect(ctx); err != nil {
		return Result{}, 0, err
	}
	c.control.compared, c.control.began = 0, -1
	if result, done, err = do(c.control); err == nil {
		return result, done, nil
	}
	var no refusal
	if errors.As(err, &no) {
		return Result{}, done, err
	}
	c.compared, c.began = c.control.compared, c.control.began
	err = endOf(ctx, err)
	if errors.As(err, new(failure)) {
		c.met = false // a server that is there for one connection has ended with it
	}
	c.control.sendError(err)
	c.control.Close()
	c.control = nil
	return Result{}, done, err
}

// connect makes a connection, if there is none.
func (c *Client) connect(ctx context.Context) error {
	if c.control != nil {
		return nil
	}
	link, err := c.Dial(ctx)
	if err != nil {
		return endOf(ctx, dialError{err})
	}
	conn := newControl(link, c.patience)
	if err := conn.greet(ctx, c.Token); err != nil {
		err = endOf(ctx, err)
		conn.sendError(err)
		link.Close()
		return err
	}
	conn.waits, conn.hashes, conn.now = c.waits, c.hashes, c.time
	c.control, c.met = conn, true
	return nil
}

func (c *Client) time() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// Close hangs up.
func (c *Client) Close() {
	if c.control != nil {
		_ = c.control.send(message{Ask: askEnd}) // else it would notice by itself, a second later
		c.control.Close()
		c.control = nil
	}
}
