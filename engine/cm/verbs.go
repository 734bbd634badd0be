package cm

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"xroce/roce"
)

// This file has the calls of connections whose Setup has no completion queues: the manager has
// one for them.

// Write writes to memory of the peer (RDMA WRITE). It is complete when the peer has it: whoever
// is told afterwards will see it.
//
// It is one of the calls for connections without completion queues of the application: Write,
// Read, Send, FetchAdd, CompareSwap and Receive. They wait until their work request is complete,
// and may be made by many goroutines at once: those of one goroutine are executed in its order,
// and as many are under way as the queues of the queue pair have room for (QPInit.MaxSendWR,
// MaxRecvWR), others wait for their turn.
//
// What is under way cannot be taken back. When the context ends first, the queue pair goes to
// ERR and the connection is over with ErrAborted; the call waits until its work request is
// flushed, which needs no peer, and returns the error of the context. So when a call has
// returned, however it ended, nothing touches the caller's memory because of it. What the
// memory of the peer has of a WRITE that failed is not known.
//
// The error is a *roce.WorkError when the work request failed, which ends the connection, too;
// roce.ErrInvalid or that of the context when nothing was posted, and the connection goes on;
// or what Conn.Err says of a connection that is over.
func (c *Conn) Write(ctx context.Context, to Remote, local ...roce.SGE) error {
	return c.send(ctx, &roce.SendWR{
		Opcode: roce.OpWrite, SGList: local, RemoteAddr: to.Addr, RKey: to.RKey,
	})
}

// Read reads memory of the peer (RDMA READ), as much as local has room for.
func (c *Conn) Read(ctx context.Context, from Remote, local ...roce.SGE) error {
	return c.send(ctx, &roce.SendWR{
		Opcode: roce.OpRead, SGList: local, RemoteAddr: from.Addr, RKey: from.RKey,
	})
}

// Send sends a message, which takes the next receive that the peer has posted.
func (c *Conn) Send(ctx context.Context, local ...roce.SGE) error {
	return c.send(ctx, &roce.SendWR{Opcode: roce.OpSend, SGList: local})
}

// FetchAdd adds to 8 bytes of the peer at a multiple of 8, atomically with respect to other
// atomics of the peer's device, and returns what was there before. The number is in the byte
// order of the peer's machine.
func (c *Conn) FetchAdd(ctx context.Context, at Remote, add uint64) (uint64, error) {
	return c.atomic(ctx, &roce.SendWR{
		Opcode: roce.OpFetchAdd, RemoteAddr: at.Addr, RKey: at.RKey, CompareAdd: add,
	})
}

// CompareSwap replaces 8 bytes of the peer if they are what is compared with, and returns what
// was there before; the rest is that of FetchAdd.
func (c *Conn) CompareSwap(
	ctx context.Context, at Remote, compare, swap uint64,
) (uint64, error) {
	return c.atomic(ctx, &roce.SendWR{
		Opcode: roce.OpCmpSwap, RemoteAddr: at.Addr, RKey: at.RKey, CompareAdd: compare,
		Swap: swap,
	})
}

// Receive takes the next message of the peer, and returns its length. A message that is longer
// than local ends the connection at both ends. Receives take messages in the order of their
// calls; while there is none, the peer waits and asks again (RNR).
func (c *Conn) Receive(ctx context.Context, local ...roce.SGE) (int, error) {
	call, err := c.begin(ctx, func(w *calls) *lane { return &w.recvs })
	if err != nil {
		return 0, err
	}
	wr := &roce.RecvWR{WRID: recvID | uint64(call.number), SGList: local}
	wc, err := call.await(ctx, c.qp.PostRecv(wr))
	call.end()
	return int(wc.ByteLen), err
}

// send executes a work request.
func (c *Conn) send(ctx context.Context, wr *roce.SendWR) error {
	call, err := c.begin(ctx, func(w *calls) *lane { return &w.sends })
	if err != nil {
		return err
	}
	defer call.end()
	return call.send(ctx, wr)
}

// atomic executes a work request whose result are 8 bytes.
func (c *Conn) atomic(ctx context.Context, wr *roce.SendWR) (uint64, error) {
	call, err := c.begin(ctx, func(w *calls) *lane { return &w.sends })
	if err != nil {
		return 0, err
	}
	defer call.end()
	at := 8 * call.number
	wr.SGList = []roce.SGE{c.calls.results.SGE(at, 8)}
	if err := call.send(ctx, wr); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(c.calls.results.Bytes()[at:]), nil
}

// A call is one that has a number of its lane.
type call struct {
	conn   *Conn
	lane   *lane
	number int
	lost   bool // its completion may still come, so nobody gets the number
}

// begin waits for a number of a lane.
func (c *Conn) begin(ctx context.Context, of func(*calls) *lane) (*call, error) {
	if c.calls == nil {
		return nil, fmt.Errorf("%w: the completion queues of this connection are the "+
			"application's, who posts to Conn.QP", roce.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return nil, err // nothing is under way
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	l := of(c.calls)
	select {
	case number := <-l.free:
		if l.done[number] == nil {
			l.done[number] = make(chan roce.Completion, 1)
		}
		return &call{conn: c, lane: l, number: number}, nil
	case <-c.done:
		return nil, c.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// end gives the number back.
func (k *call) end() {
	if !k.lost {
		k.lane.free <- k.number
	}
}

// send posts to the send queue and waits until that is complete.
func (k *call) send(ctx context.Context, wr *roce.SendWR) error {
	wr.WRID, wr.Flags = uint64(k.number), roce.SendSignaled
	_, err := k.await(ctx, k.conn.qp.PostSend(wr))
	return err
}

// await waits until what was posted is complete; posted says whether it was.
func (k *call) await(ctx context.Context, posted error) (roce.Completion, error) {
	c := k.conn
	if posted != nil {
		if err := c.Err(); err != nil {
			return roce.Completion{}, err // its queue pair is closed
		}
		return roce.Completion{}, posted
	}
	var ended error
	select {
	case wc := <-k.lane.done[k.number]:
		return k.judge(&wc, nil)
	case <-ctx.Done():
		ended = ctx.Err()
		c.abort(ErrAborted)
	case <-c.done:
	}
	return k.flushed(ended)
}

// flushed waits until what was posted to a queue pair that is in ERR is flushed, which whoever
// moves packets does. It polls for itself: the manager may have been closed meanwhile.
func (k *call) flushed(ended error) (roce.Completion, error) {
	c := k.conn
	for over := false; ; {
		c.calls.worker.poll()
		select {
		case wc := <-k.lane.done[k.number]:
			return k.judge(&wc, ended)
		default:
		}
		if over {
			break
		}
		select {
		case wc := <-k.lane.done[k.number]:
			return k.judge(&wc, ended)
		case <-c.back: // the queue pair is closed, with completions that nobody took
			over = true
		case <-c.manager.dev.Done(): // what was posted is flushed, and nothing moves any more
			over = true
		case <-time.After(flushPause):
		}
	}
	k.lost = true
	if ended == nil {
		ended = c.Err()
	}
	return roce.Completion{}, ended
}

// flushPause is how long the worker is relied on.
const flushPause = time.Millisecond

// judge says how a call ended whose completion came; ended is why it was given up, nil if it
// was not. One that was complete all the same was not given up.
func (k *call) judge(wc *roce.Completion, ended error) (roce.Completion, error) {
	err := wc.Err()
	switch {
	case err == nil:
		return *wc, nil
	case ended != nil:
		return roce.Completion{}, ended
	case wc.Status == roce.StatusWRFlushErr:
		// Something else ended the connection, which is known by now: see worker.take.
		err = k.conn.Err()
	}
	return roce.Completion{}, err
}
