package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"xroce/bench/worker"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// What a sender of blocks does itself, without a kernel or a receiver: the packets of a
// WRITE, written one after the other to the same frame.

// transmitPrefix begins the modes, whose rest is how the blocks are named.
const transmitPrefix = "transmit-"

// transmitMTU is the path MTU of these packets.
const transmitMTU = wire.MTU1024

// transmitFlight is how many messages of a sender who packs are in flight.
const transmitFlight = 16

// A transmitter is a queue pair of type UC, whose WRITEs are complete when they are
// sent.
type transmitter struct {
	keys   *mem.Keys
	domain *mem.Domain
	cq     *roce.CQ
	qp     *roce.QP
	frame  []byte
	done   [1]roce.Completion
}

func newTransmitter() (*transmitter, error) {
	t := &transmitter{
		keys: mem.NewKeys(rand.NewPCG(1, 2)), domain: new(mem.Domain),
		frame: make([]byte, transmitMTU.Bytes()+2*RCOverhead),
	}
	var err error
	if t.cq, err = roce.NewCQ(1, nil); err != nil {
		return nil, err
	}
	t.qp, err = roce.NewQP(0x11, roce.QPConfig{
		Type: roce.TypeUC, Domain: t.domain, SendCQ: t.cq, RecvCQ: t.cq,
		MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: blockSGEs, MaxRecvSGE: 1,
		Counters: new(counter.Set),
		Common:   &roce.Common{Keys: t.keys, PKeys: roce.DefaultPKeys()},
	})
	if err != nil {
		return nil, err
	}
	return t, t.connect()
}

// connect moves the queue pair to RTS.
func (t *transmitter) connect() error {
	a := roce.Attr{Port: 1, Path: microPath, PathMTU: transmitMTU, DestQPN: 0x12}
	for _, to := range []struct {
		state roce.State
		mask  roce.AttrMask
	}{
		{roce.StateInit, roce.AttrState | roce.AttrPort | roce.AttrPKeyIndex | roce.AttrAccess},
		{
			roce.StateRTR,
			roce.AttrState | roce.AttrAV | roce.AttrPathMTU | roce.AttrDestQPN | roce.AttrRQPSN,
		},
		{roce.StateRTS, roce.AttrState | roce.AttrSQPSN},
	} {
		a.State = to.state
		if err := t.qp.Modify(0, &a, to.mask); err != nil {
			return err
		}
	}
	return nil
}

// message posts a WRITE, writes its packets and polls its completion. It returns how
// many packets that were.
func (t *transmitter) message(wr *roce.SendWR) (packets int, err error) {
	if err := t.qp.PostSend(wr); err != nil {
		return 0, err
	}
	for t.qp.NextPacket(0, t.frame) > 0 {
		packets++
	}
	n, err := t.cq.Poll(t.done[:])
	if err == nil && (n != 1 || t.done[0].Status != roce.StatusSuccess) {
		err = errors.New("load: the WRITE did not complete")
	}
	return packets, err
}

// transmitStep returns a function that sends so many messages of o.Message bytes from
// blocks of o.Block.
func transmitStep(o worker.Options) (func(times int) bool, error) {
	if o.Block <= 0 || o.Message != blockSGEs*o.Block {
		return nil, fmt.Errorf("load: %d bytes in blocks of %d", o.Message, o.Block)
	}
	t, err := newTransmitter()
	if err != nil {
		return nil, err
	}
	wr, before, err := t.blocks(strings.TrimPrefix(o.Mode, transmitPrefix), o)
	if err != nil {
		return nil, err
	}
	packets := max(1, o.Message/transmitMTU.Bytes())
	return func(times int) bool {
		for range times {
			before(&wr)
			if n, err := t.message(&wr); err != nil || n != packets {
				return false
			}
		}
		return true
	}, nil
}

// blocks returns the work request that names the blocks in a way, and what is to be
// done before each time it is posted.
func (t *transmitter) blocks(way string, o worker.Options) (
	roce.SendWR, func(*roce.SendWR), error,
) {
	n := o.Block
	wr := roce.SendWR{Opcode: roce.OpWrite, Flags: roce.SendSignaled}
	spread, err := t.keys.Register(t.domain, make([]byte, 2*o.Message), 0)
	if err != nil {
		return wr, nil, err
	}
	sge := func(r *mem.Region, off, n int) roce.SGE {
		return roce.SGE{Addr: r.Addr() + uint64(off), Length: uint32(n), LKey: r.LKey()}
	}
	switch way {
	case "contiguous":
		wr.SGList = []roce.SGE{sge(spread, 0, o.Message)}
	case "sges":
		for i := range blockSGEs {
			wr.SGList = append(wr.SGList, sge(spread, 2*i*n, n))
		}
	case "layout":
		r, err := t.keys.RegisterIndirect(t.domain, 1)
		if err != nil {
			return wr, nil, err
		}
		l, err := mem.NewInterleaved([]uint64{blockSGEs}, []mem.Block{{
			Addr: spread.Addr(), Bytes: uint64(n), Strides: []uint64{2 * uint64(n)},
			LKey: spread.LKey(),
		}})
		if err != nil {
			return wr, nil, err
		}
		wr.SGList = []roce.SGE{sge(r, 0, o.Message)}
		return wr, asBefore, t.keys.ReregisterLayout(r, mem.ChangeTranslation, l, nil, 0)
	case "pack":
		// What is in flight must stay as it is.
		packed, err := t.keys.Register(t.domain, make([]byte, transmitFlight*o.Message), 0)
		if err != nil {
			return wr, nil, err
		}
		wr.SGList = make([]roce.SGE, 1)
		slot := 0
		return wr, func(wr *roce.SendWR) {
			pack(packed.Bytes()[slot*o.Message:][:o.Message], spread.Bytes(), n)
			wr.SGList[0] = sge(packed, slot*o.Message, o.Message)
			slot = (slot + 1) % transmitFlight
		}, nil
	default:
		return wr, nil, fmt.Errorf("load: no way %q to name blocks", way)
	}
	return wr, asBefore, nil
}

// pack copies blocks of n bytes, with gaps as long, to one piece.
func pack(to, from []byte, n int) {
	for len(to) > 0 {
		copy(to[:n], from)
		to, from = to[n:], from[2*n:]
	}
}
