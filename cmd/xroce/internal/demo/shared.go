package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// What is sent to shared receive queues.
const (
	sharers     = 3  // QPs that take from one queue
	sharedDepth = 12 // receives that are posted
	sharedLimit = 6  // fewer raise the event
	letterSize  = 64 // bytes of a message
)

// A pool is a shared receive queue of host 1 and the memory that its receives
// name: one slot each, of which the work request has the number.
type pool struct {
	srq *engine.SRQ
	mr  *engine.MR
	cq  *engine.CQ
}

// newPool makes one and fills it.
func newPool(c *cast, cq *engine.CQ, init engine.SRQInit) (*pool, error) {
	srq, err := c.dev[1].CreateSRQ(c.pd[1], init)
	if err != nil {
		return nil, err
	}
	mr, err := c.dev[1].RegMR(c.pd[1], make([]byte, sharedDepth*letterSize), mem.LocalWrite)
	if err != nil {
		return nil, err
	}
	p := &pool{srq: srq, mr: mr, cq: cq}
	for slot := range sharedDepth {
		err := srq.PostRecv(&roce.RecvWR{
			WRID: uint64(slot), SGList: []roce.SGE{mr.SGE(slot*letterSize, letterSize)},
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// A postman is host 0, which sends to shared receive queues.
type postman struct {
	*cast
	mr *engine.MR // one message
}

func newPostman(c *cast) (*postman, error) {
	mr, err := c.dev[0].RegMR(c.pd[0], make([]byte, letterSize), mem.LocalWrite)
	return &postman{c, mr}, err
}

// deliver sends a message over a connection; it must land in the slot of the pool.
func (d *postman) deliver(
	ctx context.Context, p *pair, t *talk, to *pool, slot int, remoteSRQ uint32,
) error {
	what := fmt.Sprintf("message to slot %d of SRQ 0x%06x", slot, to.srq.SRQN())
	_, _ = rand.Read(d.mr.Bytes()) // it never fails
	mark(d.mr.Bytes())
	if err := d.fence(); err != nil {
		return err
	}
	err := p.end[0].QP.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{d.mr.SGE(0, letterSize)}, RemoteSRQN: remoteSRQ,
	})
	if err != nil {
		return err
	}
	t.carried(0, roce.OpSend, letterSize)
	p.end[1].CQ = to.cq // where this message is told of
	err = p.expect(ctx, d.tally, what, [2]*roce.Completion{
		{Opcode: roce.WCSend, QPN: p.end[0].QP.QPN()},
		{
			WRID: uint64(slot), Opcode: roce.WCRecv, QPN: p.end[1].QP.QPN(),
			ByteLen: letterSize,
		},
	})
	if err != nil {
		return err
	}
	if err := d.fence(); err != nil {
		return err
	}
	d.check(bytes.Equal(to.mr.Bytes()[slot*letterSize:][:letterSize], d.mr.Bytes()),
		"%s: the data differs", what)
	return nil
}

// playSRQ sends over three connections in turn until the shared receive queue at
// the other end has fewer receives than its limit.
func playSRQ(ctx context.Context, c *cast) error {
	cq, err := c.dev[1].CreateCQ(sharedDepth)
	if err != nil {
		return err
	}
	pool, err := newPool(c, cq, engine.SRQInit{MaxWR: sharedDepth, MaxSGE: 1})
	if err != nil {
		return err
	}
	if err := pool.srq.Modify(roce.SRQAttr{Limit: sharedLimit}, roce.SRQAttrLimit); err != nil {
		return err
	}
	d, err := newPostman(c)
	if err != nil {
		return err
	}
	var pairs [sharers]*pair
	var talks [sharers]*talk
	for i := range pairs {
		init := both(roce.TypeRC)
		init[1].SendCQ, init[1].RecvCQ, init[1].SRQ = cq, cq, pool.srq
		if pairs[i], talks[i], err = c.join(ctx, allRights, init); err != nil {
			return err
		}
		defer pairs[i].disconnect()
	}
	for slot := range sharedDepth - sharedLimit + 1 {
		c.check(c.limitEvents(pool.srq) == 0,
			"SRQ: its event came at %d receives, the limit is %d", sharedDepth-slot, sharedLimit)
		i := slot % sharers
		if err := d.deliver(ctx, pairs[i], talks[i], pool, slot, 0); err != nil {
			return err
		}
	}
	c.check(c.limitEvents(pool.srq) == 1, "SRQ: no event at %d receives, the limit is %d",
		sharedLimit-1, sharedLimit)
	attr, posted := pool.srq.Query()
	c.check(attr.Limit == 0 && posted == sharedLimit-1,
		"SRQ: %d receives are left and a limit of %d", posted, attr.Limit)
	return nil
}

// limitEvents takes the asynchronous events of host 1 and counts those of the SRQ
// at its limit.
func (c *cast) limitEvents(srq *engine.SRQ) int {
	n := 0
	for {
		e, ok := c.dev[1].PollEvent()
		if !ok {
			return n
		}
		if e.Type == roce.EventSRQLimitReached && e.SRQ == srq {
			n++
		}
	}
}

// playXRC sends over one connection to two shared receive queues, which is what
// the extended connection is for, and reads over it.
func playXRC(ctx context.Context, c *cast) error {
	domain := c.dev[1].OpenXRCD()
	init := [2]engine.QPInit{
		{Type: roce.TypeXRCSend}, {Type: roce.TypeXRCRecv, XRCD: domain},
	}
	p, talk, err := c.join(ctx, allRights, init)
	if err != nil {
		return err
	}
	defer p.disconnect()
	d, err := newPostman(c)
	if err != nil {
		return err
	}
	var pools [2]*pool
	for i := range pools {
		cq, err := c.dev[1].CreateCQ(sharedDepth)
		if err != nil {
			return err
		}
		pools[i], err = newPool(c, cq, engine.SRQInit{
			MaxWR: sharedDepth, MaxSGE: 1, XRCD: domain, CQ: cq,
		})
		if err != nil {
			return err
		}
	}
	for slot := range 2 {
		for _, pool := range pools {
			if err := d.deliver(ctx, p, talk, pool, slot, pool.srq.SRQN()); err != nil {
				return err
			}
		}
	}
	x, err := newExchange(p, c.tally, talk, letterSize)
	if err != nil {
		return err
	}
	defer x.close()
	x.srqn = pools[0].srq.SRQN()
	return x.run(ctx, roce.OpRead, false)
}
