package transfer

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"

	"xroce/engine/msg"
)

// A file travels as messages of ChunkSize bytes and one that is shorter, which ends it and
// may be empty.
const (
	ChunkSize = 1 << 20
	Slots     = 8 // chunks that each end holds
)

// MaxSize is the size of the largest file in bytes.
const MaxSize = ChunkSize << 32

// An outgoing is a chunk that leaves.
type outgoing struct {
	msg.Send
	busy bool
}

// sendChunks sends what a reader has, and counts it in a digest. Each chunk is told of when
// the other end has taken it.
func (c *control) sendChunks(
	ctx context.Context, from io.Reader, digest hash.Hash, sent func(n int),
) error {
	if c.out == nil {
		c.out = make([]outgoing, Slots)
	}
	n := 0
	for last := false; !last; n++ {
		o := &c.out[n%Slots]
		if err := c.taken(ctx, o, sent); err != nil {
			return err
		}
		if o.Buffers == nil {
			o.Buffers = [][]byte{make([]byte, ChunkSize)}
		}
		chunk := o.Buffers[0][:ChunkSize]
		k, err := io.ReadFull(from, chunk)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		digest.Write(chunk[:k])
		o.Buffers[0], o.busy = chunk[:k], true
		if err := c.post(&o.Send, tagData); err != nil {
			return c.reason(err)
		}
	}
	for i := range Slots {
		if err := c.taken(ctx, &c.out[(n+i)%Slots], sent); err != nil {
			return err
		}
	}
	return nil
}

// taken waits until the other end has a chunk. What the other end says meanwhile can only be
// that it gives up.
func (c *control) taken(ctx context.Context, o *outgoing, sent func(n int)) error {
	if !o.busy {
		return nil
	}
	said, err := c.listen()
	if err != nil {
		return err
	}
	if err := await(ctx, o.Done(), said, c.patience.chunk); err != nil {
		return err
	}
	if !isOver(o.Done()) {
		return c.interrupted()
	}
	if o.Err != nil {
		return c.reason(lost(o.Err))
	}
	o.busy = false
	sent(len(o.Buffers[0]))
	return nil
}

// interrupted is why the other end says something before it has all.
func (c *control) interrupted() error {
	if _, err := c.take(); err != nil {
		return err
	}
	return fmt.Errorf("%w: it says something before it has all", ErrPeer)
}

// An incoming is the receives for chunks, which are posted while there are files to come.
type incoming struct {
	ring []msg.Receive
	next int
}

// receiveChunks takes chunks up to one that is short. They are the peer's to fill only
// before they are given to add.
func (c *control) receiveChunks(ctx context.Context, add func(chunk []byte) error) error {
	in := &c.in
	if in.ring == nil {
		in.ring = make([]msg.Receive, Slots)
		for i := range in.ring {
			in.ring[i].Buffers = [][]byte{make([]byte, ChunkSize)}
			if err := c.expect(&in.ring[i], tagData); err != nil {
				return err
			}
		}
	}
	for {
		r := &in.ring[in.next%Slots]
		if err := c.arrived(ctx, r); err != nil {
			return err
		}
		switch {
		case errors.Is(r.Err, msg.ErrTruncated):
			return c.altered(fmt.Errorf("%w: a chunk of %d bytes", ErrPeer, r.Whole))
		case r.Err != nil:
			return c.reason(lost(r.Err))
		}
		if err := add(r.Buffers[0][:r.Length]); err != nil {
			return err
		}
		last := r.Length < ChunkSize
		in.next++
		if err := c.expect(r, tagData); err != nil {
			return err
		}
		if last {
			return nil
		}
	}
}

// arrived waits for a chunk. What the other end says meanwhile is that it gives up, or what
// comes behind the data, which may overtake a chunk that is on its way.
func (c *control) arrived(ctx context.Context, r *msg.Receive) error {
	if ctx.Err() != nil { // though it may be there already
		return context.Cause(ctx)
	}
	for !isOver(r.Done()) {
		var said <-chan struct{}
		if c.early == nil {
			var err error
			if said, err = c.listen(); err != nil {
				return err
			}
		}
		if err := await(ctx, r.Done(), said, c.patience.chunk); err != nil {
			return err
		}
		if said == nil || !isOver(said) {
			continue
		}
		m, err := c.take()
		if err != nil {
			return err
		}
		if !m.Wait || !c.slow {
			c.early = &m
		}
	}
	return nil
}
