package roce_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A linkKind is a kind of reliable connection whose losses are tried one by one.
type linkKind struct {
	name   string
	typ    roce.QPType
	ext    roce.Extensions
	window int // packets, 0 for as many as there are
}

// The small window has acknowledges asked for in the middle of a message, too.
var linkKinds = []linkKind{
	{"RC", roce.TypeRC, 0, 0},
	{"XRC", roce.TypeXRCSend, 0, 0},
	{"selective repeat", roce.TypeRC, roce.ExtSelectiveRepeat, 0},
	{"reorder window", roce.TypeRC, roce.ExtReorderWindow, 0},
	{"both extensions", roce.TypeRC, roce.ExtSelectiveRepeat | roce.ExtReorderWindow, 0},
	{"piggyback", roce.TypeRC, roce.ExtPiggybackAck, 0},
	{
		"all extensions", roce.TypeRC,
		roce.ExtSelectiveRepeat | roce.ExtReorderWindow | roce.ExtPiggybackAck, 8,
	},
}

// A work is one work request: an operation of some bytes.
type work struct {
	op roce.Opcode
	n  int
}

// A relay has the ends of a pair post rallies, lets faults happen to them and compares all
// memory and all completions with what must be. It serves for many.
type relay struct {
	t     *testing.T
	p     *pair
	kind  linkKind
	run   uint64
	want  [2][]byte        // what memory must hold
	plans int              // work requests of this run
	at    int              // where the memory of the next one begins
	due   [2][]roce.SendWR // of each end
	next  [2]int           // of those, which an end posts next
	sends [2][]roce.Completion
	recvs [2][]roce.Completion
	keys  [2][]*mem.Region    // of each end, that SENDs with invalidate invalidate
	rode  map[wire.Opcode]int // packets of runs without faults that acknowledges rode on
}

// Where things are in the regions of a relay: sources, numbers, targets.
const (
	relayHalf   = 1 << 14
	relayWords  = relayHalf - 256
	relayMemory = 2 * relayHalf
)

func newRelay(t *testing.T, k linkKind) *relay {
	t.Helper()
	p := newRCPair(t, options{
		Type: k.typ, Ext: k.ext, Memory: relayMemory, Rights: atomicRights, RetryCnt: 7,
		RNRRetry: 7, Timeout: 8, SQPSN: 0xffff00, RQPSN: 0x7fff00, Window: k.window,
	})
	r := &relay{t: t, p: p, kind: k, rode: make(map[wire.Opcode]int)}
	for i := range r.want {
		fill(p.ends[i].buf, uint64(i)+5)
		r.want[i] = bytes.Clone(p.ends[i].buf)
	}
	return r
}

// play moves a rally while faults happen, and judges it. It returns how many frames each
// end sent.
func (r *relay) play(x rally, f faultFunc) (sent [2]int, err error) {
	p := r.p
	r.run++
	p.sent, p.fault = [2]int{}, f
	r.plans, r.at, r.next = 0, guard, [2]int{}
	for e := range p.ends {
		r.due[e] = r.due[e][:0]
		r.sends[e], r.recvs[e], r.keys[e] = r.sends[e][:0], r.recvs[e][:0], r.keys[e][:0]
	}
	for _, w := range x.opens {
		r.plan(0, w)
	}
	for end, works := range x.answers {
		for _, w := range works {
			r.plan(end, w)
		}
	}
	for range x.opens {
		r.post(0)
	}
	for step := 0; p.step() || r.goOn(); step++ {
		r.answer()
		if step > 10_000 {
			return p.sent, fmt.Errorf("no end: %s; %s", p.ends[0].qp.Snapshot(),
				p.ends[1].qp.Snapshot())
		}
	}
	return p.sent, r.judge()
}

// plan makes a work request that an end is to post, whose memory begins at an offset of each half.
// It posts the receive and notes what must come of both.
func (r *relay) plan(from int, w work) {
	to, i, at := 1-from, r.plans, r.at
	r.plans++
	r.at += w.n + guard
	a, b := r.p.ends[from], r.p.ends[to]
	wr := roce.SendWR{
		WRID: r.run<<8 + uint64(i), Opcode: w.op, SGList: a.sge(at, w.n), RemoteSRQN: srqNum,
		RKey: b.region.RKey(), RemoteAddr: b.region.Addr() + uint64(relayHalf+at),
		Imm: uint32(r.run)<<8 + uint32(i), CompareAdd: r.run, Swap: r.run << 20,
	}
	wc := roce.Completion{WRID: wr.WRID, QPN: a.qp.Num(), Opcode: wcOpcode[w.op]}
	for e, end := range r.p.ends {
		renew(end.buf[at:at+w.n], r.run<<16+uint64(i)<<1+uint64(e))
		copy(r.want[e][at:at+w.n], end.buf[at:])
	}
	src, dst := r.want[from][at:at+w.n], r.want[to][relayHalf+at:]
	switch {
	case w.op == roce.OpRead:
		wr.SGList, wr.RemoteAddr = a.sge(relayHalf+at, w.n), b.region.Addr()+uint64(at)
		copy(r.want[from][relayHalf+at:], r.want[to][at:at+w.n])
		wc.ByteLen = uint32(w.n)
	case w.op == roce.OpFetchAdd || w.op == roce.OpCmpSwap:
		word := r.want[to][relayWords+8*(i%4):]
		old := binary.NativeEndian.Uint64(word)
		next := old + wr.CompareAdd
		if w.op == roce.OpCmpSwap {
			wr.CompareAdd, next = old, wr.Swap
		}
		binary.NativeEndian.PutUint64(word, next)
		wr.SGList = a.sge(relayHalf+at, 8)
		wr.RemoteAddr = b.region.Addr() + uint64(relayWords+8*(i%4))
		binary.NativeEndian.PutUint64(r.want[from][relayHalf+at:], old)
		wc.ByteLen = 8
	case w.op == roce.OpAtomicWrite:
		wr.RemoteAddr = b.region.Addr() + uint64(relayWords+64+8*(i%4))
		copy(r.want[to][relayWords+64+8*(i%4):], src)
		wc.ByteLen = 8
	case w.op == roce.OpFlush:
		wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, uint32(w.n)
	default:
		copy(dst, src)
	}
	if w.op == roce.OpSendInv {
		key, err := b.keys.Register(b.domain, make([]byte, 1), mem.LocalWrite|mem.Invalidatable)
		must(r.t, err)
		r.keys[to] = append(r.keys[to], key)
		wr.InvalidateKey = key.RKey()
	}
	if consumesRecv(w.op) {
		must(r.t, b.postRecv(&roce.RecvWR{WRID: wr.WRID, SGList: b.sge(relayHalf+at, w.n)}))
		r.recvs[to] = append(r.recvs[to], received(w, &wr, b.qp.Num()))
	}
	r.due[from] = append(r.due[from], wr)
	r.sends[from] = append(r.sends[from], wc)
}

// renew makes other bytes of those in memory, quickly.
func renew(b []byte, seed uint64) {
	for ; len(b) >= 8; b = b[8:] {
		seed = seed*0x9e3779b97f4a7c15 + 1
		binary.NativeEndian.PutUint64(b, seed^binary.NativeEndian.Uint64(b))
	}
	for i := range b {
		b[i] += byte(2*seed + 1)
	}
}

// received is the completion of the receive that a work request takes of a queue pair.
func received(w work, wr *roce.SendWR, qpn uint32) roce.Completion {
	wc := roce.Completion{WRID: wr.WRID, QPN: qpn, Opcode: roce.WCRecv, ByteLen: uint32(w.n)}
	switch w.op {
	case roce.OpSendInv:
		wc.Flags, wc.InvalidatedKey = roce.WCWithInv, wr.InvalidateKey
	case roce.OpWriteImm:
		wc.Opcode = roce.WCRecvRDMAWithImm
		fallthrough
	case roce.OpSendImm:
		wc.Flags, wc.Imm = roce.WCWithImm, wr.Imm
	}
	return wc
}

// judge compares everything with what must be.
func (r *relay) judge() error {
	for i, e := range r.p.ends {
		if !bytes.Equal(e.buf, r.want[i]) {
			return fmt.Errorf("end %d: memory differs", i)
		}
		if n := e.pool.Free(); n != r.p.o.Pool {
			return fmt.Errorf("end %d: %d packets are still kept", i, r.p.o.Pool-n)
		}
		if err := r.completed(e.send, r.sends[i]); err != nil {
			return fmt.Errorf("end %d, sends: %w", i, err)
		}
		if err := r.completed(e.recv, r.recvs[i]); err != nil {
			return fmt.Errorf("end %d, receives: %w", i, err)
		}
		for _, key := range r.keys[i] {
			if key.Valid() {
				return fmt.Errorf("end %d: key %#x is still valid", i, key.RKey())
			}
			e.keys.Deregister(key)
		}
	}
	return nil
}

// completed compares completions with what must be.
func (r *relay) completed(cq *roce.CQ, want []roce.Completion) error {
	got := drain(r.t, cq)
	if len(got) != len(want) {
		return fmt.Errorf("%d completions, not %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Time = 0; got[i] != want[i] {
			return fmt.Errorf("completion %d is %+v, not %+v", i, got[i], want[i])
		}
	}
	return nil
}
