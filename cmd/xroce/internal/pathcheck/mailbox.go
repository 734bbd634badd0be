package pathcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// How many datagrams a mailbox has room for.
const (
	receives = 64
	sends    = 16
)

// A mailbox is a UD queue pair with room for datagrams. One goroutine may send while another
// one receives.
type mailbox struct {
	dev    *engine.Device
	pd     *engine.PD
	sendCQ *engine.CQ
	recvCQ *engine.CQ
	qp     *engine.QP
	mr     *engine.MR
	room   int   // bytes of a place
	free   []int // places to send from
	used   int   // place of the datagram that was received last, -1 for none
}

// A datagram is one that came. It is valid until the next is received.
type datagram struct {
	from engine.AddressVector // whom to answer
	qpn  uint32
	data []byte
}

// newMailbox makes a mailbox that takes datagrams with a Q_Key.
func newMailbox(dev *engine.Device, qkey uint32) (m *mailbox, err error) {
	m = &mailbox{
		dev: dev, pd: dev.AllocPD(), room: wire.GRHLen + dev.ActiveMTU().Bytes(), used: -1,
	}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if m.sendCQ, err = dev.CreateCQ(sends); err != nil {
		return m, err
	}
	if m.recvCQ, err = dev.CreateCQ(receives); err != nil {
		return m, err
	}
	m.qp, err = dev.CreateQP(m.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: m.sendCQ, RecvCQ: m.recvCQ, SignalAll: true,
		MaxSendWR: sends, MaxRecvWR: receives,
	})
	if err != nil {
		return m, err
	}
	places := make([]byte, (receives+sends)*m.room)
	if m.mr, err = dev.RegMR(m.pd, places, mem.LocalWrite); err != nil {
		return m, err
	}
	if err := m.qp.Start(qkey); err != nil {
		return m, err
	}
	for i := range receives {
		if err := m.post(i); err != nil {
			return m, err
		}
	}
	for i := range sends {
		m.free = append(m.free, receives+i)
	}
	return m, nil
}

// post posts the receive of a place.
func (m *mailbox) post(place int) error {
	return m.qp.PostRecv(&roce.RecvWR{
		WRID: uint64(place), SGList: []roce.SGE{m.mr.SGE(place*m.room, m.room)},
	})
}

// close destroys the queue pair and what belongs to it.
func (m *mailbox) close() {
	if m.qp != nil {
		m.qp.Close()
	}
	if m.mr != nil {
		m.mr.Deregister()
	}
	// What could be said is that something is in use, and then closing the device ends it.
	for _, cq := range []*engine.CQ{m.sendCQ, m.recvCQ} {
		if cq != nil {
			_ = cq.Close()
		}
	}
	_ = m.pd.Close()
}

// send sends a datagram of some bytes, zeros behind those that are given.
func (m *mailbox) send(
	ctx context.Context, ah *roce.AH, qpn, qkey uint32, data []byte, size int,
) error {
	for len(m.free) == 0 {
		var wcs [sends]roce.Completion
		n, err := m.sendCQ.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for i := range wcs[:n] {
			if err := wcs[i].Err(); err != nil {
				return err
			}
			m.free = append(m.free, int(wcs[i].WRID))
		}
	}
	place := m.free[len(m.free)-1]
	b := m.mr.Bytes()[place*m.room:][:size]
	clear(b[copy(b, data):])
	err := m.qp.PostSend(&roce.SendWR{
		WRID: uint64(place), Opcode: roce.OpSend, AH: ah, RemoteQPN: qpn, RemoteQKey: qkey,
		SGList: []roce.SGE{m.mr.SGE(place*m.room, size)},
	})
	if err != nil {
		return err
	}
	m.free = m.free[:len(m.free)-1]
	return nil
}

// receive waits for a datagram. Where the context has ended it does not take one that is there:
// there may always be one, of somebody else.
func (m *mailbox) receive(ctx context.Context) (datagram, error) {
	for {
		if err := ctx.Err(); err != nil {
			return datagram{}, err
		}
		if m.used >= 0 {
			if err := m.post(m.used); err != nil {
				return datagram{}, err
			}
			m.used = -1
		}
		var wc [1]roce.Completion
		if _, err := m.recvCQ.Wait(ctx, wc[:]); err != nil {
			return datagram{}, err
		}
		if err := wc[0].Err(); err != nil {
			return datagram{}, err
		}
		m.used = int(wc[0].WRID)
		b := m.mr.Bytes()[m.used*m.room:][:m.room]
		if wc[0].ByteLen < wire.GRHLen || int(wc[0].ByteLen) > m.room {
			continue
		}
		from, err := m.dev.ReplyVector(b[:wire.GRHLen])
		if err != nil {
			continue // from an address that cannot be answered
		}
		return datagram{from, wc[0].SrcQP, b[wire.GRHLen:wc[0].ByteLen]}, nil
	}
}

// resolveTime is how long a neighbour is asked for.
const resolveTime = 5 * time.Second

// handle resolves the neighbour and makes an address handle.
func (m *mailbox) handle(ctx context.Context, to engine.AddressVector) (*roce.AH, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	ah, err := m.dev.CreateAH(ctx, m.pd, to)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no answer for %s", engine.ErrNoNeighbour, resolveTime)
	}
	return ah, err
}
