package rdmacm

import (
	"context"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	machine "xroce/roce/cm"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A mailbox is a datagram queue pair. Each receive has a place of its own, because
// the 40 bytes before a datagram say who sent it.
type mailbox struct {
	station *Station
	size    int // bytes of a datagram
	cq      *engine.CQ
	qp      *engine.QP
	in, out *engine.MR
	sent    int // datagrams that are out
	posted  int // datagrams that were posted to be sent
	depth   int // of both queues
}

// spareReceives is how many datagrams of nobody's may wait beside those that are to come.
const spareReceives = 64

// newMailbox makes a mailbox for so many datagrams to receive, with its receives
// posted.
func (s *Station) newMailbox(pd *engine.PD, datagrams, size int) (*mailbox, error) {
	b := &mailbox{
		station: s, size: size, depth: min(datagrams+spareReceives, roce.MaxWR),
	}
	var err error
	if b.cq, err = s.Dev.CreateCQ(2 * b.depth); err != nil {
		return nil, err
	}
	b.in, err = s.Dev.RegMR(pd, make([]byte, b.depth*b.room()), mem.LocalWrite)
	if err != nil {
		return nil, err
	}
	if b.out, err = s.Dev.RegMR(pd, make([]byte, max(size, 1)), 0); err != nil {
		return nil, err
	}
	for i := range b.out.Bytes() {
		b.out.Bytes()[i] = byte(i)
	}
	b.qp, err = s.Dev.CreateQP(pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: b.cq, RecvCQ: b.cq, MaxSendWR: b.depth, MaxRecvWR: b.depth,
		MaxSendSGE: 1, MaxRecvSGE: 1, SignalAll: true,
	})
	if err != nil {
		return nil, err
	}
	if err := b.qp.Start(machine.QKeyUDP); err != nil {
		return nil, err
	}
	for place := range b.depth {
		if err := b.supply(place); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// room is how many bytes a receive has.
func (b *mailbox) room() int { return wire.GRHLen + b.size }

// supply posts a receive.
func (b *mailbox) supply(place int) error {
	return b.qp.PostRecv(&roce.RecvWR{
		WRID: uint64(place), SGList: []roce.SGE{b.in.SGE(place*b.room(), b.room())},
	})
}

// A letter is a datagram that came.
type letter struct {
	from uint32            // the number of the queue pair that sent it
	qpn  uint32            // to answer to: the immediate data
	grh  [wire.GRHLen]byte // who sent it
	err  error             // why it is none of udaddy's
}

// receive waits for a datagram, for as long as the context lasts: whoever knows the number of the
// queue pair may send some, so how long is to wait for one that counts is the caller's to say. Its
// receive is posted again: it is copied.
func (b *mailbox) receive(ctx context.Context) (l letter, err error) {
	for {
		wc, err := b.next(ctx)
		if err != nil {
			return letter{}, err
		}
		if wc.Opcode == roce.WCSend {
			continue
		}
		l, place := letter{from: wc.SrcQP, qpn: wc.Imm}, int(wc.WRID)
		copy(l.grh[:], b.in.Bytes()[place*b.room():])
		if n := int(wc.ByteLen) - wire.GRHLen; n != b.size {
			l.err = fmt.Errorf("a message of 0x%06x has %d bytes, not %d: start both ends with "+
				"the same -S", wc.SrcQP, n, b.size)
		} else if wc.Flags&roce.WCWithImm == 0 || wc.Imm == 0 || wc.Imm >= 1<<24 {
			l.err = fmt.Errorf("a message of 0x%06x does not say in its immediate data whom to "+
				"answer: it is not of udaddy", wc.SrcQP)
		}
		return l, b.supply(place)
	}
}

// send sends so many datagrams to a peer. Its number is in the immediate data.
func (b *mailbox) send(ctx context.Context, to *roce.AH, qpn, qkey uint32, n int) error {
	for range n {
		for b.posted-b.sent == b.depth {
			if err := b.awaitSent(ctx); err != nil {
				return err
			}
		}
		err := b.qp.PostSend(&roce.SendWR{
			Opcode: roce.OpSendImm, Imm: b.qp.QPN(), SGList: []roce.SGE{b.out.SGE(0, b.size)},
			AH: to, RemoteQPN: qpn, RemoteQKey: qkey,
		})
		if err != nil {
			return err
		}
		b.posted++
	}
	return nil
}

// flush waits until all datagrams are out.
func (b *mailbox) flush(ctx context.Context) error {
	for b.sent < b.posted {
		if err := b.awaitSent(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitSent waits until another datagram is out, not for ever.
func (b *mailbox) awaitSent(ctx context.Context) error {
	within, stop := b.station.patience(ctx)
	defer stop()
	for before := b.sent; b.sent == before; {
		if _, err := b.next(within); err != nil {
			return err
		}
	}
	return nil
}

// next waits for a completion, for as long as the context lasts, and counts those of sends. Where
// that has ended it does not take one that is there: there may always be one, of somebody else.
func (b *mailbox) next(ctx context.Context) (roce.Completion, error) {
	var wcs [1]roce.Completion
	err := context.Cause(ctx)
	if err == nil {
		_, err = b.cq.Wait(ctx, wcs[:])
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return roce.Completion{}, err
	}
	if wcs[0].Opcode == roce.WCSend && wcs[0].Status == roce.StatusSuccess {
		b.sent++
	}
	return wcs[0], wcs[0].Err()
}
