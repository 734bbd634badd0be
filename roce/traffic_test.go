package roce_test

import (
	"bytes"
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// guard is the number of bytes between messages that nothing may touch.
const guard = 16

// A traffic is a batch of messages of one operation, both ways at once. Data
// lies in the lower half of each region and goes to the upper half of the peer's.
type traffic struct {
	p     *pair
	op    roce.Opcode
	sizes []int
	half  int
}

// offset is where message i begins in either half.
func (tr *traffic) offset(i int) int {
	off := guard
	for _, n := range tr.sizes[:i] {
		off += n + guard
	}
	return off
}

func (tr *traffic) imm(end, i int) uint32 { return 0xabcd0000 + uint32(end)<<8 + uint32(i) }

func hasImm(op roce.Opcode) bool { return op == roce.OpSendImm || op == roce.OpWriteImm }

func consumesRecv(op roce.Opcode) bool {
	switch op {
	case roce.OpSend, roce.OpSendImm, roce.OpSendInv, roce.OpWriteImm:
		return true
	}
	return false
}

// post prepares the memory and posts everything.
func (tr *traffic) post() {
	tr.p.tb.Helper()
	for e, end := range tr.p.ends {
		fill(end.buf[:tr.half], uint64(e)+77)
		clear(end.buf[tr.half:])
		for i, n := range tr.sizes {
			if consumesRecv(tr.op) {
				must(tr.p.tb, end.qp.PostRecv(&roce.RecvWR{
					WRID: uint64(100 + i), SGList: split(end.sge(tr.half+tr.offset(i), n)),
				}))
			}
		}
	}
	for e, end := range tr.p.ends {
		peer := tr.p.ends[1-e]
		for i, n := range tr.sizes {
			wr := roce.SendWR{
				WRID: uint64(i), Opcode: tr.op, SGList: split(end.sge(tr.offset(i), n)),
				Imm: tr.imm(e, i), RKey: peer.region.RKey(),
				RemoteAddr: peer.region.Addr() + uint64(tr.half+tr.offset(i)),
			}
			if tr.op == roce.OpRead {
				wr.SGList = split(end.sge(tr.half+tr.offset(i), n))
				wr.RemoteAddr = peer.region.Addr() + uint64(tr.offset(i))
			}
			must(tr.p.tb, end.qp.PostSend(&wr))
		}
	}
}

// split makes three pieces of one, the middle one empty.
func split(l []roce.SGE) []roce.SGE {
	a, b := l[0], l[0]
	a.Length /= 3
	b.Addr, b.Length = b.Addr+uint64(a.Length), b.Length-a.Length
	return []roce.SGE{a, {}, b}
}

// validate compares all memory and all completions with what must be.
func (tr *traffic) validate() {
	tr.p.tb.Helper()
	for e, end := range tr.p.ends {
		peer := tr.p.ends[1-e]
		want := make([]byte, tr.half)
		for i, n := range tr.sizes {
			off := tr.offset(i)
			copy(want[off:off+n], peer.buf[off:off+n])
		}
		if !bytes.Equal(end.buf[tr.half:], want) {
			tr.p.tb.Errorf("end %d: memory differs", e)
		}
		tr.validateCompletions(e, end)
	}
}

func (tr *traffic) validateCompletions(e int, end *endpoint) {
	tr.p.tb.Helper()
	var sends, recvs []roce.Completion
	for i, n := range tr.sizes {
		wc := roce.Completion{WRID: uint64(i), QPN: end.qp.Num(), Opcode: wcOpcode[tr.op]}
		if tr.op == roce.OpRead {
			wc.ByteLen = uint32(n)
		}
		sends = append(sends, wc)
		if !consumesRecv(tr.op) {
			continue
		}
		wc = roce.Completion{
			WRID: uint64(100 + i), QPN: end.qp.Num(), Opcode: roce.WCRecv,
			ByteLen: uint32(n),
		}
		if tr.op == roce.OpWriteImm {
			wc.Opcode = roce.WCRecvRDMAWithImm
		}
		if hasImm(tr.op) {
			wc.Flags, wc.Imm = roce.WCWithImm, tr.imm(1-e, i)
		}
		recvs = append(recvs, wc)
	}
	sameCompletions(tr.p.tb, drain(tr.p.tb, end.send), sends)
	sameCompletions(tr.p.tb, drain(tr.p.tb, end.recv), recvs)
}

var wcOpcode = map[roce.Opcode]roce.WCOpcode{
	roce.OpSend: roce.WCSend, roce.OpSendImm: roce.WCSend, roce.OpWrite: roce.WCWrite,
	roce.OpWriteImm: roce.WCWrite, roce.OpRead: roce.WCRead, roce.OpFetchAdd: roce.WCFetchAdd,
	roce.OpCmpSwap: roce.WCCompSwap, roce.OpAtomicWrite: roce.WCAtomicWrite,
	roce.OpFlush: roce.WCFlush, roce.OpSendInv: roce.WCSend, roce.OpLocalInv: roce.WCLocalInv,
}

// sameCompletions compares completions but for their time.
func sameCompletions(tb testing.TB, got, want []roce.Completion) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Errorf("%d completions, want %d", len(got), len(want))
		return
	}
	for i := range got {
		if got[i].Time = 0; got[i] != want[i] {
			tb.Errorf("completion %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// sizesFor are the message sizes around the corners of a path MTU.
func sizesFor(mtu int, large ...int) []int {
	return append([]int{0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 3*mtu + 5}, large...)
}

var allOps = []roce.Opcode{roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm, roce.OpRead}

// TestTraffic moves every size with every operation, path MTU and framing, both
// ways at once.
func TestTraffic(t *testing.T) {
	for _, framing := range []wire.Framing{wire.FramingV2IPv4, wire.FramingV2IPv6} {
		for mtu := wire.MTU256; mtu <= wire.MTU4096; mtu++ {
			t.Run(fmt.Sprintf("%s/%s", framing, mtu), func(t *testing.T) {
				half := 1<<20 + 8*mtu.Bytes() + 1024
				p := newRCPair(t, options{Framing: framing, MTU: mtu, Memory: 2 * half})
				for _, op := range allOps {
					tr := traffic{p, op, sizesFor(mtu.Bytes(), 1<<20), half}
					tr.post()
					p.run()
					tr.validate()
				}
			})
		}
	}
}

// TestSingleFaults drops, doubles, delays and damages each packet of a batch in
// turn, for each operation; everything arrives all the same.
func TestSingleFaults(t *testing.T) {
	kinds := map[string]func(n int) fault{
		"drop":    func(int) fault { return fault{Drop: true} },
		"double":  func(int) fault { return fault{Dup: true} },
		"reorder": func(int) fault { return fault{Delay: 3 * roce.Microsecond} },
		"late":    func(int) fault { return fault{Delay: 100 * roce.Millisecond} },
		"damage":  func(n int) fault { return fault{Flip: 1 + 977*n} },
	}
	for kind, f := range kinds {
		for _, op := range allOps {
			t.Run(fmt.Sprintf("%s/%s", kind, op), func(t *testing.T) {
				for from := range 2 {
					for nth, last := 0, 1; nth < last; nth++ {
						last = faultyRun(t, op, from, nth, f(nth))
					}
				}
			})
		}
	}
}

// faultyRun lets one fault happen and returns how many packets the end sent.
func faultyRun(t *testing.T, op roce.Opcode, from, nth int, f fault) int {
	t.Helper()
	half := 1 << 13
	p := newRCPair(t, options{Memory: 2 * half, SQPSN: 0xfffffa, RQPSN: 0x7ffffd, RetryCnt: 7})
	p.fault = func(end, n int, _ []byte) fault {
		if end == from && n == nth {
			return f
		}
		return fault{}
	}
	tr := traffic{p, op, sizesFor(p.o.MTU.Bytes()), half}
	tr.post()
	p.run()
	tr.validate()
	if t.Failed() {
		t.Fatalf("end %d, packet %d, %+v", from, nth, f)
	}
	return p.sent[from]
}
