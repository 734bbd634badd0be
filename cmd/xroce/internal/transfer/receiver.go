package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ReceiveConfig says where files go and from whom.
type ReceiveConfig struct {
	Store    *Store
	Token    Token  // that clients must know, nil for none
	From     Sender // whose files these are
	Progress func(done, total int64)

	// Admit, if not nil, is asked for each file, when the client has shown that it knows the
	// token and has said what it wants, before anything is made for it. Its error refuses.
	Admit func() error

	// Whole, if not nil, is called when all data has come and its digest is right: from
	// then on the client waits for us. Its error says that the client was hung up on.
	Whole func() error

	// Ended, if not nil, is told what came of each file. An error beside a result that has a
	// path says that the file is there, and that its sender may not know. A Known result is of
	// one that was told of before.
	Ended func(Result, error)

	// Unread, if not nil, is told why what there was of a file could not be read. All of it is to
	// come again, where it may.
	Unread func(error)

	// Given, if not nil, is told what came of each file that a client asked for.
	Given func(Result, error)

	patience patience
	hashes   func() // for tests: what is held is about to be read
}

// A receiver is the server's end of a connection.
type receiver struct {
	ReceiveConfig
	*control
	told string // lasting name of the last file, of which its sender may not have heard

	// there ends with the connection, too: who is gone waits for nothing.
	there context.Context
}

// An idle error ended a connection between what its client asks for.
type idle struct{ error }

func (i idle) Unwrap() error { return i.error }

// Idle reports whether a connection that ended with an error of Receive did so while its client had
// nothing under way: each file that it asked for is there, or what became of it was told.
func Idle(err error) bool {
	var between idle
	return errors.As(err, &between)
}

// Receive takes the files that the client of a connection sends, until that hangs up. The link
// is the caller's to close. The error says why it ended otherwise (see Idle).
func Receive(ctx context.Context, link *Link, c ReceiveConfig) error {
	r := &receiver{ReceiveConfig: c, control: newControl(link, c.patience)}
	r.control.hashes = c.hashes
	there, end := link.while(ctx)
	defer end()
	r.there = there
	err := r.challenge(ctx, r.Token)
	between := false
	for err == nil {
		var m message
		m, err = r.request(ctx)
		if between = err != nil; between {
			break
		}
		if m.Ask == askEnd {
			return nil
		}
		err = r.serve(ctx, &m)
	}
	err = endOf(ctx, err)
	r.sendError(err)
	if between {
		return idle{err}
	}
	return err
}

// request waits for what the client asks for next.
func (r *receiver) request(ctx context.Context) (message, error) {
	// That it did not get through to the client shows below, behind what that said before.
	if err := r.heard(ctx); err != nil {
		return message{}, err
	}
	m, err := r.receive(ctx, r.control.patience.exchange)
	if err == nil && r.told != "" {
		r.Store.heard(r.told) // who says something else has heard what came before
		r.told = ""
	}
	return m, err
}

// serve does what a client asks for. The error ends the connection.
func (r *receiver) serve(ctx context.Context, m *message) error {
	do := map[string]func(context.Context, *message) error{
		askPut: r.put, askGet: r.give, askDir: r.makeDir,
	}[m.Ask]
	if do == nil {
		return fmt.Errorf("%w: it asks for %.20q", ErrPeer, m.Ask)
	}
	if r.Admit != nil {
		if err := r.Admit(); err != nil {
			return err
		}
	}
	return do(ctx, m)
}

// put takes a file.
func (r *receiver) put(ctx context.Context, m *message) error {
	var part *partial
	err := r.From.Guest.recess(func() (err error) {
		part, err = r.Store.create(r.there, m, r.From)
		return err
	})
	if err != nil {
		r.ended(Result{}, endOf(ctx, err))
		r.sendError(endOf(ctx, err)) // it may ask for something else
		return context.Cause(ctx)
	}
	result, err := r.take(ctx, m, part)
	if err != nil && goesOn(ctx, err) {
		err = errors.Join(err, part.leave())
	} else {
		err = errors.Join(err, part.close())
	}
	r.ended(result, err)
	var no refusal
	if errors.As(err, &no) { // nothing was sent of it, so it may ask for something else
		r.sendError(no)
		return context.Cause(ctx)
	}
	return err
}

// sendError tells the client why it is refused, and a stranger not how much room there is.
func (r *receiver) sendError(err error) {
	var short *shortage
	if r.Token == nil && errors.As(err, &short) {
		err = errors.New(strings.Replace(err.Error(), short.Error(), short.brief, 1))
	}
	r.control.sendError(err)
}

// makeDir makes a directory, which may take our disk its time. That it cannot be made is the
// client's to judge, and told here, too.
func (r *receiver) makeDir(ctx context.Context, m *message) error {
	err := r.From.Guest.recess(func() error { return r.Store.makeDir(r.there, m.Path) })
	if err != nil {
		err = endOf(ctx, err)
		r.sendError(err)
		r.ended(Result{}, fmt.Errorf("make directory %s: %w", m.Path, err))
		return context.Cause(ctx)
	}
	return r.send(message{Path: m.Path})
}

// goesOn reports whether the sender of a file that failed with err may go on with it: over this
// connection it cannot. What ends the context, as the end of the device does, is no fault of the
// file. What was altered on the way is no beginning of it.
func goesOn(ctx context.Context, err error) bool {
	return !errors.Is(err, errAltered) && (again(err) || context.Cause(ctx) != nil)
}

// ended tells what came of a file.
func (r *receiver) ended(result Result, err error) {
	if r.Ended != nil {
		r.Ended(result, err)
	}
}

// take takes a file and gives the verdict.
func (r *receiver) take(ctx context.Context, m *message, part *partial) (Result, error) {
	start := time.Now()
	result, err := r.complete(ctx, m, part)
	if err != nil {
		return Result{}, fmt.Errorf("%s, after %d of %d bytes: %w", part.path, part.done(),
			part.size, endOf(ctx, err))
	}
	result.Duration = time.Since(start)
	r.told = part.lasting
	if err := r.send(message{SHA256: result.SHA256, Size: result.Size}); err != nil {
		return result, fmt.Errorf("%s is received, and its sender was not told: %w",
			part.path, err)
	}
	return result, nil
}

// complete takes the chunks, compares the digests and makes the file appear.
func (r *receiver) complete(ctx context.Context, m *message, part *partial) (Result, error) {
	if err := r.agree(ctx, part); err != nil {
		return Result{}, err
	}
	held := part.held
	r.slow = part.open
	err := r.receiveChunks(ctx, func(chunk []byte) error {
		err := part.add(chunk)
		if errors.Is(err, ErrPeer) {
			err = r.altered(err)
		}
		if r.Progress != nil {
			r.Progress(part.done()-held, part.size-held)
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	finish, err := r.receive(ctx, r.control.patience.digest)
	if err != nil {
		return Result{}, err
	}
	digest := part.sum()
	switch {
	case part.unwritten != 0:
		return Result{}, r.altered(fmt.Errorf("%w: it ended after %d of %d bytes", ErrPeer,
			part.done(), part.size))
	case finish.SHA256 != digest:
		return Result{}, r.altered(fmt.Errorf("SHA-256 differs: %s here, %.100q there", digest,
			finish.SHA256))
	}
	if r.Whole != nil {
		if err := r.Whole(); err != nil {
			return Result{}, err
		}
	}
	if err := part.commit(); err != nil {
		return Result{}, err
	}
	return Result{
		Path: part.path, Size: part.size, Resumed: held, Known: part.known, SHA256: digest,
		Extensions: r.Conn.Extensions(),
	}, nil
}

// agree tells the sender where the file will be, and finds out whether what there is of it is
// the beginning of what the sender has.
func (r *receiver) agree(ctx context.Context, part *partial) error {
	if err := r.send(message{Path: part.path, Held: part.held}); err != nil {
		return err
	}
	if part.held == 0 {
		return nil
	}
	unread := r.From.Guest.recess(func() error { return part.recall(ctx, r.control) })
	if unread != nil && r.over(ctx) != nil {
		return unread
	}
	if unread != nil && r.Unread != nil {
		r.Unread(unread)
	}
	m, err := r.receive(ctx, r.control.patience.forWork(part.held))
	if err != nil {
		return err
	}
	if unread != nil || m.SHA256 != part.sum() {
		// It may wait for room.
		if err := r.From.Guest.recess(part.restart); err != nil {
			return err
		}
	}
	return r.send(message{Held: part.held})
}

// endOf is what ended the context, or err: what fails then is by that.
func endOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
