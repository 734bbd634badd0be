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
	station  *Station
	size     int // bytes of a datagram
	cq       *engine.CQ
	qp       *engine.QP
	in, out  *engine.MR
	receives int // still to be posted
	sent     int // datagrams that are out
	posted   int // datagrams that were posted to be sent
	depth    int // of both queues
}

// newMailbox makes a mailbox for so many datagrams to receive, with its receives
// posted.
func (s *Station) newMailbox(pd *engine.PD, datagrams, size int) (*mailbox, error) {
	b := &mailbox{
		station: s, size: size, receives: datagrams, depth: max(1, min(datagrams, roce.MaxWR)),
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
	for place := range min(b.depth, b.receives) {
		if err := b.supply(place); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// room is how many bytes a receive has.
func (b *mailbox) room() int { return wire.GRHLen + b.size }

// supply posts a receive, if there is still something to come.
func (b *mailbox) supply(place int) error {
	if b.receives == 0 {
		return nil
	}
	b.receives--
	return b.qp.PostRecv(&roce.RecvWR{
		WRID: uint64(place), SGList: []roce.SGE{b.in.SGE(place*b.room(), b.room())},
	})
}

// A letter is a datagram that came.
type letter struct {
	qpn uint32            // to answer to: the immediate data
	grh [wire.GRHLen]byte // who sent it
}

// receive waits for a datagram.
func (b *mailbox) receive(ctx context.Context) (letter, error) {
	for {
		wc, err := b.next(ctx)
		if err != nil {
			return letter{}, err
		}
		if wc.Opcode == roce.WCSend {
			continue
		}
		if n := int(wc.ByteLen) - wire.GRHLen; n != b.size {
			return letter{}, fmt.Errorf("a message of 0x%06x has %d bytes, not %d: start both "+
				"ends with the same -S", wc.SrcQP, n, b.size)
		}
		if wc.Flags&roce.WCWithImm == 0 || wc.Imm == 0 || wc.Imm >= 1<<24 {
			return letter{}, fmt.Errorf("a message of 0x%06x does not say in its immediate data "+
				"whom to answer: it is not of udaddy", wc.SrcQP)
		}
		place := int(wc.WRID)
		l := letter{qpn: wc.Imm}
		copy(l.grh[:], b.in.Bytes()[place*b.room():])
		return l, b.supply(place)
	}
}

// send sends so many datagrams to a peer. Its number is in the immediate data.
func (b *mailbox) send(ctx context.Context, to *roce.AH, qpn, qkey uint32, n int) error {
	for range n {
		for b.posted-b.sent == b.depth {
			if _, err := b.next(ctx); err != nil {
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
		if _, err := b.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next waits for a completion and counts those of sends.
func (b *mailbox) next(ctx context.Context) (roce.Completion, error) {
	var wcs [1]roce.Completion
	if err := b.station.await(ctx, b.cq, wcs[:]); err != nil {
		return roce.Completion{}, err
	}
	if wcs[0].Opcode == roce.WCSend && wcs[0].Status == roce.StatusSuccess {
		b.sent++
	}
	return wcs[0], wcs[0].Err()
}
