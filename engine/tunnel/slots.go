package tunnel

import (
	"context"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// A slot is a piece of registered memory that holds one datagram on its way out.
type slot struct {
	b    []byte
	off  int // of b in the region
	refs int // the lane, and work requests
	held int // bytes that count for outbox.held
	home *pool
}

// A pool is slots of one size.
type pool struct{ free []*slot }

// A work is a work request that is not complete.
type work struct {
	slot *slot
	way  *way
	used bool
}

// Bounds of a lane's memory, in bytes and numbers.
const (
	poolBytes  = 8 << 20
	minSlots   = 16
	maxSlots   = 256
	maxWork    = 1024 // work requests of a lane at once, of all its queue pairs
	connWork   = 256  // of one connection
	scratchLen = 32   // head and tail of one work request
	scratchEnd = 24   // where the tail is
)

// outbox is the memory that a lane sends from. It is of the lane's goroutine alone.
type outbox struct {
	cq      *engine.CQ
	mr      *engine.MR
	scratch []byte // a head and a tail for each work request
	works   []work
	free    []uint32 // works
	large   pool     // what is read
	small   pool     // what is cut here
	held    int      // bytes in slots that were told to hold
	wcs     [64]roce.Completion
	// idle is what is done instead of waiting for a completion, nil for just that.
	idle func(context.Context) error
}

// slotsOf is how many slots of a size there are.
func slotsOf(size int) int { return min(max(poolBytes/size, minSlots), maxSlots) }

func newOutbox(dev *engine.Device, pd *engine.PD, large, small int) (*outbox, error) {
	cq, err := dev.CreateCQ(maxWork + connWork)
	if err != nil {
		return nil, err
	}
	o := &outbox{cq: cq, works: make([]work, maxWork)}
	head := maxWork * scratchLen
	b := make([]byte, head+slotsOf(large)*large+slotsOf(small)*small)
	if o.mr, err = dev.RegMR(pd, b, mem.LocalWrite); err != nil {
		cq.Close()
		return nil, err
	}
	o.scratch = b[:head]
	for i := maxWork - 1; i >= 0; i-- {
		o.free = append(o.free, uint32(i))
	}
	at := o.large.fill(b, head, large)
	o.small.fill(b, at, small)
	return o, nil
}

// fill makes the slots, from an offset in the region on.
func (p *pool) fill(b []byte, at, size int) (end int) {
	for range slotsOf(size) {
		p.free = append(p.free, &slot{b: b[at:][:size:size], off: at, home: p})
		at += size
	}
	return at
}

// close gives back what is the device's. The queue pairs are closed before.
func (o *outbox) close() error {
	if err := o.mr.Deregister(); err != nil {
		return err
	}
	return o.cq.Close()
}

// take takes a slot, waiting for work to complete while there is none.
func (o *outbox) take(ctx context.Context, p *pool) (*slot, error) {
	for len(p.free) == 0 {
		if err := o.wait(ctx); err != nil {
			return nil, err
		}
	}
	s := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	s.refs = 1
	return s, nil
}

// hold counts the bytes in a slot until it is free again.
func (o *outbox) hold(s *slot, n int) {
	s.held = n
	o.held += n
}

// release gives up one reference to a slot.
func (o *outbox) release(s *slot) {
	if s.refs--; s.refs == 0 {
		o.held -= s.held
		s.held = 0
		s.home.free = append(s.home.free, s)
	}
}

// spare is how much a connection may have under way beside others: as much as is free. So several
// whose peers take nothing any more never have all of it, and one that is alone may have half.
func (o *outbox) spare() int {
	return min(len(o.free), len(o.large.free), len(o.small.free))
}

// reap takes completions, and returns how many there were.
func (o *outbox) reap() (taken int, err error) {
	for {
		n, err := o.cq.Take(o.wcs[:])
		if err != nil {
			return taken, fmt.Errorf("tunnel: completions of what was sent: %w", err)
		}
		o.complete(o.wcs[:n])
		taken += n
		if n < len(o.wcs) {
			return taken, nil
		}
	}
}

// wait waits until some work is complete.
func (o *outbox) wait(ctx context.Context) error {
	o.sweep()
	if o.idle != nil {
		return o.idle(ctx)
	}
	n, err := o.cq.Wait(ctx, o.wcs[:])
	o.complete(o.wcs[:n])
	return err
}

func (o *outbox) complete(wcs []roce.Completion) {
	for i := range wcs {
		if w := &o.works[wcs[i].WRID]; w.used && wcs[i].Status != roce.StatusSuccess {
			signal(w.way.failed)
		}
		o.finish(uint32(wcs[i].WRID))
	}
}

// finish ends a work request.
func (o *outbox) finish(i uint32) {
	if w := &o.works[i]; w.used {
		o.release(w.slot)
		w.way.posted.Add(-1)
		*w = work{}
		o.free = append(o.free, i)
	}
}

// sweep ends work requests whose queue pair is gone: that had taken with it what was not
// polled of its completions. It returns how many there were.
func (o *outbox) sweep() (n int) {
	for i := range o.works {
		if w := &o.works[i]; w.used && w.way.gone.Load() {
			o.finish(uint32(i))
			n++
		}
	}
	return n
}

// begin takes a work request for a slot, waiting while there is none.
func (o *outbox) begin(ctx context.Context, s *slot, w *way) (i uint32, err error) {
	for len(o.free) == 0 {
		if err := o.wait(ctx); err != nil {
			return 0, err
		}
	}
	i = o.free[len(o.free)-1]
	o.free = o.free[:len(o.free)-1]
	o.works[i] = work{slot: s, way: w, used: true}
	s.refs++
	w.posted.Add(1)
	return i, nil
}

// parts are where the head and the tail of a work request are.
func (o *outbox) parts(i uint32) (head, tail []byte) {
	b := o.scratch[int(i)*scratchLen:][:scratchLen]
	return b[:scratchEnd], b[scratchEnd:]
}
