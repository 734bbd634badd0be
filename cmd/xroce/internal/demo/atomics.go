package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// word is what atomic operations work on, in bytes.
const word = 8

// An atomicOp is an operation on a word of host 1.
type atomicOp struct {
	op                  roce.Opcode
	before              uint64
	compareAdd, operand uint64 // operand: what CMP_SWP stores, or ATOMIC_WRITE
	after               uint64
}

// atomics are what is shown, each on the word that the one before it left.
var atomics = []atomicOp{
	{op: roce.OpFetchAdd, before: 1000, compareAdd: 42, after: 1042},
	{op: roce.OpFetchAdd, before: 1042, compareAdd: math.MaxUint64 - 1041, after: 0}, // wraps
	{op: roce.OpCmpSwap, before: 0, compareAdd: 0, operand: 1 << 63, after: 1 << 63},
	{op: roce.OpCmpSwap, before: 1 << 63, compareAdd: 1, operand: 2, after: 1 << 63}, // refused
	{op: roce.OpAtomicWrite, before: 1 << 63, operand: 0xa55a00c0ffee, after: 0xa55a00c0ffee},
}

// String says what is done to which word.
func (a atomicOp) String() string {
	switch a.op {
	case roce.OpFetchAdd:
		return fmt.Sprintf("%s of %d to %d", a.op, a.compareAdd, a.before)
	case roce.OpCmpSwap:
		return fmt.Sprintf("%s of %d for %d on %d", a.op, a.operand, a.compareAdd, a.before)
	}
	return fmt.Sprintf("%s of %d", a.op, a.operand)
}

// A ledger is where a word is worked on, with guards on both sides, and where its
// old value goes.
type ledger struct {
	*pair
	tally
	*talk
	mr [2]*engine.MR
}

func newLedger(p *pair, t tally, talk *talk) (*ledger, error) {
	l := &ledger{pair: p, tally: t, talk: talk}
	for host, dev := range p.dev {
		var err error
		l.mr[host], err = dev.RegMR(p.pd[host], make([]byte, 3*word), allRights)
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// word is the word of a host.
func (l *ledger) word(host int) []byte { return l.mr[host].Bytes()[word : 2*word] }

// playAtomics carries out every atomic operation and compares every value.
func playAtomics(ctx context.Context, c *cast) error {
	p, talk, err := c.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	l, err := newLedger(p, c.tally, talk)
	if err != nil {
		return err
	}
	binary.NativeEndian.PutUint64(l.word(1), atomics[0].before)
	for _, a := range atomics {
		if err := l.run(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	for _, whole := range []bool{false, true} {
		if err := l.flush(ctx, whole); err != nil {
			return fmt.Errorf("%s: %w", roce.OpFlush, err)
		}
	}
	for _, mr := range l.mr {
		mr.Deregister()
	}
	return nil
}

// run carries out one of them.
func (l *ledger) run(ctx context.Context, a atomicOp) error {
	want := roce.Completion{QPN: l.end[0].QP.QPN(), ByteLen: word}
	switch a.op {
	case roce.OpFetchAdd:
		want.Opcode = roce.WCFetchAdd
	case roce.OpCmpSwap:
		want.Opcode = roce.WCCompSwap
	case roce.OpAtomicWrite:
		want.Opcode, want.ByteLen = roce.WCAtomicWrite, 0
		binary.NativeEndian.PutUint64(l.word(0), a.operand)
	}
	err := l.send(ctx, a.String(), &want, &roce.SendWR{
		Opcode: a.op, SGList: []roce.SGE{l.mr[0].SGE(word, word)},
		RemoteAddr: l.mr[1].Addr() + word, RKey: l.mr[1].RKey(),
		CompareAdd: a.compareAdd, Swap: a.operand,
	})
	if err != nil {
		return err
	}
	now := binary.NativeEndian.Uint64(l.word(1))
	l.check(now == a.after, "%s: leaves %d, not %d", a, now, a.after)
	old := binary.NativeEndian.Uint64(l.word(0))
	if a.op != roce.OpAtomicWrite {
		l.check(old == a.before, "%s: the old value came as %d", a, old)
	}
	for _, mr := range l.mr {
		around := append(bytes.Clone(mr.Bytes()[:word]), mr.Bytes()[2*word:]...)
		l.check(bytes.Equal(around, make([]byte, 2*word)), "%s: bytes around it were written to", a)
	}
	return nil
}

// flush writes and then has the other host make sure that it is there.
func (l *ledger) flush(ctx context.Context, whole bool) error {
	for i := range l.word(0) {
		l.word(0)[i] ^= 0xff
	}
	what := fmt.Sprintf("%s, whole region: %t", roce.OpFlush, whole)
	err := l.send(ctx, what, &roce.Completion{Opcode: roce.WCWrite, QPN: l.end[0].QP.QPN()},
		&roce.SendWR{
			Opcode: roce.OpWrite, SGList: []roce.SGE{l.mr[0].SGE(word, word)},
			RemoteAddr: l.mr[1].Addr() + word, RKey: l.mr[1].RKey(),
		})
	if err != nil {
		return err
	}
	err = l.send(ctx, what, &roce.Completion{Opcode: roce.WCFlush, QPN: l.end[0].QP.QPN()},
		&roce.SendWR{
			Opcode: roce.OpFlush, Flush: wire.FlushGlobal, FlushLength: word, FlushRegion: whole,
			RemoteAddr: l.mr[1].Addr() + word, RKey: l.mr[1].RKey(),
		})
	l.check(bytes.Equal(l.word(0), l.word(1)), "%s: what was written is not there", what)
	return err
}

// send posts a request and takes its completion; host 1 has none.
func (l *ledger) send(
	ctx context.Context, what string, want *roce.Completion, wr *roce.SendWR,
) error {
	if err := l.fence(); err != nil {
		return err
	}
	if err := l.end[0].QP.PostSend(wr); err != nil {
		return err
	}
	l.carried(0, wr.Opcode, word)
	err := l.expect(ctx, l.tally, what, [2]*roce.Completion{want, nil})
	if err != nil {
		return err
	}
	return l.fence()
}

// playKeys has the other host take a key out of use that it was given, and tries
// it all the same.
func playKeys(ctx context.Context, c *cast) error {
	p, talk, err := c.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	l, err := newLedger(p, c.tally, talk)
	if err != nil {
		return err
	}
	lent, err := c.dev[0].RegMR(c.pd[0], make([]byte, word),
		mem.LocalWrite|mem.RemoteWrite|mem.Invalidatable)
	if err != nil {
		return err
	}
	write := roce.SendWR{
		Opcode: roce.OpWrite, SGList: []roce.SGE{l.mr[1].SGE(word, word)},
		RemoteAddr: lent.Addr(), RKey: lent.RKey(),
	}
	copy(l.word(1), "\xa5\x5a\xa5\x5afirst")
	q := [2]uint32{p.end[0].QP.QPN(), p.end[1].QP.QPN()}
	try := func(what string, wr *roce.SendWR, size int, want [2]*roce.Completion) error {
		if err := p.fence(); err != nil {
			return err
		}
		if err := p.end[1].QP.PostSend(wr); err != nil {
			return err
		}
		talk.carried(1, wr.Opcode, size)
		if err := p.expect(ctx, c.tally, what, want); err != nil {
			return err
		}
		return p.fence()
	}
	err = try("WRITE with a valid key", &write, word,
		[2]*roce.Completion{nil, {Opcode: roce.WCWrite, QPN: q[1]}})
	if err != nil {
		return err
	}
	c.check(bytes.Equal(lent.Bytes(), l.word(1)), "WRITE with a valid key: the data differs")
	kept := bytes.Clone(lent.Bytes())

	if err := p.end[0].QP.PostRecv(&roce.RecvWR{}); err != nil {
		return err
	}
	err = try("SEND_WITH_INV", &roce.SendWR{Opcode: roce.OpSendInv, InvalidateKey: lent.RKey()}, 0,
		[2]*roce.Completion{
			{Opcode: roce.WCRecv, QPN: q[0], Flags: roce.WCWithInv, InvalidatedKey: lent.RKey()},
			{Opcode: roce.WCSend, QPN: q[1]},
		})
	if err != nil {
		return err
	}
	copy(l.word(1), "\xa5\x5a\xa5\x5aagain")
	err = try("WRITE with a key that is out of use", &write, word,
		[2]*roce.Completion{nil, {Status: roce.StatusRemAccessErr, QPN: q[1]}})
	talk.refused()
	c.check(bytes.Equal(lent.Bytes(), kept), "WRITE with a key out of use: something was written")
	lent.Deregister()
	return err
}
