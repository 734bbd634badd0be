package roce_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A inlineStep is one work request of a scenario, with the receive that it needs.
type inlineStep struct {
	From  int // the end that posts
	Op    roce.Opcode
	Flags roce.SendFlags
	Size  int
	At    int   // where data to send is, and where the peer's memory is
	Cuts  []int // pieces of the poster's memory
	Recv  []int // pieces of the receive
	Again bool  // fenced: sends what the poster's last READ or atomic brought
	Onto  bool  // it lands where the last one did, if these two have an order
	Poll  bool  // both ends poll after it
	Inval bool  // a LOCAL_INV of the memory follows
}

var inlineOps = []roce.Opcode{
	roce.OpSend, roce.OpSendImm, roce.OpSendInv, roce.OpRead, roce.OpFetchAdd, roce.OpCmpSwap,
	roce.OpWrite, roce.OpWriteImm, roce.OpFlush, roce.OpAtomicWrite,
}

func wordOp(op roce.Opcode) bool {
	return op == roce.OpFetchAdd || op == roce.OpCmpSwap || op == roce.OpAtomicWrite
}

// drawCuts draws up to 12 pieces of at least n bytes together, some of none.
func drawCuts(t *rapid.T, n int, exact bool) []int {
	var cuts []int
	for left := n; left > 0 && len(cuts) < 11; {
		c := rapid.IntRange(0, left).Draw(t, "piece")
		cuts, left = append(cuts, c), left-c
	}
	rest := n
	for _, c := range cuts {
		rest -= c
	}
	if !exact {
		rest += rapid.IntRange(0, 9).Draw(t, "spare")
	}
	return append(cuts, rest)
}

func drawInlineStep(t *rapid.T, typ roce.QPType) inlineStep {
	ops := inlineOps
	if typ == roce.TypeUC {
		ops = []roce.Opcode{roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm}
	} else if typ == roce.TypeXRCSend {
		ops = inlineOps[:8]
	}
	s := inlineStep{
		Op:    rapid.SampledFrom(ops).Draw(t, "op"),
		Size:  rapid.IntRange(0, 70).Draw(t, "size"),
		At:    8 * rapid.IntRange(0, 50).Draw(t, "at"),
		Onto:  rapid.Bool().Draw(t, "onto"),
		Poll:  rapid.IntRange(0, 3).Draw(t, "poll") == 0,
		Inval: rapid.IntRange(0, 9).Draw(t, "invalidate") == 0,
	}
	for _, f := range []roce.SendFlags{roce.SendFence, roce.SendSignaled, roce.SendSolicited} {
		if rapid.Bool().Draw(t, "flag") {
			s.Flags |= f
		}
	}
	if s.Again = s.Flags&roce.SendFence != 0 && rapid.Bool().Draw(t, "again"); s.Again {
		s.Op, s.Size = roce.OpSend, 8
	}
	if typ != roce.TypeXRCSend {
		s.From = rapid.IntRange(0, 1).Draw(t, "from")
	}
	if wordOp(s.Op) {
		s.Size = 8
	}
	if s.Op == roce.OpFlush {
		s.Size = 0
	}
	s.Cuts, s.Recv = drawCuts(t, s.Size, true), drawCuts(t, s.Size, false)
	return s
}

// gapList is a list of pieces with gaps of 8 bytes between them.
func gapList(r *mem.Region, at int, cuts []int) []roce.SGE {
	list := []roce.SGE{}
	for _, c := range cuts {
		list = append(list, roce.SGE{
			Addr: r.Addr() + uint64(at), Length: uint32(c), LKey: r.LKey(),
		})
		at += c + 8
	}
	return list
}

// resultOp reports whether an operation brings data to its requester.
func resultOp(op roce.Opcode) bool {
	return op == roce.OpRead || op == roce.OpFetchAdd || op == roce.OpCmpSwap
}

// place is where the data of a step lands, and what of the peer's memory it names: its
// own, or that of the last step if the two have an order.
func (s *inlineStep) place(last *inlineStep, was, own int) (dest, target int) {
	target = targetArea + s.At
	if last == nil || !s.Onto || s.From != last.From {
		return own, target
	}
	received := consumesRecv(last.Op) && last.Op != roce.OpWriteImm
	switch {
	case received && consumesRecv(s.Op) && s.Op != roce.OpWriteImm,
		resultOp(last.Op) && resultOp(s.Op):
		return was, target
	case received:
		return own, was
	}
	return own, target
}

// The memory of an end in a scenario: data to send, which nothing else touches, what
// the peer reads and writes, and a place for each step where data lands that only a
// completion gives back, unless messages that follow each other have one.
const (
	targetArea = 1024
	resultArea = 2048
	resultSize = 256
)

// playInline plays a scenario and returns what can be seen of it.
func playInline(t testing.TB, o options, shared bool, steps []inlineStep) string {
	o.SGE, o.Memory, o.Unsignaled = 16, resultArea+resultSize*len(steps), true
	o.Rights = atomicRights | mem.FlushGlobal
	p := newRCPairOn(t, o, shared)
	var seen bytes.Buffer
	poll := func() {
		p.run()
		for _, e := range p.ends {
			fmt.Fprintf(&seen, "%+v %+v\n", drain(t, e.send), drain(t, e.recv))
		}
		for _, e := range p.ends {
			fmt.Fprintf(&seen, "%x\n", sha256.Sum256(e.buf))
		}
	}
	for _, e := range p.ends {
		fill(e.buf, uint64(e.qp.Num()))
	}
	read := [2]int{}
	var last *inlineStep
	was := 0
	for i, s := range steps {
		e, peer := p.ends[s.From], p.ends[1-s.From]
		dest, target := s.place(last, was, resultArea+resultSize*i)
		last, was = &steps[i], dest
		at := s.At
		if resultOp(s.Op) {
			at, read[s.From] = dest, dest
		} else if s.Again {
			at = read[s.From]
		}
		if consumesRecv(s.Op) {
			must(t, peer.postRecv(&roce.RecvWR{
				WRID: uint64(i), SGList: gapList(peer.region, dest, s.Recv),
			}))
		}
		spare, err := peer.keys.RegisterAt(peer.domain, make([]byte, 8), 1<<50, mem.Invalidatable)
		must(t, err)
		wr := roce.SendWR{
			WRID: uint64(i), Opcode: s.Op, Flags: s.Flags,
			RemoteAddr: peer.region.Addr() + uint64(target), RKey: peer.region.RKey(),
			SGList: gapList(e.region, at, s.Cuts), Imm: 7,
			CompareAdd: 3, Swap: 5, Flush: wire.FlushGlobal, FlushLength: 8, RemoteSRQN: srqNum,
			InvalidateKey: spare.RKey(),
		}
		if s.Op == roce.OpSendInv && i%2 == 0 {
			// The very memory that the message lands in, of which that is the last use.
			wr.InvalidateKey = peer.region.RKey()
		}
		if s.Op == roce.OpFlush {
			wr.SGList = nil
		}
		must(t, e.qp.PostSend(&wr))
		if s.Inval && o.Type != roce.TypeUC {
			must(t, e.qp.PostSend(&roce.SendWR{
				Opcode: roce.OpLocalInv, InvalidateKey: e.region.LKey(),
			}))
		}
		if p.run(); s.Poll {
			poll()
		}
		for _, e := range p.ends {
			if !e.region.Valid() {
				must(t, e.keys.Validate(e.region, uint8(i)))
			}
		}
	}
	poll()
	for _, e := range p.ends {
		fmt.Fprintf(&seen, "%s %v\n", e.qp.State(), e.events)
	}
	return seen.String()
}

// TestInlineRecvTransparent: nothing that can be seen of memory and completions
// depends on inline receive, with any operation, any shape of memory, fences, keys
// that are taken out of use before the completion is polled, shared receives, types
// and extensions.
func TestInlineRecvTransparent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom([]roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeXRCSend}).
			Draw(rt, "type")
		o := options{Type: typ}
		if typ == roce.TypeRC {
			o.Ext = rapid.SampledFrom([]roce.Extensions{0, roce.ExtSelectiveRepeat}).Draw(rt, "ext")
		}
		shared := typ != roce.TypeXRCSend && rapid.Bool().Draw(rt, "shared")
		steps := make([]inlineStep, rapid.IntRange(1, 12).Draw(rt, "steps"))
		for i := range steps {
			steps[i] = drawInlineStep(rt, typ)
		}
		off := playInline(t, o, shared, steps)
		o.InlineRecv = rapid.SampledFrom([]int{1, 8, 63, roce.MaxInlineRecv}).Draw(rt, "bytes")
		if on := playInline(t, o, shared, steps); on != off {
			rt.Fatalf("with inline receive:\n%s\nwithout:\n%s", on, off)
		}
	})
}
