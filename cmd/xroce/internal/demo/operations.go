package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// guard is how many bytes on each side of a target must stay as they were.
const guard = 4096

// maxInline is the most bytes that are sent from the work request itself.
const maxInline = roce.MaxInline

// unreliableTime is how long a message is waited for that nobody sends again.
const unreliableTime = 30 * time.Second

// An exchange carries out operations of one size over a connection, between a
// region of each host.
type exchange struct {
	*pair
	tally
	*talk
	size int
	mr   [2]*engine.MR // a target with guards on both sides
	srqn uint32        // of an XRC connection: every request names one
	wrID uint64
}

func newExchange(p *pair, t tally, talk *talk, size int) (*exchange, error) {
	x := &exchange{pair: p, tally: t, talk: talk, size: size}
	for host, dev := range p.dev {
		var err error
		x.mr[host], err = dev.RegMR(p.pd[host], make([]byte, guard+size+guard),
			allRights|mem.Invalidatable)
		if err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *exchange) close() {
	for _, mr := range x.mr {
		mr.Deregister()
	}
}

// run carries out one operation from host 0 on fresh random bytes. Inline data
// is taken from the work request, and its buffer overwritten at once.
func (x *exchange) run(ctx context.Context, op roce.Opcode, inline bool) error {
	what := fmt.Sprintf("%s of %d bytes", op, x.size)
	if inline {
		what += " inline"
	}
	if err := x.carryOut(ctx, op, inline, what); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (x *exchange) carryOut(
	ctx context.Context, op roce.Opcode, inline bool, what string,
) error {
	for _, mr := range x.mr {
		_, _ = rand.Read(mr.Bytes()) // it never fails
		mark(mr.Bytes()[guard : guard+x.size])
	}
	x.wrID++
	send := roce.SendWR{
		WRID: x.wrID, Opcode: op, SGList: []roce.SGE{x.mr[0].SGE(guard, x.size)},
		RemoteAddr: x.mr[1].Addr() + guard, RKey: x.mr[1].RKey(), RemoteSRQN: x.srqn,
	}
	source, target := 0, 1
	switch op {
	case roce.OpRead:
		source, target = 1, 0
	case roce.OpSendImm, roce.OpWriteImm:
		var imm [4]byte
		_, _ = rand.Read(imm[:])
		send.Imm = binary.BigEndian.Uint32(imm[:])
	case roce.OpSendInv:
		revoked, err := x.dev[1].RegMR(x.pd[1], make([]byte, 1), mem.Invalidatable)
		if err != nil {
			return err
		}
		defer revoked.Deregister()
		send.InvalidateKey = revoked.RKey()
	}
	want := bytes.Clone(x.mr[target].Bytes())
	copy(want[guard:guard+x.size], x.mr[source].Bytes()[guard:])
	untouched := bytes.Clone(x.mr[source].Bytes())
	if inline {
		send.Flags, send.SGList = roce.SendInline, nil
		send.Inline = bytes.Clone(untouched[guard : guard+x.size])
	}
	if err := x.send(ctx, &send, what); err != nil {
		return err
	}
	got := x.mr[target].Bytes()
	data := guard + x.size
	x.check(bytes.Equal(got[guard:data], want[guard:data]),
		"%s: the data differs from byte %d on", what,
		firstDifference(got[guard:data], want[guard:data]))
	x.check(bytes.Equal(got[:guard], want[:guard]) && bytes.Equal(got[data:], want[data:]),
		"%s: bytes around the target were written to", what)
	x.check(bytes.Equal(x.mr[source].Bytes(), untouched), "%s: the source was written to", what)
	return nil
}

// send posts the operation and takes its completions.
func (x *exchange) send(ctx context.Context, send *roce.SendWR, what string) error {
	recv := roce.RecvWR{WRID: x.wrID | 1<<32}
	switch send.Opcode {
	case roce.OpSend, roce.OpSendImm, roce.OpSendInv:
		recv.SGList = []roce.SGE{x.mr[1].SGE(guard, x.size)}
		fallthrough
	case roce.OpWriteImm:
		if err := x.end[1].QP.PostRecv(&recv); err != nil {
			return err
		}
	}
	if err := x.fence(); err != nil {
		return err
	}
	if err := x.end[0].QP.PostSend(send); err != nil {
		return err
	}
	clear(send.Inline)
	x.carried(0, send.Opcode, x.size)
	if err := x.expect(ctx, x.tally, what, x.completions(send, &recv)); err != nil {
		return err
	}
	if x.service == wire.ServiceUC && send.Opcode == roce.OpWrite {
		if err := x.ring(ctx, what); err != nil {
			return err
		}
	}
	return x.fence()
}

// ring sends an empty message: when it has come, so has the WRITE before it, which
// nothing else tells of.
func (x *exchange) ring(ctx context.Context, what string) error {
	if err := x.end[1].QP.PostRecv(&roce.RecvWR{}); err != nil {
		return err
	}
	if err := x.end[0].QP.PostSend(&roce.SendWR{Opcode: roce.OpSend}); err != nil {
		return err
	}
	x.carried(0, roce.OpSend, 0)
	return x.expect(ctx, x.tally, what+", then an empty SEND", [2]*roce.Completion{
		{Opcode: roce.WCSend, QPN: x.end[0].QP.QPN()},
		{Opcode: roce.WCRecv, QPN: x.end[1].QP.QPN()},
	})
}

// completions are what an operation must complete with at each host.
func (x *exchange) completions(s *roce.SendWR, r *roce.RecvWR) [2]*roce.Completion {
	want := [2]*roce.Completion{{WRID: s.WRID, QPN: x.end[0].QP.QPN()}}
	received := &roce.Completion{
		WRID: r.WRID, Opcode: roce.WCRecv, QPN: x.end[1].QP.QPN(), ByteLen: uint32(x.size),
	}
	switch s.Opcode {
	case roce.OpSend:
		want[0].Opcode, want[1] = roce.WCSend, received
	case roce.OpSendImm:
		want[0].Opcode, want[1] = roce.WCSend, received
		received.Flags, received.Imm = roce.WCWithImm, s.Imm
	case roce.OpSendInv:
		want[0].Opcode, want[1] = roce.WCSend, received
		received.Flags, received.InvalidatedKey = roce.WCWithInv, s.InvalidateKey
	case roce.OpWrite:
		want[0].Opcode = roce.WCWrite
	case roce.OpWriteImm:
		want[0].Opcode, want[1] = roce.WCWrite, received
		received.Opcode = roce.WCRecvRDMAWithImm
		received.Flags, received.Imm = roce.WCWithImm, s.Imm
	case roce.OpRead:
		want[0].Opcode, want[0].ByteLen = roce.WCRead, uint32(x.size)
	}
	return want
}

// expect takes one completion of each host that shall have one and checks every
// field. The other has none.
func (p *pair) expect(
	ctx context.Context, t tally, what string, want [2]*roce.Completion,
) error {
	var wcs [2]roce.Completion
	for host, w := range want {
		if w == nil {
			n, err := p.end[host].CQ.Poll(wcs[:])
			t.check(n == 0 && err == nil, "%s: host %d has a completion of its own", what, host)
			continue
		}
		n, err := p.wait(ctx, host, wcs[:])
		if err != nil {
			return err
		}
		got := wcs[0]
		switch w.Opcode {
		case roce.WCSend, roce.WCWrite, roce.WCFlush, roce.WCAtomicWrite, roce.WCDriver1:
			got.ByteLen = 0 // not defined for these
		}
		got.Time = 0
		if w.Status != roce.StatusSuccess { // then only these are
			got = roce.Completion{WRID: got.WRID, Status: got.Status, QPN: got.QPN}
		}
		t.check(n == 1 && got == *w, "%s: host %d has %d completions, %+v, not %+v", what,
			host, n, got, *w)
		if got.Status != w.Status {
			return fmt.Errorf("host %d: %s", host, got.Status)
		}
	}
	return nil
}

// wait waits for completions. What is lost on an unreliable service never comes.
func (p *pair) wait(ctx context.Context, host int, wcs []roce.Completion) (int, error) {
	e := p.end[host]
	switch e.QP.Type() {
	case roce.TypeUC, roce.TypeUD, roce.TypeRawPacket:
		limited, cancel := context.WithTimeout(ctx, unreliableTime)
		defer cancel()
		n, err := e.CQ.Wait(limited, wcs)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("nothing came to host %d in %s", host, unreliableTime)
		}
		return n, err
	}
	return e.CQ.Wait(ctx, wcs)
}

// mark makes the payload of every packet begin with bytes that no dissector
// takes for its own: tshark guesses what InfiniBand carries, and finds random
// bytes malformed. Packets begin at multiples of the path MTU.
func mark(data []byte) {
	for i := 0; i < len(data); i += wire.MTU256.Bytes() {
		copy(data[i:], "\xa5\x5a\xa5\x5a")
	}
}

// firstDifference returns the index of the first byte that differs, -1 for none.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
