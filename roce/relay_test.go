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
	name string
	typ  roce.QPType
	ext  roce.Extensions
}

var linkKinds = []linkKind{
	{"RC", roce.TypeRC, 0},
	{"XRC", roce.TypeXRCSend, 0},
	{"selective repeat", roce.TypeRC, roce.ExtSelectiveRepeat},
	{"reorder window", roce.TypeRC, roce.ExtReorderWindow},
	{"both extensions", roce.TypeRC, roce.ExtSelectiveRepeat | roce.ExtReorderWindow},
}

// A work is one work request: an operation of some bytes.
type work struct {
	op roce.Opcode
	n  int
}

// A relay posts batches of work at the first end of a pair, lets faults happen to them
// and compares all memory and all completions with what must be. It serves for many.
type relay struct {
	t    *testing.T
	p    *pair
	run  uint64
	want [2][]byte     // what memory must hold
	keys []*mem.Region // that SENDs with invalidate invalidate
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
		RNRRetry: 7, Timeout: 8, SQPSN: 0xffff00, RQPSN: 0x7fff00,
	})
	r := &relay{t: t, p: p}
	for i := range r.want {
		fill(p.ends[i].buf, uint64(i)+5)
		r.want[i] = bytes.Clone(p.ends[i].buf)
	}
	return r
}

// play moves a batch while faults happen, and judges it. It returns how many frames each
// end sent.
func (r *relay) play(batch []work, f faultFunc) (sent [2]int, err error) {
	p := r.p
	r.run++
	p.sent, p.fault = [2]int{}, f
	r.keys = r.keys[:0]
	var sends, recvs []roce.Completion
	at := guard
	for i, w := range batch {
		r.post(i, w, at, &sends, &recvs)
		at += w.n + guard
	}
	for step := 0; p.step(); step++ {
		if step > 10_000 {
			return p.sent, fmt.Errorf("no end: %s; %s", p.ends[0].qp.Snapshot(),
				p.ends[1].qp.Snapshot())
		}
	}
	return p.sent, r.judge(sends, recvs)
}

// post posts a work request whose memory begins at an offset of each half, and notes what
// must come of it.
func (r *relay) post(i int, w work, at int, sends, recvs *[]roce.Completion) {
	a, b := r.p.ends[0], r.p.ends[1]
	wr := roce.SendWR{
		WRID: r.run<<8 + uint64(i), Opcode: w.op, SGList: a.sge(at, w.n), RemoteSRQN: srqNum,
		RKey: b.region.RKey(), RemoteAddr: b.region.Addr() + uint64(relayHalf+at),
		Imm: uint32(r.run)<<8 + uint32(i), CompareAdd: r.run, Swap: r.run << 20,
	}
	wc := roce.Completion{WRID: wr.WRID, QPN: qpnA, Opcode: wcOpcode[w.op]}
	for e, off := range [2]int{at, at} {
		renew(r.p.ends[e].buf[off:off+w.n], r.run<<16+uint64(i)<<1+uint64(e))
		copy(r.want[e][off:off+w.n], r.p.ends[e].buf[off:])
	}
	src, dst := r.want[0][at:at+w.n], r.want[1][relayHalf+at:]
	switch {
	case w.op == roce.OpRead:
		wr.SGList, wr.RemoteAddr = a.sge(relayHalf+at, w.n), b.region.Addr()+uint64(at)
		copy(r.want[0][relayHalf+at:], r.want[1][at:at+w.n])
		wc.ByteLen = uint32(w.n)
	case w.op == roce.OpFetchAdd || w.op == roce.OpCmpSwap:
		word := r.want[1][relayWords+8*(i%4):]
		old := binary.NativeEndian.Uint64(word)
		next := old + wr.CompareAdd
		if w.op == roce.OpCmpSwap {
			wr.CompareAdd, next = old, wr.Swap
		}
		binary.NativeEndian.PutUint64(word, next)
		wr.SGList = a.sge(relayHalf+at, 8)
		wr.RemoteAddr = b.region.Addr() + uint64(relayWords+8*(i%4))
		binary.NativeEndian.PutUint64(r.want[0][relayHalf+at:], old)
		wc.ByteLen = 8
	case w.op == roce.OpAtomicWrite:
		wr.RemoteAddr = b.region.Addr() + uint64(relayWords+64+8*(i%4))
		copy(r.want[1][relayWords+64+8*(i%4):], src)
		wc.ByteLen = 8
	case w.op == roce.OpFlush:
		wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, uint32(w.n)
	default:
		copy(dst, src)
	}
	if w.op == roce.OpSendInv {
		key, err := b.keys.Register(b.domain, make([]byte, 1), mem.LocalWrite|mem.Invalidatable)
		must(r.t, err)
		r.keys = append(r.keys, key)
		wr.InvalidateKey = key.RKey()
	}
	if consumesRecv(w.op) {
		must(r.t, b.postRecv(&roce.RecvWR{WRID: wr.WRID, SGList: b.sge(relayHalf+at, w.n)}))
		*recvs = append(*recvs, received(w, &wr))
	}
	must(r.t, a.qp.PostSend(&wr))
	*sends = append(*sends, wc)
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

// received is the completion of the receive that a work request takes.
func received(w work, wr *roce.SendWR) roce.Completion {
	wc := roce.Completion{WRID: wr.WRID, QPN: qpnB, Opcode: roce.WCRecv, ByteLen: uint32(w.n)}
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
func (r *relay) judge(sends, recvs []roce.Completion) error {
	for i, e := range r.p.ends {
		if !bytes.Equal(e.buf, r.want[i]) {
			return fmt.Errorf("end %d: memory differs", i)
		}
		if n := e.pool.Free(); n != r.p.o.Pool {
			return fmt.Errorf("end %d: %d packets are still kept", i, r.p.o.Pool-n)
		}
	}
	for _, c := range []struct {
		what string
		cq   *roce.CQ
		want []roce.Completion
	}{{"send", r.p.ends[0].send, sends}, {"receive", r.p.ends[1].recv, recvs}} {
		got := drain(r.t, c.cq)
		if len(got) != len(c.want) {
			return fmt.Errorf("%d completions of %ss, not %d", len(got), c.what, len(c.want))
		}
		for i := range got {
			if got[i].Time = 0; got[i] != c.want[i] {
				return fmt.Errorf("%s %d: completion %+v, not %+v", c.what, i, got[i], c.want[i])
			}
		}
	}
	for _, key := range r.keys {
		if key.Valid() {
			return fmt.Errorf("key %#x is still valid", key.RKey())
		}
		r.p.ends[1].keys.Deregister(key)
	}
	return nil
}

// mustPlay plays a batch and wants it to come out right.
func (r *relay) mustPlay(batch []work, what string, f faultFunc) [2]int {
	r.t.Helper()
	sent, err := r.play(batch, f)
	if err != nil {
		r.t.Fatalf("%v, %s: %v", batch, what, err)
	}
	return sent
}

// nothing is no fault.
func nothing(int, int, []byte) fault { return fault{} }

// oneFault lets one frame of an end have a fault.
func oneFault(end, n int, f fault) faultFunc {
	return func(from, nth int, _ []byte) fault {
		if from == end && nth == n {
			return f
		}
		return fault{}
	}
}

// singleFaults are what is done to each frame alone: it is lost, comes twice, comes again
// when all is done, or is damaged.
var singleFaults = []struct {
	name string
	f    fault
}{
	{"lost", fault{Drop: true}},
	{"twice", fault{Dup: true}},
	{"again late", fault{Dup: true, Delay: 20 * roce.Millisecond}},
	{"damaged", fault{Flip: 1 + 8*(frameBTH+13) + 5}},
}

// eachSingle does each of singleFaults to each frame of a batch.
func (r *relay) eachSingle(batch []work) (plays int) {
	r.t.Helper()
	clean := r.mustPlay(batch, "no fault", nothing)
	for end, frames := range clean {
		for n := range frames {
			for _, k := range singleFaults {
				r.mustPlay(batch, fmt.Sprintf("frame %d of end %d %s", n, end, k.name),
					oneFault(end, n, k.f))
				plays++
			}
		}
	}
	return plays
}

// pairFaults are what is done to each two frames.
var pairFaults = []struct {
	name string
	f    [2]fault
}{
	{"lost, lost", [2]fault{{Drop: true}, {Drop: true}}},
	{"lost, twice", [2]fault{{Drop: true}, {Dup: true}}},
	{"twice, lost", [2]fault{{Dup: true}, {Drop: true}}},
}

// eachPair does each of pairFaults to each two frames of a batch, of either end, of the
// first try and of those that are sent again.
func (r *relay) eachPair(batch []work) (plays int) {
	r.t.Helper()
	type frame struct{ end, n int }
	var all []frame
	for end, frames := range r.mustPlay(batch, "no fault", nothing) {
		for n := range 2*frames + 1 {
			all = append(all, frame{end, n})
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			for _, k := range pairFaults {
				what := fmt.Sprintf("frames %v and %v %s", a, b, k.name)
				r.mustPlay(batch, what, func(from, nth int, _ []byte) fault {
					switch (frame{from, nth}) {
					case a:
						return k.f[0]
					case b:
						return k.f[1]
					}
					return fault{}
				})
				plays++
			}
		}
	}
	return plays
}
