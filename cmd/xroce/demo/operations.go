package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// operations are what is shown, in this order.
var operations = []roce.Opcode{
	roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm, roce.OpRead,
}

// guard is how many bytes on each side of a target must stay as they were.
const guard = 4096

// A call is an operation that was carried out and must be in the capture.
type call struct {
	op    roce.Opcode
	size  int
	pmtu  wire.MTU
	qpn   [2]uint32 // of host 0, which asked, and of host 1
	first wire.PSN  // of host 0's first packet of all
}

func (c call) String() string { return fmt.Sprintf("%s of %d bytes", c.op, c.size) }

// A tap writes frames to a capture while it is on.
type tap struct {
	w  *capture.Writer
	on atomic.Bool
}

// Frame implements engine.Tap.
func (t *tap) Frame(dir capture.Direction, head, tail []byte) {
	if t.on.Load() {
		t.w.Frame(time.Now(), dir, head, tail)
	}
}

// showOperations carries out every operation at every size and compares every
// byte and every field of the completions. The packets go to the capture.
func showOperations(ctx context.Context, o *Options, w *cable, t tally) (calls []call, err error) {
	file, err := os.Create(o.Capture)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	writer, err := capture.NewWriter(file, "xroce-demo")
	if err != nil {
		return nil, err
	}
	tap := &tap{w: writer}
	p, err := w.connect(ctx, o.Device, tap)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := p.close(); err == nil {
			err = closeErr
		}
	}()
	t.report.Wire = describe(o, w, p.dev[0])
	o.Started(t.report.Wire)
	o.Hook(StageOperations)
	tap.on.Store(true)
	for _, size := range o.Sizes {
		x, err := newExchange(p, size, t)
		if err != nil {
			return nil, err
		}
		for _, op := range operations {
			if err := x.run(ctx, op); err != nil {
				return nil, fmt.Errorf("%s of %d bytes: %w", op, size, err)
			}
			calls = append(calls, call{
				op: op, size: size, pmtu: p.dev[0].ActiveMTU(), first: p.end[0].Local.PSN,
				qpn: [2]uint32{p.end[0].QP.QPN(), p.end[1].QP.QPN()},
			})
		}
		x.close()
	}
	tap.on.Store(false)
	return calls, writer.Flush()
}

// An exchange carries out operations of one size between two regions.
type exchange struct {
	*pair
	tally
	size int
	mr   [2]*engine.MR // a target with guards on both sides
	wrID uint64
}

func newExchange(p *pair, size int, t tally) (*exchange, error) {
	x := &exchange{pair: p, tally: t, size: size}
	for host, dev := range p.dev {
		var err error
		x.mr[host], err = dev.RegMR(p.end[host].PD, make([]byte, guard+size+guard),
			mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead)
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

// run carries out one operation from host 0 on fresh random bytes.
func (x *exchange) run(ctx context.Context, op roce.Opcode) error {
	for _, mr := range x.mr {
		_, _ = rand.Read(mr.Bytes()) // it never fails
		mark(mr.Bytes()[guard : guard+x.size])
	}
	var imm [4]byte
	_, _ = rand.Read(imm[:])
	x.wrID++
	send := roce.SendWR{
		WRID: x.wrID, Opcode: op, Flags: roce.SendSignaled, Imm: binary.BigEndian.Uint32(imm[:]),
		SGList:     []roce.SGE{x.mr[0].SGE(guard, x.size)},
		RemoteAddr: x.mr[1].Addr() + guard, RKey: x.mr[1].RKey(),
	}
	source, target := 0, 1
	if op == roce.OpRead {
		source, target = 1, 0
	}
	want := bytes.Clone(x.mr[target].Bytes())
	copy(want[guard:guard+x.size], x.mr[source].Bytes()[guard:])
	untouched := bytes.Clone(x.mr[source].Bytes())

	recv := roce.RecvWR{WRID: x.wrID | 1<<32}
	switch op {
	case roce.OpSend, roce.OpSendImm:
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
	if err := x.end[0].QP.PostSend(&send); err != nil {
		return err
	}
	if err := x.completions(ctx, &send, &recv); err != nil {
		return err
	}
	if err := x.fence(); err != nil {
		return err
	}
	got := x.mr[target].Bytes()
	data := guard + x.size
	x.check(bytes.Equal(got[guard:data], want[guard:data]),
		"%s of %d bytes: the data differs from byte %d on", op, x.size,
		firstDifference(got[guard:data], want[guard:data]))
	x.check(bytes.Equal(got[:guard], want[:guard]) && bytes.Equal(got[data:], want[data:]),
		"%s of %d bytes: bytes around the target were written to", op, x.size)
	x.check(bytes.Equal(x.mr[source].Bytes(), untouched),
		"%s of %d bytes: the source was written to", op, x.size)
	return nil
}

// mark makes the payload of every packet begin with bytes that no dissector
// takes for its own: tshark guesses what InfiniBand carries, and finds random
// bytes malformed. Packets begin at multiples of the path MTU.
func mark(data []byte) {
	for i := 0; i < len(data); i += wire.MTU256.Bytes() {
		copy(data[i:], "\xa5\x5a\xa5\x5a")
	}
}

// fence takes both progress locks, which orders what we wrote before what the
// devices read, and what they wrote before what we read: a packet through the
// kernel is no synchronisation that the Go memory model knows.
func (x *exchange) fence() error { return errors.Join(x.dev[0].Err(), x.dev[1].Err()) }

// firstDifference returns the index of the first byte that differs, -1 for none.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// completions takes the completions of one operation and checks every field.
func (x *exchange) completions(ctx context.Context, s *roce.SendWR, r *roce.RecvWR) error {
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
	case roce.OpWrite:
		want[0].Opcode = roce.WCWrite
	case roce.OpWriteImm:
		want[0].Opcode, want[1] = roce.WCWrite, received
		received.Opcode = roce.WCRecvRDMAWithImm
		received.Flags, received.Imm = roce.WCWithImm, s.Imm
	case roce.OpRead:
		want[0].Opcode, want[0].ByteLen = roce.WCRead, uint32(x.size)
	}
	var wcs [2]roce.Completion
	for host, w := range want {
		if w == nil {
			continue
		}
		n, err := x.end[host].CQ.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		got := wcs[0]
		if w.Opcode == roce.WCSend || w.Opcode == roce.WCWrite {
			got.ByteLen = 0 // not defined for these
		}
		got.Time = 0
		x.check(n == 1 && got == *w, "%s of %d bytes: host %d has %d completions, %+v, not %+v",
			s.Opcode, x.size, host, n, got, *w)
		if got.Status != roce.StatusSuccess {
			return fmt.Errorf("host %d: %s", host, got.Status)
		}
	}
	if want[1] == nil {
		n, err := x.end[1].CQ.Poll(wcs[:])
		x.check(n == 0 && err == nil, "%s of %d bytes: host 1 has a completion of its own",
			s.Opcode, x.size)
	}
	return nil
}
